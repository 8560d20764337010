// One answer of one model, and everything that can be asked about it.
import { element, rove, say } from "./words.js";

const END = "∎";

const share = (p) => (p > 0 && p < 0.005 ? "< 0.01" : p.toFixed(2));

const shown = (record) => {  // [T][N]: the mean over the heads of the layer that is shown
  const cross = record.attention && record.attention.cross;
  if (!cross) return null;
  const layer = cross[record.layer < 0 ? cross.length + record.layer : record.layer];
  return layer[0].map((row, t) => row.map((_, n) => layer.reduce((sum, head) => sum + head[t][n], 0) / layer.length));
};

export class Panel {
  // `host` asks: answer(panel, {prefix}) for a new answer, force(panel, target, {word, place}) for a given one.
  constructor(host) {
    this.host = host;
    this.root = document.getElementById("panel").content.cloneNode(true).firstElementChild;
    this.part("export").addEventListener("click", () => this.save());
    this.clear();
  }

  part(name) { return this.root.querySelector(`.${name}`); }

  clear() {
    this.record = this.looked = null;
    for (const name of ["output", "source", "instead", "nbest", "glances", "branches", "glass"]) this.part(name).replaceChildren();
    for (const name of ["export", "seen", "others", "whole", "tree"]) this.part(name).hidden = true;
    this.note("");
  }

  note(text, bad = false) {
    this.part("note").textContent = text;
    this.part("note").classList.toggle("bad", bad);
  }

  // A new answer; `picture` is what was looked at, if it was a picture.
  show(record, picture = null) {
    Object.assign(this, { record, picture, looked: shown(record) });
    const words = record.target_tokens.map((token, t) => {
      const word = element("button", token.text, { type: "button" });
      for (const kind of ["mouseenter", "focus", "click"]) word.addEventListener(kind, () => this.glance(t));
      return word;
    });
    this.part("output").replaceChildren(...words);
    this.part("source").replaceChildren(...record.source_tokens.map((token) => element("span", token.text)));
    this.part("instead").replaceChildren();
    this.part("export").hidden = !this.looked;
    this.part("whole").hidden = !this.looked || Boolean(record.grid);
    this.part("seen").hidden = !(picture && record.grid && this.looked);
    if (!this.part("whole").hidden) this.tabulate();
    if (!this.part("seen").hidden) this.glaze();
    if (record.tree) this.grow(record);  // what was forced has none; the one before stays
    if (record.alternatives) this.list(record.alternatives);
    if (!this.part("seen").hidden) this.glance(0);
    const notes = [];
    if (!this.looked) notes.push(say("blind"));
    if (record.cut_source) notes.push(say("cut"));
    if (record.cut_output) notes.push(say("cutOutput"));
    if (record.unknown && record.unknown.length) notes.push(`${say("unknown")} ${[...new Set(record.unknown)].join(" ")}`);
    this.note(notes.join(" "));
  }

  // Where it looked for word t, on both sides, and what might have stood there.
  glance(t) {
    const { record, looked } = this;
    this.word = t;
    [...this.part("output").children].forEach((word, i) => word.classList.toggle("here", i === t));
    if (looked && record.grid) this.overlay(t);
    else if (looked) [...this.part("source").children].forEach((piece, n) => piece.style.setProperty("--w", looked[t][n].toFixed(3)));
    this.offer(t, (record.runners_up || [])[t] || [], say("instead"));
  }

  offer(t, others, why) {
    const { record } = this, own = Math.exp(record.log_probabilities[t]);
    const told = element("span", `“${record.target_tokens[t].text.trim() || "␣"}” p = ${share(own)}. `);
    this.part("instead").replaceChildren(told, ...(others.length ? [element("span", `${why}: `)] : []));
    const before = record.target_tokens.slice(0, t).map((p) => p.text).join("");
    const apart = t && record.target_tokens[t].text.startsWith(" ") ? " " : "";
    for (const other of others) {
      const choice = element("button", `${other.text.trim() || "␣"} ${share(other.probability)}`, { type: "button" });
      choice.disabled = other.text === END;
      choice.addEventListener("click", () => this.host.answer(this, { prefix: before + (other.text.startsWith(" ") ? "" : apart) + other.text }));
      this.part("instead").append(choice);
    }
  }

  async steer(word, place) {
    const found = await this.host.force(this, this.record.text, { word, place });
    if (!found) return;
    const own = { text: found.target_tokens[word].text, probability: Math.exp(found.log_probabilities[word]) };
    this.glance(word);
    this.offer(word, [own, ...found.runners_up[word]].sort((a, b) => b.probability - a.probability), say("steered"));
  }

  tabulate() {
    const { record, looked } = this, table = this.part("glances"), buttons = [];
    table.replaceChildren();
    const head = table.createTHead().insertRow();
    head.append(element("td"), ...record.source_tokens.map((p) => element("th", p.text, { scope: "col" })));
    const body = table.createTBody();
    looked.forEach((row, t) => {
      const line = body.insertRow(), what = record.target_tokens[t].text;
      line.append(element("th", what, { scope: "row" }));
      row.forEach((w, n) => {
        const cell = line.insertCell();
        cell.style.setProperty("--w", w.toFixed(3));
        cell.title = w.toFixed(3);
        const here = element("button", undefined, { type: "button", ariaLabel: `${what} ← ${record.source_tokens[n].text} ${w.toFixed(2)}` });
        here.at = [t, n];
        here.addEventListener("click", () => this.steer(t, n));
        cell.append(here);
        buttons.push(here);
      });
    });
    rove(buttons);
  }

  // Cells of a picture, to be pointed at.
  glaze() {
    const { record } = this, [rows, columns] = record.grid, glass = this.part("glass");
    const side = (i) => `${(100 * record.cell) / record.size[i]}%`;
    glass.style.gridTemplate = `repeat(${rows}, ${side(0)}) / repeat(${columns}, ${side(1)})`;
    const buttons = Array.from({ length: rows * columns }, (_, n) => {
      const here = element("button", undefined, { type: "button" });
      here.at = [Math.floor(n / columns), n % columns];
      here.addEventListener("click", () => this.steer(this.word, n));
      return here;
    });
    glass.replaceChildren(...buttons);
    rove(buttons);
  }

  overlay(t) {
    const { record, looked, picture } = this, canvas = this.part("overlay"), columns = record.grid[1];
    if (!picture) return;
    Object.assign(canvas, { width: picture.width, height: picture.height });
    canvas.setAttribute("aria-label", `${say("looks")} ${record.target_tokens[t].text}`);
    const context = canvas.getContext("2d"), most = Math.max(...looked.flat(), 1e-9);  // one scale for all words
    const cell = (record.cell * canvas.width) / record.size[1];
    context.drawImage(picture, 0, 0);
    looked[t].forEach((w, n) => {
      context.fillStyle = `rgba(0,0,0,${0.8 - (0.8 * w) / most})`;
      context.fillRect((n % columns) * cell, Math.floor(n / columns) * cell, cell, cell);
    });
    [...this.part("glass").children].forEach((here, n) => {
      const [row, column] = here.at;
      here.ariaLabel = `${say("row")} ${row + 1}, ${say("column")} ${column + 1}: ${looked[t][n].toFixed(2)}`;
    });
  }

  list(alternatives) {
    this.part("others").hidden = !alternatives.length;
    this.part("nbest").replaceChildren(...alternatives.map((other) => {
      const row = element("li"), choice = element("button", other.text || "␣", { type: "button" });
      choice.addEventListener("click", async () => {
        const found = await this.host.force(this, other.text);
        if (found) this.show(found, this.picture);
      });
      row.append(choice, ` ${other.score.toFixed(2)}`);
      return row;
    }));
  }

  // All that the beam ever kept. A word stands in the column of its place; a row is a way that was gone from some word on.
  grow(record) {
    const { tree } = record, children = tree.map(() => []), roots = [], texts = [], buttons = [];
    tree.forEach((branch, i) => {
      (branch.parent < 0 ? roots : children[branch.parent]).push(i);
      const added = branch.text === END || branch.text === "␣" ? "" : branch.text;
      texts[i] = (branch.parent < 0 ? "" : texts[branch.parent]) + added;
    });
    const best = new Set();
    for (let i = tree.findIndex((b, n) => b.text === END && texts[n] === record.text); i >= 0; i = tree[i].parent) best.add(i);
    let rows = 0;
    const order = (list) => [...list].sort((a, b) => best.has(b) - best.has(a) || tree[b].score - tree[a].score);
    const ways = order(roots).reverse().map((i) => ({ i, depth: 0 }));  // a stack: what a path can be as long as, recursion cannot
    while (ways.length) {
      let { i, depth } = ways.pop();
      for (let first = true; i !== undefined; depth++, first = false) {
        const { text, probability } = tree[i], at = i;
        const word = element("button", text.trim() || "␣", { type: "button", title: `p = ${probability.toFixed(3)}` });
        word.append(element("small", share(probability)));
        word.classList.toggle("best", best.has(i));
        word.classList.toggle("turn", first && depth > 0);
        word.style.gridArea = `${rows + 1} / ${depth + 1}`;
        word.style.setProperty("--p", Math.max(0.15, probability).toFixed(2));
        word.at = [rows, depth];
        word.addEventListener("click", async () => {
          if (text !== END) { this.host.answer(this, { prefix: texts[at] }); return; }
          const found = await this.host.force(this, texts[at]);
          if (found) this.show(found, this.picture);
        });
        buttons.push(word);
        const [next, ...others] = order(children[i]);
        for (const other of others.reverse()) ways.push({ i: other, depth: depth + 1 });
        i = next;
      }
      rows++;
    }
    this.part("tree").hidden = !tree.length;
    this.part("branches").replaceChildren(...buttons);
    rove(buttons);
  }

  save() {
    const { record, looked } = this, link = element("a", undefined, { download: "glance.svg" });
    if (record.grid) Object.assign(link, { download: "glance.png", href: this.part("overlay").toDataURL() });
    else {
      const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.codePointAt(0)};`);
      const [left, top, side] = [140, 120, 24];
      const label = (text, x, y, more) => `<text x="${x}" y="${y}" font-size="14" font-family="sans-serif" ${more}>${escape(text.trim() || "␣")}</text>`;
      const parts = [
        ...record.source_tokens.map((p, n) => label(p.text, 0, 0, `transform="translate(${left + side * n + 16},${top - 6}) rotate(-60)"`)),
        ...looked.map((row, t) => label(record.target_tokens[t].text, left - 6, top + side * t + 17, 'text-anchor="end"')
          + row.map((w, n) => `<rect x="${left + side * n}" y="${top + side * t}" width="${side - 1}" height="${side - 1}" fill="#004678" fill-opacity="${w.toFixed(3)}"/>`).join("")),
      ];
      const [width, height] = [left + side * record.source_tokens.length + 80, top + side * looked.length + 10];
      const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}">${parts.join("")}</svg>`;
      link.href = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    }
    link.click();
  }
}
