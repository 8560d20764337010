// What was typed or dropped goes to one model or two; each has a panel for its answer.
import { Panel } from "./panel.js";
import { element, refused, say, speak } from "./words.js";

const PAUSE = 400, AGAIN = 2000, LOADING = 500;
const LINKED = 50_000, SMALLER = 448;  // bytes of a picture that an address holds as it is, and pixels of a copy of a larger one
const PASSING = ["busy", "interrupted"];  // refusals that another try may get past
const $ = (id) => document.getElementById(id);
let models = [], limits = { characters: 5000 }, picture = null, timer = 0, restored = false, pictures = 0;

const state = (text, bad = false) => {
  $("state").textContent = text;
  $("state").classList.toggle("bad", bad);
};
const length = (text) => [...text].length;  // as the service counts

const ask = async (path, options = {}) => {
  const headers = { ...(options.headers || {}) };
  const key = sessionStorage.getItem("key");
  if (key) headers.Authorization = `Bearer ${key}`;
  const response = await fetch(path, { ...options, headers });
  const told = await response.json();
  if (response.status === 401) {
    $("key").hidden = false;
    $("secret").focus();
  }
  if (!response.ok) throw Object.assign(new Error(response.status === 401 ? say("needKey") : refused(told.error)), { told });
  return told;
};
const post = (path, value) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });

const reason = (error) => (error.told ? error.told.error : {});

// What a panel asks is about what it shows, not about what has been typed since; who asked last is shown.
const search = async (asked, more) => {
  const how = { model: asked.model, nbest: 5, attention: true, tree: true, ...more };
  try {
    const told = asked.picture
      ? await ask(`/v1/caption?${new URLSearchParams(how)}`, { method: "POST", body: asked.picture.file })
      : await post("/v1/translate", { ...how, texts: [asked.text] });
    return told.predictions[0];
  } catch (error) {
    if (!how.attention || reason(error).limit !== "answer_bytes") throw error;
    return { ...await search(asked, { ...more, attention: false, tree: false }), large: true };  // an answer all the same
  }
};
const forced = ({ places = [], ...rest }) => new URLSearchParams([...Object.entries(rest), ...places.map((place) => ["places", place])]);
const host = {
  async answer(panel, { prefix = "" } = {}) {
    const mine = ++panel.turn, { asked } = panel;
    try {
      const found = await search(asked, { prefix });
      if (mine !== panel.turn) return;
      panel.show(found, { ...asked, prefix });
      panel.words[0].focus();
      state("");
    } catch (error) { if (mine === panel.turn) wrong(error); }
  },
  async force(panel, target, steer) {
    const mine = ++panel.turn, { asked } = panel;
    try {
      const told = asked.picture
        ? await ask(`/v1/caption?${forced({ model: asked.model, target, ...steer })}`, { method: "POST", body: asked.picture.file })
        : await post("/v1/align", { model: asked.model, pairs: [{ source: asked.text, target }], ...(steer && { steer }) });
      state("");
      return mine === panel.turn ? told.predictions[0] : null;
    } catch (error) {
      if (mine === panel.turn) wrong(error);
      return null;
    }
  },
};
const wrong = (error) => state(error.told ? error.message : say("gone"), true);
const panels = [new Panel(host), new Panel(host)];
const chosen = () => panels.filter((panel) => panel.model);
const stale = (is) => chosen().forEach((panel) => panel.stale(is));

// Asks every panel's model about what is there now.
const answer = async () => {
  const text = $("text").value, picture = seen();
  panels.forEach((panel) => panel.turn++);
  if (!chosen().length) return;
  if (picture ? false : reads() === "pictures" || !text.trim()) {
    panels.forEach((panel) => panel.clear());
    state(say(reads() === "pictures" ? "emptyPicture" : "empty"));
    keep(reads() === "pictures" ? {} : { text: "" });
    return;
  }
  stale(true);
  if (!picture && length(text) > limits.characters) {
    state(say("over"), true);
    return;
  }
  state(say("working"));
  const ended = await Promise.all(chosen().map(async (panel) => {
    const mine = panel.turn, asked = { model: panel.model, ...(picture ? { picture } : { text }) };
    try {
      const found = await search(asked);
      if (mine !== panel.turn) return null;
      panel.show(found, asked);
      return { said: found.text };
    } catch (error) { return mine === panel.turn ? { error } : null; }
  }));
  if (ended.some((end) => end === null)) return;  // somebody asked anew
  const failed = ended.find((end) => end.error);
  if (!failed) {
    state("");
    remember(ended[0].said);
    const mine = panels[0].turn, linked = picture ? { picture: await packed(picture) } : { text };
    if (mine === panels[0].turn) keep(linked);
    return;
  }
  wrong(failed.error);
  if (!failed.error.told || PASSING.includes(reason(failed.error).code)) {
    const mine = panels[0].turn;
    setTimeout(() => { if (mine === panels[0].turn) answer(); }, AGAIN);
  }
};

// A picture as text; of a large one a smaller copy, which models read alike: they make it smaller still.
const packed = async ({ file, bitmap }) => {
  let small = file;
  if (file.size > LINKED) {
    if (!bitmap) return "";
    const shrunk = Math.min(1, SMALLER / Math.max(bitmap.width, bitmap.height));
    const canvas = new OffscreenCanvas(Math.ceil(bitmap.width * shrunk), Math.ceil(bitmap.height * shrunk));
    const context = canvas.getContext("2d");
    context.fillStyle = "white";  // behind what is transparent, as the service has it
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    small = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.92 });
  }
  return btoa([...new Uint8Array(await small.arrayBuffer())].map((byte) => String.fromCharCode(byte)).join(""));
};
const unpacked = (text) => new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], say("picture"));

// The address holds what was asked.
const keep = (asked) => {
  const beside = panels[1].model;
  const link = new URLSearchParams({ model: panels[0].model, ...(beside && { beside }), ...asked });
  history.replaceState(null, "", `#${link}`);
  $("link").hidden = !navigator.clipboard || !Object.values(asked).some(Boolean);
};

const remember = (said) => {
  const then = { model: panels[0].model, beside: panels[1].model, text: $("text").value, picture: seen() };
  const shown = then.picture ? then.picture.file.name || say("picture") : then.text;
  const what = JSON.stringify([then.model, then.beside, then.picture ? then.picture.number : then.text]);
  const first = $("history").firstChild;
  if (first && first.dataset.what === what) first.remove();
  const row = element("li"), again = element("button", undefined, { type: "button" });
  again.append(element("bdi", shown.slice(0, 60)), " → ", element("bdi", said.slice(0, 60)));
  row.dataset.what = what;
  again.addEventListener("click", () => {
    if (then.picture) ({ picture } = then);
    else $("text").value = then.text;
    choose(then.model, then.beside);
  });
  row.append(again);
  $("history").prepend(row);
};

const counted = () => {
  const many = length($("text").value), most = Math.min(limits.characters, ...chosen().map((panel) => known(panel.model).characters || Infinity));
  const why = many > limits.characters ? "over" : "cutSoon";
  $("count").textContent = `${many} / ${most}${many > most ? ` · ${say(why)}` : ""}`;
  $("count").classList.toggle("over", many > most);
};
const typed = (pause = PAUSE) => {
  counted();
  clearTimeout(timer);
  timer = setTimeout(answer, pause);
};

// A picture; if the chosen model reads none, one that does is chosen.
const take = async (file) => {
  if (!file) return;
  const able = models.find((m) => m.ready && m.reads === "pictures");
  if (reads() !== "pictures" && !able) { state(say("noPictures"), true); return; }
  let bitmap = null;
  try { bitmap = await createImageBitmap(file); } catch { /* the service may know the format, or say what is wrong */ }
  picture = { file, bitmap, number: pictures++ };
  if (reads() === "pictures") answer();
  else choose(able.name, "");
};

const known = (name) => models.find((m) => m.name === name) || {};
const reads = () => known($("model").value).reads;
const seen = () => (reads() === "pictures" ? picture : null);

const offered = (select, list, value) => {
  const told = (m) => (m.ready ? m.name : `${m.name} (${say(m.unfit ? "unfit" : "loading")})`);
  const options = list.map((m) => element("option", told(m), { value: m.name, disabled: !m.ready }));
  select.replaceChildren(...(select === $("beside") ? [element("option", say("nobody"), { value: "" })] : []), ...options);
  if (list.some((m) => m.ready && m.name === value)) select.value = value;
};

// Which models answer; what is to be typed or dropped; and the answers anew.
const choose = (model, beside = "") => {
  const able = models.filter((m) => m.ready);
  if (!able.length) return;
  offered($("model"), models, able.some((m) => m.name === model) ? model : able[0].name);
  const alike = models.filter((m) => m.reads === reads() && m.name !== $("model").value);
  offered($("beside"), alike, beside);
  $("beside").parentElement.hidden = !alike.length;
  [panels[0].model, panels[1].model] = [$("model").value, $("beside").value];
  panels.forEach((panel) => { if (panel.asked && panel.asked.model !== panel.model) panel.clear(); });
  $("panels").replaceChildren(...chosen().map((panel) => panel.root));
  label();
  if (reads() === "pictures") answer();
  else typed(0);
};

// Everything that is said, in the language of now.
const label = () => {
  const pictures = reads() === "pictures";
  speak();
  $("input-name").textContent = say(pictures ? "picture" : "input");
  $("pictures").hidden = !pictures;
  $("text").hidden = $("count").hidden = pictures;
  chosen().forEach((panel) => { panel.part("whose").textContent = chosen().length > 1 ? `${say("output")} · ${panel.model}` : say("output"); });
};

const standing = () => models.map((m) => `${m.name} ${m.ready} ${m.unfit}`).join();
const begin = async () => {
  try {
    const before = standing(), linked = new URLSearchParams(location.hash.slice(1));
    ({ models } = await ask("/v1/models"));
    limits = await ask("/v1/limits");
    $("key").hidden = true;
    const ready = models.filter((m) => m.ready), waiting = models.some((m) => !m.ready && !m.unfit);
    if (waiting) setTimeout(begin, LOADING);
    const late = models.some((m) => !m.ready && !m.unfit && [linked.get("model"), linked.get("beside")].includes(m.name));
    if (!ready.length || (!restored && late)) {
      if (waiting) state(say("loading"));
      else state(`${models[0].name}: ${models[0].unfit}`, true);
      return;
    }
    if (!restored) restore();
    else if (standing() !== before) choose($("model").value, $("beside").value);
  } catch (error) {
    wrong(error);
    if (!error.told) setTimeout(begin, AGAIN);
  }
};

const restore = () => {
  restored = true;
  const linked = new URLSearchParams(location.hash.slice(1));
  if (linked.has("text")) $("text").value = linked.get("text");
  choose(linked.get("model"), linked.get("beside") || "");
  if (!linked.get("picture") || reads() !== "pictures") return;
  try { take(unpacked(linked.get("picture"))); } catch { state(say("emptyPicture")); }  // an address that was cut
};

$("text").addEventListener("input", () => typed());
$("model").addEventListener("change", () => {
  const [before, beside, now] = [panels[0].model, panels[1].model, $("model").value];
  choose(now, now === beside ? before : beside);
});
$("beside").addEventListener("change", () => choose($("model").value, $("beside").value));
for (const input of [$("file"), $("camera")]) {
  input.addEventListener("change", () => {
    take(input.files[0]);
    input.value = "";  // the same may be chosen again
  });
}
$("link").addEventListener("click", async () => {
  await navigator.clipboard.writeText(location.href);
  state(say("copied"));
});
$("language").addEventListener("click", () => {
  speak(true);
  offered($("model"), models, panels[0].model);
  if ($("beside").options.length) $("beside").options[0].textContent = say("nobody");
  label();
  counted();
  chosen().forEach((panel) => { if (panel.record) panel.show(panel.record, panel.asked); });
  if (!chosen().some((panel) => panel.record)) answer();  // what stands there is said anew
});
$("key").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!/^[\x21-\x7e]+$/.test($("secret").value)) { state(say("badKey"), true); return; }
  sessionStorage.setItem("key", $("secret").value);
  begin();
});
window.addEventListener("hashchange", restore);
const dropped = (event) => {
  if (![...(event.dataTransfer || event.clipboardData).types].includes("Files")) return;  // text goes where it is dropped
  event.preventDefault();
  if (event.type !== "dragover") take((event.dataTransfer || event.clipboardData).files[0]);
};
for (const kind of ["dragover", "drop", "paste"]) document.addEventListener(kind, dropped);
speak();
begin();
