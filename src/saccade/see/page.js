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
  const entropy = (row) => row.reduce((sum, w) => (w > 0 ? sum - w * Math.log(w) : sum), 0);

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

  // Everything that can be looked at: [name, {source, target, weights, and what is known of each row}].
  const views = (record) => {
    const [source, target] = [record.source_tokens, record.target_tokens].map((tokens) => tokens.map((t) => t.text));
    const known = { p: record.log_probabilities.map(Math.exp), gates: record.gates || [], instead: record.runners_up || [], written: true };
    const pieces = (weights) => ({ source, target, weights, ...known });
    const { cross, encoder, decoder } = record.attention;
    const found = [["pieces", pieces(mean(cross[record.layer < 0 ? cross.length + record.layer : record.layer]))]];
    if (record.words) found.push(["words", { ...record.words, written: true }]);
    if (record.words && record.words.first) found.reverse();
    const each = (name, layers, view) => found.push(...parts(layers).map(([which, weights]) => [name + which, view(weights)]));
    if (cross.length > 1 || cross[0].length > 1) each("", cross, pieces);
    if (encoder) each("the source at itself: ", encoder, (weights) => ({ source, target: source, weights, axes: "Rows and columns: the source." }));
    const before = ["START", ...target.slice(0, -1)];
    if (decoder) each("what was written at itself: ", decoder, (weights) => ({ ...pieces(weights), source: before, axes: "Rows: what was written. Columns: what stood before it." }));
    return found;
  };

  const draw = (table, view) => {
    const head = element("tr");
    head.append(element("td"));
    const gated = view.gates && view.gates.length;
    const beside = view.written ? ["p", "entropy", ...(gated ? ["β"] : []), "instead"] : ["entropy"];
    for (const text of [...view.source.map(label), ...beside.map((name) => document.createTextNode(name))]) {
      const cell = element("th");
      cell.scope = "col";
      cell.append(text);
      head.append(cell);
    }
    table.tHead.replaceChildren(head);
    table.caption.textContent = `${view.axes || "Rows: what was written. Columns: the source."} The stronger the colour, the more it was looked at.`;
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
      row.append(element("td", entropy(view.weights[t]).toFixed(2), "n"));
      if (gated) row.append(element("td", view.gates[t].toFixed(2), "n"));
      const others = (view.instead || [])[t] || [];
      if (view.written) row.append(element("td", others.map((o) => `${o.text.trim() || "␣"} ${o.probability.toFixed(2)}`).join(", "), "t"));
      return row;
    }));
  };

  // The same picture by other weights, on one scale for all words.
  const paint = (section, figures, grid, weights) => {
    const most = Math.max(1e-9, ...weights.flat()), cells = grid[0] * grid[1], rows = section.querySelectorAll("details tbody tr");
    section.querySelector(".scale").textContent = `Bright is where it looked; white would be ${(most * cells).toFixed(0)} times what looking everywhere alike gives.`;
    figures.forEach((figure, t) => {
      const best = weights[t].indexOf(Math.max(...weights[t]));
      const where = `row ${Math.floor(best / grid[1]) + 1}, column ${(best % grid[1]) + 1} of ${grid[0]} by ${grid[1]}`;
      figure.querySelector("svg").setAttribute("aria-label", `${figure.querySelector("bdi").textContent}: looks most at ${where}`);
      [rows[t].cells[1].textContent, rows[t].cells[2].textContent] = [where, weights[t][best].toFixed(2)];
      rows[t].cells[4].textContent = entropy(weights[t]).toFixed(2);
      figure.querySelectorAll("rect").forEach((cell, n) => cell.setAttribute("class", `w${level(weights[t][n] / most)}`));
      const told = figure.querySelector("small");
      const [, , ...rest] = told.textContent.split(", ");
      const peak = Math.max(...weights[t]) * weights[t].length;
      told.textContent = [`${peak.toFixed(0)}× uniform`, `entropy ${entropy(weights[t]).toFixed(2)}`, ...rest].join(", ");
    });
  };

  const choose = (controls, found, chosen) => {
    const choice = element("select");
    found.forEach(([name], i) => choice.append(new Option(name, String(i))));
    const around = element("label", "shown: ");
    around.append(choice);
    controls.append(around);
    choice.addEventListener("change", () => chosen(found[Number(choice.value)][1]));
    return choice;
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
    if (table && controls && cross && !record.grid) {
      const found = views(record);
      if (found.length > 1) {
        const choice = choose(controls, found, (view) => draw(table, view));
        if (record.words) {
          controls.append(element("span", "w: words or pieces", "score"));
          document.addEventListener("keydown", (event) => {
            const here = document.activeElement.closest("section");  // that one alone; from elsewhere, all
            if (event.key !== "w" || event.ctrlKey || event.metaKey || event.altKey || (here && here !== section)) return;
            const wanted = found[Number(choice.value)][0] === "words" ? "pieces" : "words";
            choice.value = String(found.findIndex(([name]) => name === wanted));
            choice.dispatchEvent(new Event("change"));
            event.preventDefault();
          });
        }
      }
      steps(section.querySelector(".scroll"), () => [...table.tBodies[0].rows]);
    }
    const glances = section.querySelector(".glances");
    if (glances) {
      const figures = [...glances.querySelectorAll("figure.glance")];
      if (cross && (cross.length > 1 || cross[0].length > 1)) {
        const usual = [["as usual", mean(cross[record.layer < 0 ? cross.length + record.layer : record.layer])]];
        choose(controls, [...usual, ...parts(cross)], (weights) => paint(section, figures, record.grid, weights));
      }
      const smooth = element("input");
      smooth.type = "checkbox";
      const around = element("label", " smooth (not what the model saw)");
      around.prepend(smooth);
      smooth.addEventListener("change", () => glances.classList.toggle("soft", smooth.checked));
      controls.append(around);
      const enlarge = (figure) => figures.forEach((f) => f.classList.toggle("large", f === figure));
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
