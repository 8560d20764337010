// One answer of one model, and everything that can be asked about it.
import { glaze, shown, tabulate } from "./map.js";
import { element, rove, say, visible } from "./words.js";

const END = "∎";

const share = (p) => (p > 0 && p < 0.005 ? "< 0.01" : p.toFixed(2));

const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.codePointAt(0)};`);
const label = (text, x, y, more) => `<text x="${x}" y="${y}" font-size="14" font-family="sans-serif" ${more}>${escape(text.trim() || "␣")}</text>`;
const download = (name, parts, width, height) => {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" style="background:#fff" viewBox="0 0 ${width} ${height}">${parts.join("")}</svg>`;
  element("a", undefined, { download: name, href: URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })) }).click();
};

let count = 0;

export class Panel {
  // `host` asks on its behalf: answer(panel, {prefix}) for a new answer, force(panel, target, {word, places}) for a given one.
  constructor(host) {
    this.host = host;
    this.turn = 0;  // who asked last is shown
    this.root = document.getElementById("panel").content.cloneNode(true).firstElementChild;
    const name = this.part("whose");
    name.id = `whose-${count++}`;
    this.root.setAttribute("aria-labelledby", name.id);
    this.part("export").addEventListener("click", () => this.save());
    this.part("save-tree").addEventListener("click", () => this.saveTree());
    this.clear();
  }

  part(name) { return this.root.querySelector(`.${name}`); }

  clear() {
    this.record = this.looked = this.asked = this.grown = null;
    for (const name of ["output", "source", "instead", "nbest", "map", "branches", "glass", "steered"]) this.part(name).replaceChildren();
    for (const name of ["export", "seen", "others", "whole", "tree", "begins"]) this.part(name).hidden = true;
    this.said("");
    this.note("");
    this.stale(false);
  }

  // What is shown no longer belongs to what was asked.
  stale(is) { this.root.inert = is; }

  said(text) { this.part("said").textContent = text; }

  note(text, bad = false) {
    this.part("note").textContent = text;
    this.part("note").classList.toggle("bad", bad);
  }

  // A new answer to what was `asked`: {model, text} or {model, picture: {file, bitmap}}, perhaps with a prefix.
  show(record, asked) {
    Object.assign(this, { record, asked, looked: shown(record) });
    const bitmap = asked.picture && asked.picture.bitmap, text = Boolean(this.looked) && !record.grid;
    this.stale(false);
    this.spell();
    this.part("steered").replaceChildren();
    this.part("instead").replaceChildren();
    this.part("export").hidden = !this.looked || (Boolean(record.grid) && !bitmap);
    this.part("whole").hidden = !text;
    this.part("whole").open = text && this.looked.length * this.looked[0].length <= 1200;
    this.part("seen").hidden = !(bitmap && record.grid && this.looked);
    this.part(text ? "whole" : "seen").querySelector(".place").append(this.part("steered"));
    if (text) tabulate(this.part("map"), record, this.looked, (word, places) => this.steer(word, places));
    if (!this.part("seen").hidden) glaze(this.part("glass"), record, (places) => this.steer(this.word, places));
    if (record.tree) this.grow();  // what was forced has none; the one before stays
    else this.mark();
    if (record.alternatives) this.list([record.text, ...record.alternatives.map((a) => a.text)]);
    this.part("begins").hidden = !asked.prefix;
    if (asked.prefix) this.begun(asked.prefix);
    if (record.target_tokens.length) this.glance(0);
    const notes = [];
    if (!this.looked) notes.push(say(record.large ? "large" : "blind"));
    if (asked.picture && !bitmap) notes.push(say("notShown"));
    if (record.cut_source) notes.push(say("cut"));
    if (record.cut_output) notes.push(say("cutOutput"));
    if (record.unknown && record.unknown.length) notes.push(`${say("unknown")} ${[...new Set(record.unknown)].map(visible).join(" ")}`);
    this.note(notes.join(" "));
    this.said(record.text);
  }

  begun(prefix) {
    const again = element("button", say("anew"), { type: "button" });
    again.addEventListener("click", () => this.host.answer(this));
    this.part("begins").replaceChildren(`${say("begins")} “`, element("bdi", prefix), "” ", again);
  }

  // Both texts, piece by piece; pieces of one word touch.
  spell() {
    const { record, looked } = this;
    const pieces = (whole, tokens, heard) => {
      const letters = [...whole];  // spans count code points
      let end = 0;
      return tokens.flatMap(({ text, span }, i) => {
        const from = Math.max(span[0], end), told = from < span[1] ? letters.slice(from, span[1]).join("") : "·";
        const piece = span[0] < span[1] ? told : text, bare = piece.trimStart();  // one letter may be several pieces
        const before = letters.slice(end, span[0]).join("") + piece.slice(0, piece.length - bare.length);
        const made = element("button", bare || "␣", { type: "button" });
        [, end] = span;
        made.at = [0, i];
        for (const kind of ["mouseenter", "focus", "click"]) made.addEventListener(kind, () => heard(i));
        return [before, made];
      });
    };
    const words = pieces(record.text, record.target_tokens, (t) => this.glance(t));
    const source = pieces(this.asked.text || "", record.source_tokens, (n) => this.seenBy(n));
    this.part("output").replaceChildren(...words);
    this.part("source").replaceChildren(...source);
    this.words = words.filter((w) => typeof w !== "string");
    this.pieces = source.filter((w) => typeof w !== "string");
    this.words.forEach((word, t) => {
      const best = looked && !record.grid ? looked[t].indexOf(Math.max(...looked[t])) : -1;
      const where = best < 0 ? "" : `, ${say("lookedAt")} ${record.source_tokens[best].text}`;
      word.ariaLabel = `${word.textContent}, p ${share(Math.exp(record.log_probabilities[t]))}${where}`;
    });
    rove(this.words);
    rove(this.pieces);
  }

  // Where it looked for word t, on both sides, and what might have stood there.
  glance(t) {
    const { record, looked } = this;
    this.word = t;
    this.words.forEach((word, i) => {
      word.classList.toggle("here", i === t);
      word.style.removeProperty("--w");
    });
    if (looked && record.grid) this.overlay(t);
    else if (looked) this.pieces.forEach((piece, n) => { piece.classList.remove("here"); piece.style.setProperty("--w", looked[t][n].toFixed(3)); });
    this.offer(this.part("instead"), t, (record.runners_up || [])[t] || [], say("instead"));
  }

  // The other way round: which words looked at piece n.
  seenBy(n) {
    if (!this.looked) return;
    this.pieces.forEach((piece, i) => { piece.classList.toggle("here", i === n); piece.style.removeProperty("--w"); });
    this.words.forEach((word, t) => { word.classList.remove("here"); word.style.setProperty("--w", this.looked[t][n].toFixed(3)); });
  }

  // Words that might stand in place of word t; each forces what came before it, and itself.
  offer(box, t, others, why) {
    const { record } = this, own = Math.exp(record.log_probabilities[t]);
    const told = element("span", `“${record.target_tokens[t].text.trim() || "␣"}” p = ${share(own)}. `);
    box.replaceChildren(told, ...(others.length ? [element("span", `${why}: `)] : []));
    const before = t ? [...record.text].slice(0, record.target_tokens[t - 1].span[1]).join("") : "";
    for (const other of others) {
      const choice = element("button", `${other.text.trim() || "␣"} ${share(other.probability)}`, { type: "button" });
      choice.disabled = other.text === "␣";
      choice.addEventListener("click", () => (other.text === END ? this.take(before) : this.host.answer(this, { prefix: before + other.text })));
      box.append(choice);
    }
  }

  // What if, for one word, it looked at these places alone? What it would write there, and what becomes of the words after it.
  async steer(word, places) {
    const { record } = this, found = await this.host.force(this, record.text, { word, places });
    if (!found) return;
    const chance = ({ log_probabilities }, t) => Math.exp(log_probabilities[t]);
    const own = { text: found.target_tokens[word].text, probability: chance(found, word) };
    this.offer(this.part("steered"), word, [own, ...found.runners_up[word]].sort((a, b) => b.probability - a.probability), say("steered"));
    const moved = found.target_tokens.map(({ text }, t) => [text.trim() || "␣", chance(record, t), chance(found, t)])
      .filter(([, was, is], t) => t > word && Math.abs(is - was) >= 0.01).map(([text, was, is]) => `“${text}” ${share(was)} → ${share(is)}`);
    this.part("steered").append(element("span", ` ${moved.length ? `${say("after")}: ${moved.join(", ")}` : say("same")}`));
  }

  overlay(t) {
    const { record, looked } = this, canvas = this.part("overlay"), columns = record.grid[1];
    const picture = this.asked.picture.bitmap;
    if (!picture) return;
    Object.assign(canvas, { width: picture.width, height: picture.height });
    canvas.setAttribute("aria-label", `${say("looks")} ${record.target_tokens[t].text}`);
    const context = canvas.getContext("2d");
    const most = looked.reduce((top, row) => Math.max(top, ...row), 1e-9);  // one scale for all words
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

  // All answers, the best first; the one that is shown is marked.
  list(texts) {
    this.part("others").hidden = texts.length < 2;
    this.part("nbest").replaceChildren(...texts.map((text) => {
      const row = element("li"), choice = element("button", text || "␣", { type: "button" });
      choice.addEventListener("click", () => this.take(text));
      row.append(choice);
      return row;
    }));
    this.mark();
  }

  async take(text) {
    const { asked } = this, found = await this.host.force(this, text);
    if (found) this.show(found, { ...asked, prefix: "" });
  }

  // Which answer, and which way through the tree, is shown.
  mark() {
    for (const choice of this.part("nbest").querySelectorAll("button")) {
      choice.toggleAttribute("aria-current", choice.textContent === (this.record.text || "␣"));
    }
    const { tree, texts } = this.grown || {};
    if (!tree) return;
    const shownAs = new Set();
    for (let i = tree.findIndex((b, n) => b.text === END && texts[n] === this.record.text); i >= 0; i = tree[i].parent) shownAs.add(i);
    for (const word of this.part("branches").querySelectorAll("button")) word.classList.toggle("best", shownAs.has(word.branch));
  }

  // All that the beam ever kept. A word stands in the column of its place; a row is a way that was gone from some word on.
  grow() {
    const { tree, text: answer } = this.record, children = tree.map(() => []), roots = [], texts = [], buttons = [];
    tree.forEach((branch, i) => {
      (branch.parent < 0 ? roots : children[branch.parent]).push(i);
      const added = branch.text === END || branch.text === "␣" ? "" : branch.text;
      texts[i] = (branch.parent < 0 ? "" : texts[branch.parent]) + added;
    });
    this.grown = { tree, texts };
    const first = new Set();
    for (let i = tree.findIndex((b, n) => b.text === END && texts[n] === answer); i >= 0; i = tree[i].parent) first.add(i);
    const order = (list) => [...list].sort((a, b) => first.has(b) - first.has(a) || tree[b].score - tree[a].score);
    const ways = order(roots).reverse().map((i) => ({ i, depth: 0 }));  // a stack: paths may be longer than recursion goes
    const before = [];  // what a way begins with, in faint letters: where it turned off may be far to the right
    for (let row = 0; ways.length; row++) {
      let { i, depth } = ways.pop();
      if (depth) {
        before.push(element("span", texts[tree[i].parent], { className: "before", ariaHidden: "true" }));
        before.at(-1).style.gridArea = `${row + 1} / 1 / auto / ${depth + 1}`;
      }
      for (let turn = depth > 0; i !== undefined; depth++, turn = false) {
        buttons.push(this.branch(i, row, depth, turn));
        const [next, ...others] = order(children[i]);
        for (const other of others.reverse()) ways.push({ i: other, depth: depth + 1 });
        i = next;
      }
    }
    this.part("tree").hidden = !tree.length;
    this.part("branches").replaceChildren(...buttons, ...before);
    rove(buttons);
    this.mark();
  }

  branch(i, row, depth, turn) {
    const { tree, texts } = this.grown, { text, probability } = tree[i];
    const word = element("button", text.trim() || "␣", { type: "button", title: `p = ${probability.toFixed(3)}` });
    word.append(element("small", share(probability)));
    word.classList.toggle("turn", turn);
    word.style.gridArea = `${row + 1} / ${depth + 1}`;
    word.style.setProperty("--p", Math.max(0.3, probability).toFixed(2));
    Object.assign(word, { at: [row, depth], branch: i });
    word.addEventListener("click", () => (text === END ? this.take(texts[i]) : this.host.answer(this, { prefix: texts[i] })));
    return word;
  }

  save() {
    const { record, looked } = this;
    if (record.grid) element("a", undefined, { download: "glance.png", href: this.part("overlay").toDataURL() }).click();
    else {
      const [left, top, side] = [140, 120, 24];
      const parts = [
        ...record.source_tokens.map((p, n) => label(p.text, 0, 0, `transform="translate(${left + side * n + 16},${top - 6}) rotate(-60)"`)),
        ...looked.map((row, t) => label(record.target_tokens[t].text, left - 6, top + side * t + 17, 'text-anchor="end"')
          + row.map((w, n) => `<rect x="${left + side * n}" y="${top + side * t}" width="${side - 1}" height="${side - 1}" fill="#004678" fill-opacity="${w.toFixed(3)}"/>`).join("")),
      ];
      download("glance.svg", parts, left + side * record.source_tokens.length + 80, top + side * looked.length + 10);
    }
  }

  // The tree as it stands there; a line leads from where a way turned off.
  saveTree() {
    const { tree } = this.grown, words = [...this.part("branches").querySelectorAll("button")], places = new Map(words.map((w) => [w.branch, w.at]));
    const wide = [];
    for (const { branch, at } of words) wide[at[1]] = Math.max(wide[at[1]] || 0, 12 * [...tree[branch].text.trim()].length + 60);
    const left = (depth) => wide.slice(0, depth).reduce((sum, w) => sum + w, 10), below = (row) => 24 + 24 * row;
    const parts = words.map(({ branch, at: [row, depth], classList }) => {
      const { text, probability, parent } = tree[branch], [from] = places.get(parent) || [row];
      const line = from === row ? "" : `<path d="M${left(depth) - 8} ${below(from) - 5}V${below(row) - 5}h6" fill="none" stroke="#888"/>`;
      const bold = classList.contains("best") ? 'font-weight="bold"' : "";
      return `${line}${label(text, left(depth), below(row), bold)}${label(share(probability), left(depth + 1) - 14, below(row), 'text-anchor="end" fill="#555"')}`;
    });
    const rows = Math.max(...words.map((w) => w.at[0])) + 1;
    download("tree.svg", parts, left(wide.length), below(rows));
  }
}
