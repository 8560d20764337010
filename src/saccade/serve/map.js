// Where the model looked, to be pointed at: a table of words and pieces, or the cells of a picture.
import { element, rove, say } from "./words.js";

const CELLS = 6000;  // of a table; a browser stops for seconds over many more, so a larger map is a drawing
const WIDE = 1500;  // pixels that a drawing may take

export const shown = (record) => {  // [T][N]: the mean over the heads of the layer that is shown
  const cross = record.attention && record.attention.cross;
  if (!cross) return null;
  const layer = cross[record.layer < 0 ? cross.length + record.layer : record.layer];
  return layer[0].map((row, t) => row.map((_, n) => layer.reduce((sum, head) => sum + head[t][n], 0) / layer.length));
};

// Cells are clicked, dragged over, or added to with Shift; `heard` gets those that are meant. Each has its row and
// column in `at` and its place in `place`; in a table only a row can be dragged over, since a row is one word.
const point = (cells, rowsApart, heard) => {
  let from = null, over = [], taken = [];
  const between = (a, b, x) => Math.min(a, b) <= x && x <= Math.max(a, b);
  const area = (a, b) => cells.filter(({ at }) => (rowsApart ? at[0] === a.at[0] : between(a.at[0], b.at[0], at[0])) && between(a.at[1], b.at[1], at[1]));
  const mark = (chosen) => {
    cells.forEach((cell) => cell.classList.remove("pressed"));
    chosen.forEach((cell) => cell.classList.add("pressed"));
  };
  const take = (chosen) => {
    taken = chosen;
    mark(taken);
    heard(taken);
  };
  const drop = () => {
    const dragged = over;
    [from, over] = [null, []];
    if (dragged.length > 1) take(dragged);
  };
  cells.forEach((cell) => {
    cell.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button) return;  // a finger that moves scrolls
      from = cell;
      document.addEventListener("pointerup", drop, { once: true });
    });
    cell.addEventListener("pointerenter", () => {
      if (!from) return;
      over = area(from, cell);
      mark(over);
    });
    cell.addEventListener("click", (event) => {
      const beside = event.shiftKey ? taken.filter((c) => c !== cell && (!rowsApart || c.at[0] === cell.at[0])) : [];
      take([...beside, cell]);
    });
  });
  rove(cells);
};

// A row for each word that was written, a column for each piece of the source.
export const tabulate = (box, record, looked, heard) => {
  if (looked.length * looked[0].length > CELLS) {
    box.replaceChildren(draw(record, looked, heard));
    return;
  }
  const table = element("table", undefined, { className: "glances" }), buttons = [];
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
      Object.assign(here, { at: [t, n], place: n });
      cell.append(here);
      buttons.push(here);
    });
  });
  point(buttons, true, (cells) => heard(cells[0].at[0], cells.map((c) => c.place)));
  box.replaceChildren(table);
};

// The same as a drawing, one pixel a cell, enlarged as far as there is room.
const draw = (record, looked, heard) => {
  const [rows, columns] = [looked.length, looked[0].length];
  const canvas = element("canvas", undefined, { className: "drawn", width: columns, height: rows });
  const pixels = new ImageData(columns, rows), side = Math.max(1, Math.min(8, Math.floor(WIDE / columns)));
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--look").trim().split(" ").map(Number);
  looked.forEach((row, t) => row.forEach((w, n) => pixels.data.set([...ink, 255 * w], 4 * (t * columns + n))));
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  canvas.style.width = `${side * columns}px`;
  canvas.role = "img";
  canvas.ariaLabel = `${say("table")}: ${rows} × ${columns}`;
  const at = (event) => [[event.offsetY, rows], [event.offsetX, columns]].map(([far, many]) => Math.max(0, Math.min(many - 1, Math.floor(far / side))));
  canvas.addEventListener("pointermove", (event) => {
    const [t, n] = at(event);
    canvas.title = `${record.target_tokens[t].text} ← ${record.source_tokens[n].text} ${looked[t][n].toFixed(2)}`;
  });
  canvas.addEventListener("click", (event) => {
    const [t, n] = at(event);
    heard(t, [n]);
  });
  return canvas;
};

// Cells over a picture.
export const glaze = (glass, record, heard) => {
  const [rows, columns] = record.grid, side = (i) => `${(100 * record.cell) / record.size[i]}%`;
  glass.style.gridTemplate = `repeat(${rows}, ${side(0)}) / repeat(${columns}, ${side(1)})`;
  const buttons = Array.from({ length: rows * columns }, (_, n) => {
    const here = element("button", undefined, { type: "button" });
    return Object.assign(here, { at: [Math.floor(n / columns), n % columns], place: n });
  });
  glass.replaceChildren(...buttons);
  point(buttons, false, (cells) => heard(cells.map((c) => c.place)));
};
