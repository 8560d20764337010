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
  const label = (text) => {
    const inner = element("bdi", text.trim() || "␣");
    return inner;
  };
  const entropy = (row) => row.reduce((sum, w) => (w > 0 ? sum - w * Math.log(w) : sum), 0);

  // Everything that can be looked at: [name, {source, target, weights, pieces}]; pieces: the rows are what was written.
  const views = (record) => {
    const [source, target] = [record.source_tokens, record.target_tokens].map((tokens) => tokens.map((t) => t.text));
    const pieces = (weights) => ({ source, target, weights, pieces: true });
    const cross = record.attention.cross;
    const mean = (matrices) => matrices[0].map((row, t) => row.map((_, n) =>
      matrices.reduce((sum, m) => sum + m[t][n], 0) / matrices.length));
    const found = [["pieces", pieces(mean(cross[record.layer < 0 ? cross.length + record.layer : record.layer]))]];
    if (record.words && record.words.weights.length) found.push(["words", record.words]);
    const each = (name, layers, view) => {
      if (layers.length > 1) found.push([`${name}mean of all layers`, view(mean(layers.map(mean)))]);
      layers.forEach((heads, l) => {
        found.push([`${name}layer ${l}, mean of its heads`, view(mean(heads))]);
        if (heads.length > 1) heads.forEach((m, h) => found.push([`${name}layer ${l}, head ${h}`, view(m)]));
      });
    };
    if (cross.length > 1 || cross[0].length > 1) each("", cross, pieces);
    const { encoder, decoder } = record.attention;
    if (encoder) each("the source at itself: ", encoder, (weights) => ({ source, target: source, weights }));
    const before = ["START", ...target.slice(0, -1)];
    if (decoder) each("what was written at itself: ", decoder, (weights) => ({ ...pieces(weights), source: before }));
    return found;
  };

  const draw = (table, view, record) => {
    const head = element("tr");
    head.append(element("td"));
    for (const text of view.source) {
      const cell = element("th");
      cell.scope = "col";
      cell.append(label(text));
      head.append(cell);
    }
    for (const text of view.pieces ? ["p", "entropy", ...(record.gates ? ["β"] : []), "instead"] : ["entropy"]) {
      const cell = element("th", text);
      cell.scope = "col";
      head.append(cell);
    }
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...view.target.map((text, t) => {
      const row = element("tr");
      const name = element("th");
      name.scope = "row";
      name.append(label(text));
      row.append(name);
      for (const w of view.weights[t]) {
        const cell = element("td", undefined, `w${Math.min(LEVELS, Math.max(0, Math.round(LEVELS * w)))}`);
        cell.append(element("span", w.toFixed(2)));
        row.append(cell);
      }
      const p = record.log_probabilities[t];
      if (view.pieces) row.append(element("td", p === undefined ? "" : Math.exp(p).toFixed(2), "n"));
      row.append(element("td", entropy(view.weights[t]).toFixed(2), "n"));
      if (view.pieces && record.gates) row.append(element("td", record.gates[t].toFixed(2), "n"));
      const others = (record.runners_up || [])[t] || [];
      if (view.pieces) row.append(element("td", others.map((o) => `${o.text.trim() || "␣"} ${o.probability.toFixed(2)}`).join(", "), "t"));
      return row;
    }));
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
    if (table && controls && record.attention && record.attention.cross) {
      const found = views(record);
      if (found.length > 1) {
        const choice = element("select");
        found.forEach(([name], i) => choice.append(new Option(name, String(i))));
        const around = element("label", "shown: ");
        around.append(choice);
        controls.append(around);
        choice.addEventListener("change", () => draw(table, found[Number(choice.value)][1], record));
      }
      steps(section.querySelector(".scroll"), () => [...table.tBodies[0].rows]);
    }
    const glances = section.querySelector(".glances");
    if (glances) {
      const figures = [...glances.querySelectorAll("figure")];
      const smooth = element("input");
      smooth.type = "checkbox";
      const around = element("label", " smooth (not what the model saw)");
      around.prepend(smooth);
      smooth.addEventListener("change", () => glances.classList.toggle("soft", smooth.checked));
      glances.before(around);
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
