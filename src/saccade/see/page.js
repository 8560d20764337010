"use strict";
(() => {
  const LEVELS = 20;
  const records = JSON.parse(document.getElementById("predictions").textContent);
  const element = (name, content, className) => {
    const made = document.createElement(name);
    if (content !== undefined) made.textContent = content;
    if (className) made.className = className;
    return made;
  };
  const label = (text) => element("bdi", text.trim() || "␣");
  const level = (w) => Math.min(LEVELS, Math.max(0, Math.round(LEVELS * w)));
  const entropy = (row) => {  // of shares, where a row does not add up to one
    const total = row.reduce((sum, w) => sum + w, 0);
    return row.reduce((sum, w) => (w > 0 ? sum - (w / total) * Math.log(w / total) : sum), 0);
  };
  const scattered = (row) => (row.some((w) => w > 0) ? entropy(row).toFixed(2) : "–");
  const instead = (others) => {
    const cell = element("td", undefined, "t");
    others.forEach((o, i) => cell.append(i ? ", " : "", label(o.text), ` ${o.probability.toFixed(2)}`));
    return cell;
  };

  const mean = (matrices) => matrices[0].map((row, t) => row.map((_, n) =>
    matrices.reduce((sum, m) => sum + m[t][n], 0) / matrices.length));

  // Layers and heads by name: [[name, weights]].
  const parts = (layers) => [
    ...(layers.length > 1 ? [["mean of all layers", mean(layers.map(mean))]] : []),
    ...layers.flatMap((heads, l) => [
      [`layer ${l}, mean of its heads`, mean(heads)],
      ...(heads.length > 1 ? heads.map((m, h) => [`layer ${l}, head ${h}`, m]) : []),
    ]),
  ];

  const layerName = (record) => {
    const count = record.attention.cross.length;
    return `layer ${(record.layer + count) % count}, mean of its heads`;  // the one that is shown at first
  };

  // Everything that can be looked at: [name, {source, target, weights, and what is known of each row}].
  const views = (record) => {
    const [read, target] = [record.source_tokens, record.target_tokens].map((tokens) => tokens.map((t) => t.text));
    const [rows, columns] = record.grid || [0, 0];
    const source = record.grid ? Array.from({ length: rows * columns }, (_, n) => `${Math.floor(n / columns) + 1},${(n % columns) + 1}`) : read;
    const occluded = (record.occluded || []).map((o) => [o.hidden, o.by_chance]);
    const known = { p: record.log_probabilities.map(Math.exp), gates: record.gates || [], instead: record.runners_up || [], occluded, written: true };
    const pieces = (weights) => ({ source, target, weights, ...known });
    const { cross, encoder, decoder } = record.attention;
    const found = [];
    const each = (name, layers, view) => found.push(...parts(layers).map(([which, weights]) => [name + which, view(weights)]));
    if (!record.grid) each("", cross, (weights) => ({ ...pieces(weights), merged: record.words && inWords(record.words, weights) }));
    if (encoder) each("the source at itself: ", encoder, (weights) => ({ source, target: source, weights, axes: "Rows and columns: the source." }));
    const before = ["START", ...target.slice(0, -1)];
    if (decoder) each("what was written at itself: ", decoder, (weights) => ({ ...pieces(weights), source: before, axes: "Rows: what was written. Columns: what stood before it." }));
    return found;
  };

  // Added over the pieces of a source word, averaged over those of a written one.
  const inWords = (words, weights) => {
    const merged = words.target.map(() => words.source.map(() => 0));
    const pieces = words.target.map((_, j) => words.wrote.filter((k) => k === j).length);
    weights.forEach((row, t) => row.forEach((w, n) => { merged[words.wrote[t]][words.read[n]] += w / pieces[words.wrote[t]]; }));
    return { ...words, weights: merged, written: true };
  };

  const draw = (table, view) => {
    const head = element("tr");
    head.append(element("td"));
    const gated = view.gates && view.gates.length;
    const hidden = view.occluded && view.occluded.length ? ["p, its look hidden", "p, others hidden"] : [];
    const beside = view.written ? ["p", ...hidden, "entropy", ...(gated ? ["β"] : []), "instead"] : ["entropy"];
    for (const text of [...view.source.map(label), ...beside.map((name) => document.createTextNode(name))]) {
      const cell = element("th");
      cell.scope = "col";
      cell.append(text);
      head.append(cell);
    }
    table.tHead.replaceChildren(head);
    table.caption.textContent = `${view.axes || "Rows: what was written. Columns: the source."} The stronger the colour, the more it was looked at; full colour is a weight of 1.`;
    const here = [...table.tBodies[0].rows].findIndex((row) => row.classList.contains("here"));
    table.tBodies[0].replaceChildren(...view.target.map((text, t) => {
      const row = element("tr");
      const name = element("th");
      name.scope = "row";
      name.append(label(text));
      row.append(name);
      for (const w of view.weights[t]) {
        const cell = element("td", undefined, `w${level(w)}`);
        cell.append(element("span", w.toFixed(2)));
        row.append(cell);
      }
      if (view.written) row.append(element("td", view.p.length ? view.p[t].toFixed(2) : "", "n"));
      if (hidden.length) row.append(...view.occluded[t].map((x) => element("td", x.toFixed(2), "n")));
      row.append(element("td", scattered(view.weights[t]), "n"));
      if (gated) row.append(element("td", view.gates[t].toFixed(2), "n"));
      if (view.written) row.append(instead((view.instead || [])[t] || []));
      return row;
    }));
    if (here >= 0) table.tBodies[0].rows[Math.min(here, view.target.length - 1)].classList.add("here");
  };

  // The same picture by other weights, on the page's scale, unless they are too strong for it: one scale for all words.
  const paint = (section, figures, grid, weights) => {
    const cells = grid[0] * grid[1], brightest = Number(section.querySelector(".glances").dataset.brightest);
    const most = Math.max(1e-9, brightest / cells, ...weights.flat()), rows = section.querySelectorAll("details .plain tbody tr");
    const entropyAt = [...section.querySelectorAll("details .plain thead th")].findIndex((cell) => cell.textContent === "entropy");
    section.querySelector(".scale").textContent = `Bright is where it looked; white would be ${(most * cells).toFixed(0)} times what looking everywhere alike gives.`;
    figures.forEach((figure, t) => {
      const best = weights[t].indexOf(Math.max(...weights[t]));
      const where = `row ${Math.floor(best / grid[1]) + 1}, column ${(best % grid[1]) + 1} of ${grid[0]} by ${grid[1]}`;
      figure.querySelector("svg").setAttribute("aria-label", `${figure.querySelector("bdi").textContent}: looks most at ${where}`);
      [rows[t].cells[1].textContent, rows[t].cells[2].textContent] = [where, weights[t][best].toFixed(2)];
      rows[t].cells[entropyAt].textContent = scattered(weights[t]);
      figure.querySelectorAll("rect").forEach((cell, n) => cell.setAttribute("class", `w${level(weights[t][n] / most)}`));
      const told = figure.querySelector("small");
      const [, , ...rest] = told.textContent.split(", ");
      const peak = Math.max(...weights[t]) * weights[t].length;
      told.textContent = [`${peak.toFixed(0)}× uniform`, `entropy ${scattered(weights[t])}`, ...rest].join(", ");
    });
  };

  const choose = (controls, found, first, chosen) => {
    const choice = element("select");
    found.forEach(([name], i) => choice.append(new Option(name, String(i), name === first, name === first)));
    const around = element("label", "shown: ");
    around.append(choice);
    controls.append(around);
    choice.addEventListener("change", () => chosen(found[Number(choice.value)][1]));
  };

  const tick = (controls, text, ticked, changed) => {
    const box = element("input");
    box.type = "checkbox";
    box.checked = ticked;
    const around = element("label", ` ${text}`);
    around.prepend(box);
    box.addEventListener("change", () => changed(box.checked));
    controls.append(around);
    return box;
  };

  const steps = (box, rows) => {
    box.addEventListener("keydown", (event) => {
      const all = rows();
      const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!down || !all.length) return;
      event.preventDefault();
      const here = all.findIndex((row) => row.classList.contains("here"));
      const next = Math.min(all.length - 1, Math.max(0, here + down));
      all.forEach((row, i) => row.classList.toggle("here", i === next));
      all[next].scrollIntoView({ block: "nearest" });
    });
  };

  records.forEach((record, number) => {
    const section = document.getElementById(`p${number}`);
    const table = section.querySelector(".scroll table");
    const controls = section.querySelector(".controls");
    const cross = record.attention && record.attention.cross;
    if (table && controls && !record.grid) steps(section.querySelector(".scroll"), () => [...table.tBodies[0].rows]);
    if (table && controls && cross && !record.grid) {
      const found = views(record);
      let shown = (found.find(([name]) => name === layerName(record)) || found[0])[1], whole = Boolean(record.words && record.words.first);
      let box = null;
      const redraw = () => {
        if (box) box.disabled = !shown.merged;  // what is inside has no words
        draw(table, (whole && shown.merged) || shown);
      };
      if (found.length > 1) choose(controls, found, layerName(record), (view) => { shown = view; redraw(); });
      if (record.words) {
        box = tick(controls, "words, not pieces (w)", whole, (ticked) => { whole = ticked; redraw(); });
        document.addEventListener("keydown", (event) => {
          const focus = document.activeElement, here = focus.closest("section");  // that one alone; from elsewhere, all
          if (event.key === "w" && focus.tagName !== "SELECT" && !event.ctrlKey && !event.metaKey && !event.altKey && (!here || here === section)) box.click();
        });
      }
    }
    const glances = section.querySelector(".glances");
    if (glances) {
      const figures = [...glances.querySelectorAll("figure.glance")];
      const stage = element("div", undefined, "stage");  // a place of its own, so that nothing moves under the pointer
      stage.ariaHidden = "true";
      let large = figures[0];
      const enlarge = (figure) => {
        large = figure;
        const copy = figure.cloneNode(true);
        copy.removeAttribute("tabindex");
        copy.classList.remove("here", "glance");
        stage.replaceChildren(copy);
        figures.forEach((f) => f.classList.toggle("here", f === figure));
      };
      glances.before(stage);
      enlarge(large);
      if (cross && (cross.length > 1 || cross[0].length > 1)) {
        choose(controls, parts(cross), layerName(record), (weights) => {
          paint(section, figures, record.grid, weights);
          enlarge(large);
        });
      }
      tick(controls, "smooth (not what the model saw)", false, (ticked) => [glances, stage].forEach((e) => e.classList.toggle("soft", ticked)));
      const inside = section.querySelector(".inside");
      if (inside) {
        const found = views(record), own = inside.querySelector("table");
        choose(inside.querySelector(".controls"), found, found[0][0], (view) => draw(own, view));
        draw(own, found[0][1]);
      }
      figures.forEach((figure, i) => {
        for (const kind of ["focus", "mouseenter"]) figure.addEventListener(kind, () => enlarge(figure));
        figure.addEventListener("click", () => figure.focus());
        figure.addEventListener("keydown", (event) => {
          const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
          if (!way) return;
          event.preventDefault();
          figures[Math.min(figures.length - 1, Math.max(0, i + way))].focus();
        });
      });
    }
  });
})();
