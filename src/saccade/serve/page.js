// What was typed or dropped goes to one model or two; each has a panel for its answer.
import { Panel } from "./panel.js";
import { element, say, speak } from "./words.js";

const PAUSE = 400, AGAIN = 2000;
const $ = (id) => document.getElementById(id);
let models = [], limits = { characters: 5000 }, picture = null, timer = 0, turn = 0;

const state = (text, bad = false) => {
  $("state").textContent = text;
  $("state").classList.toggle("bad", bad);
};

const ask = async (path, options = {}) => {
  const headers = { ...(options.headers || {}) };
  const key = sessionStorage.getItem("key");
  if (key) headers.Authorization = `Bearer ${key}`;
  const response = await fetch(path, { ...options, headers });
  const told = await response.json();
  if (response.status === 401) $("key").hidden = false;
  if (!response.ok) throw Object.assign(new Error(response.status === 401 ? say("needKey") : told.error.message), { told });
  return told;
};
const post = (path, value) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });
const look = (asked) =>
  ask(`/v1/caption?${new URLSearchParams(asked)}`, { method: "POST", body: picture.file });
const wrong = (error) => state(error.told ? error.message : say("gone"), true);

const host = {
  async answer(panel, more) {
    const asked = { model: panel.model, nbest: 5, attention: true, tree: true, ...more };
    try {
      const told = await (picture ? look(asked) : post("/v1/translate", { ...asked, texts: [$("text").value] }));
      panel.show(told.predictions[0], picture && picture.bitmap);
    } catch (error) { wrong(error); }
  },
  async force(panel, target, steer) {
    try {
      const source = $("text").value;
      const told = await (picture
        ? look({ model: panel.model, target, ...steer })
        : post("/v1/align", { model: panel.model, pairs: [{ source, target }], ...(steer && { steer }) }));
      return told.predictions[0];
    } catch (error) { wrong(error); return null; }
  },
};
const panels = [new Panel(host), new Panel(host)];
const chosen = () => panels.filter((panel) => panel.model);
const clear = () => panels.forEach((panel) => panel.clear());

// Asks every panel's model about what is there now. Who asks later is answered; what came before is forgotten.
const answer = async () => {
  const mine = ++turn, text = $("text").value;
  if (!chosen().length || (!picture && text.length > limits.characters)) return;
  if (!picture && (reads() === "pictures" || !text.trim())) {
    clear();
    state(say(reads() === "pictures" ? "emptyPicture" : "empty"));
    return;
  }
  state(say("working"));
  try {
    const asked = (panel) => ({ model: panel.model, nbest: 5, attention: true, tree: true });
    const told = await Promise.all(chosen().map((panel) =>
      (picture ? look(asked(panel)) : post("/v1/translate", { ...asked(panel), texts: [text] }))));
    if (mine !== turn) return;
    chosen().forEach((panel, i) => panel.show(told[i].predictions[0], picture && picture.bitmap));
    state("");
    remember(text, told[0].predictions[0].text);
    const beside = panels[1].model;
    const link = { model: panels[0].model, ...(beside && { beside }), ...(!picture && { text }) };
    history.replaceState(null, "", `#${new URLSearchParams(link)}`);
  } catch (error) {
    if (mine !== turn) return;
    wrong(error);
    if (!error.told) setTimeout(() => { if (mine === turn) answer(); }, AGAIN);
  }
};

const remember = (text, said) => {
  const first = $("history").firstChild, what = picture ? picture.file.name || say("picture") : text;
  if (first && first.dataset.what === what) first.remove();
  const row = element("li"), again = element("button", `${what.slice(0, 60)} → ${said.slice(0, 60)}`, { type: "button" });
  row.dataset.what = what;
  const then = picture;
  again.addEventListener("click", () => {
    if (then) { picture = then; answer(); return; }
    $("text").value = text;
    typed(0);
  });
  row.append(again);
  $("history").prepend(row);
};

const typed = (pause = PAUSE) => {
  const length = $("text").value.length, over = length > limits.characters;
  $("count").textContent = `${length} / ${limits.characters}${over ? ` · ${say("over")}` : ""}`;
  $("count").classList.toggle("over", over);
  clearTimeout(timer);
  timer = setTimeout(answer, pause);
};

const take = async (file) => {
  if (!file || reads() !== "pictures") return;
  try {
    picture = { file, bitmap: await createImageBitmap(file) };
  } catch {
    picture = { file, bitmap: null };  // the service may know the format, or say what is wrong
  }
  answer();
};

const reads = () => {
  const first = models.find((m) => m.name === $("model").value);
  return first && first.reads;
};

// The models were chosen: which can stand beside, what is to be typed or dropped, and the answers anew.
const fit = () => {
  const pictures = reads() === "pictures", before = $("beside").value;
  const alike = models.filter((m) => !m.unfit && m.reads === reads() && m.name !== $("model").value);
  $("beside").replaceChildren(element("option", say("nobody"), { value: "" }), ...alike.map((m) => element("option", m.name, { value: m.name })));
  if (alike.some((m) => m.name === before)) $("beside").value = before;
  $("beside").parentElement.hidden = !alike.length;
  [panels[0].model, panels[1].model] = [$("model").value, $("beside").value];
  $("panels").replaceChildren(...chosen().map((panel) => panel.root));
  chosen().forEach((panel) => { panel.part("whose").textContent = chosen().length > 1 ? `${say("output")} · ${panel.model}` : say("output"); });
  speak();
  $("pictures").hidden = !pictures;
  $("text").hidden = $("count").hidden = pictures;
  if (!pictures) picture = null;
  clear();
  if (pictures) answer();
  else typed(0);
};

const begin = async () => {
  try {
    ({ models } = await ask("/v1/models"));
    limits = await ask("/v1/limits");
    if (!models.every((m) => m.ready || m.unfit)) {
      state(say("loading"));
      setTimeout(begin, 500);
      return;
    }
    const option = (m) => element("option", m.unfit ? `${m.name} (${say("unfit")})` : m.name, { value: m.name, disabled: Boolean(m.unfit) });
    $("model").replaceChildren(...models.map(option));
    const linked = new URLSearchParams(location.hash.slice(1)), able = models.filter((m) => !m.unfit).map((m) => m.name);
    if (!able.length) { state(`${models[0].name}: ${models[0].unfit}`, true); return; }
    $("model").value = able.includes(linked.get("model")) ? linked.get("model") : able[0];
    if (able.includes(linked.get("beside"))) {
      $("beside").replaceChildren(element("option", "", { value: linked.get("beside") }));
    }
    if (linked.get("text")) $("text").value = linked.get("text");
    fit();
  } catch (error) {
    wrong(error);
    if (!error.told) setTimeout(begin, AGAIN);
  }
};

$("text").addEventListener("input", () => typed());
$("model").addEventListener("change", fit);
$("beside").addEventListener("change", fit);
$("file").addEventListener("change", () => take($("file").files[0]));
$("language").addEventListener("click", () => { speak(true); fit(); });
$("key").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("key", $("secret").value);
  $("key").hidden = true;
  begin();
});
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => { event.preventDefault(); take(event.dataTransfer.files[0]); });
document.addEventListener("paste", (event) => { if (event.clipboardData.files.length) take(event.clipboardData.files[0]); });
speak();
begin();
