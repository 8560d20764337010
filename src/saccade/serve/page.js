"use strict";
(() => {
  const WORDS = {
    en: { model: "Model", input: "Text", output: "Answer", picture: "Picture", others: "Other answers", table: "Every glance",
      history: "This visit", key: "API key", empty: "Type something: the answer comes when you pause.",
      emptyPicture: "Choose, drop or paste a picture.", working: "Working …", over: "too long",
      gone: "The service cannot be reached. It is tried again.", loading: "The model is still loading …",
      instead: "In place of this word", cut: "The end of the text was not read: it is too long for the model.",
      cutOutput: "The answer reached its limit.", unknown: "Symbols that the model does not know:", blind: "This model has no attention to show.",
      export: "Save the picture", steer: "Click a cell, or press Enter on it: what if it looked there alone?",
      steered: "Looking there alone it would write", needKey: "This service wants a key.", looks: "The picture, bright where the model looked for" },
    ko: { model: "모형", input: "글", output: "답", picture: "그림", others: "다른 답", table: "모든 눈길",
      history: "이번 방문", key: "API 키", empty: "글을 쓰고 잠시 멈추면 답이 나옵니다.",
      emptyPicture: "그림을 고르거나 끌어 놓거나 붙여 넣으세요.", working: "계산 중 …", over: "너무 깁니다",
      gone: "서비스에 닿을 수 없어 다시 시도합니다.", loading: "모형을 불러오는 중 …",
      instead: "이 단어 대신", cut: "글의 끝은 모형이 읽기에 너무 길어 읽지 않았습니다.",
      cutOutput: "답이 한계에 이르렀습니다.", unknown: "모형이 모르는 기호:", blind: "이 모형에는 보여 줄 어텐션이 없습니다.",
      export: "그림 저장", steer: "칸을 누르거나 Enter를 치면: 그곳만 보았다면?",
      steered: "그곳만 보았다면 쓸 말", needKey: "이 서비스에는 키가 필요합니다.", looks: "모형이 이 단어를 쓸 때 본 곳이 밝은 그림:" },
  };
  const PAUSE = 400, AGAIN = 2000;
  const $ = (id) => document.getElementById(id);
  let language = navigator.language.startsWith("ko") ? "ko" : "en";
  let models = [], limits = { characters: 5000 }, current = null, picture = null, timer = 0, turn = 0;

  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    Object.assign(made, attributes);
    return made;
  };
  const say = (name) => WORDS[language][name];
  const state = (text, bad = false) => {
    $("state").textContent = text;
    $("state").classList.toggle("bad", bad);
  };
  const speak = () => {
    document.documentElement.lang = language;
    document.querySelectorAll("[data-say]").forEach((e) => { e.textContent = say(e.dataset.say); });
    $("language").textContent = language === "ko" ? "English" : "한국어";
    $("language").lang = language === "ko" ? "en" : "ko";
  };
  const model = () => models.find((m) => m.name === $("model").value) || models[0];

  const ask = async (path, options) => {
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

  const weights = (record) => {
    const cross = record.attention && record.attention.cross;
    if (!cross) return null;
    const layer = cross[record.layer < 0 ? cross.length + record.layer : record.layer];
    return layer[0].map((row, t) => row.map((_, n) => layer.reduce((sum, head) => sum + head[t][n], 0) / layer.length));
  };

  const glance = (t) => {
    const { record, looked } = current;
    [...$("output").children].forEach((word, i) => word.classList.toggle("here", i === t));
    if (looked && record.grid) overlay(t);
    else if (looked) [...$("source").children].forEach((piece, n) => piece.style.setProperty("--w", looked[t][n].toFixed(3)));
    offer(t, (record.runners_up || [])[t] || [], say("instead"));
  };

  const offer = (t, others, why) => {
    const { record } = current;
    $("instead").replaceChildren(...(others.length ? [element("span", `${why}: `)] : []));
    for (const other of others) {
      const before = record.target_tokens.slice(0, t).map((p) => p.text).join("");
      const choice = element("button", `${other.text.trim() || "␣"} ${other.probability.toFixed(2)}`, { type: "button" });
      choice.disabled = other.text === "∎" || Boolean(record.grid);
      choice.addEventListener("click", () => answer({ prefix: before + (t && !other.text.startsWith(" ") && record.target_tokens[t].text.startsWith(" ") ? " " : "") + other.text }));
      $("instead").append(choice);
    }
  };

  const steer = async (word, place) => {
    const { record } = current, text = $("text").value;
    try {
      const told = await post("/v1/align", { model: model().name, pairs: [{ source: text, target: record.text }], steer: { word, place } });
      const [found] = told.predictions, own = found.target_tokens[word].text;
      const all = [{ text: own, probability: Math.exp(found.log_probabilities[word]) }, ...found.runners_up[word]];
      glance(word);
      offer(word, all.sort((a, b) => b.probability - a.probability), say("steered"));
    } catch (error) {
      state(error.told ? error.message : say("gone"), true);
    }
  };

  const save = () => {
    const { record, looked } = current;
    const link = element("a", undefined, { download: "glance.svg" });
    if (record.grid) Object.assign(link, { download: "glance.png", href: $("overlay").toDataURL() });
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
  };

  const overlay = (t) => {
    const { record, looked } = current;
    const canvas = $("overlay"), columns = record.grid[1];
    canvas.hidden = !picture;
    if (!picture) return;
    canvas.width = picture.width;
    canvas.height = picture.height;
    canvas.setAttribute("aria-label", `${say("looks")} ${record.target_tokens[t].text}`);
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    const most = Math.max(...looked.flat(), 1e-9);
    const cell = current.cell(canvas);
    looked[t].forEach((w, n) => {
      context.fillStyle = `rgba(0,0,0,${0.8 - (0.8 * w) / most})`;
      context.fillRect((n % columns) * cell, Math.floor(n / columns) * cell, cell, cell);
    });
  };

  const draw = (record) => {
    const looked = weights(record);
    const cell = (canvas) => (record.cell * canvas.width) / record.size[1];
    current = { record, looked, cell };
    $("output").replaceChildren(...record.target_tokens.map((token, t) => {
      const word = element("button", token.text, { type: "button" });
      for (const kind of ["mouseenter", "focus", "click"]) word.addEventListener(kind, () => glance(t));
      return word;
    }));
    $("source").replaceChildren(...record.source_tokens.map((token) => element("span", token.text)));
    $("overlay").hidden = true;
    $("instead").replaceChildren();
    const table = $("table");
    table.replaceChildren();
    $("whole").hidden = !looked || Boolean(record.grid);
    $("export").hidden = !looked;
    if (looked && !record.grid) {
      const head = table.createTHead().insertRow();
      head.append(element("td"), ...record.source_tokens.map((p) => element("th", p.text, { scope: "col" })));
      const body = table.createTBody();
      looked.forEach((row, t) => {
        const line = body.insertRow();
        line.append(element("th", record.target_tokens[t].text, { scope: "row" }));
        for (const w of row) {
          const cell = line.insertCell();
          cell.style.setProperty("--w", w.toFixed(3));
          cell.title = w.toFixed(3);
          const n = cell.cellIndex - 1, what = `${record.target_tokens[t].text} ← ${record.source_tokens[n].text}`;
          const here = element("button", undefined, { type: "button", ariaLabel: `${what} ${w.toFixed(2)}` });
          here.addEventListener("click", () => steer(t, n));
          cell.append(here);
        }
      });
    }
    const notes = [];
    if (!looked) notes.push(say("blind"));
    if (record.cut_source) notes.push(say("cut"));
    if (record.cut_output) notes.push(say("cutOutput"));
    if (record.unknown && record.unknown.length) notes.push(`${say("unknown")} ${[...new Set(record.unknown)].join(" ")}`);
    state(notes.join(" "));
  };

  const clear = () => {
    for (const id of ["output", "source", "instead", "nbest", "table"]) $(id).replaceChildren();
    $("export").hidden = true;
    $("overlay").hidden = true;
  };

  const answer = async (more = {}) => {
    const mine = ++turn, text = $("text").value, chosen = model();
    if (!chosen) return;
    if (text.length > limits.characters) return;
    if (!text.trim()) {
      clear();
      state(say("empty"));
      return;
    }
    state(say("working"));
    try {
      const told = await post("/v1/translate", { texts: [text], model: chosen.name, nbest: 5, attention: true, ...more });
      if (mine !== turn) return;
      const record = told.predictions[0];
      draw(record);
      $("nbest").replaceChildren(...(record.alternatives || []).map((other) => {
        const row = element("li"), choice = element("button", other.text, { type: "button" });
        choice.addEventListener("click", async () => {
          const forced = await post("/v1/align", { model: chosen.name, pairs: [{ source: text, target: other.text }] });
          draw(forced.predictions[0]);
        });
        row.append(choice, ` ${other.score.toFixed(2)}`);
        return row;
      }));
      remember(text, record.text);
      history.replaceState(null, "", `#${new URLSearchParams({ model: chosen.name, text })}`);
    } catch (error) {
      if (mine !== turn) return;
      if (error.told) state(error.message, true);
      else {
        state(say("gone"), true);
        setTimeout(() => { if (mine === turn) answer(more); }, AGAIN);
      }
    }
  };

  const remember = (text, said) => {
    const first = $("history").firstChild;
    if (first && first.dataset.text === text) first.remove();
    const row = element("li"), again = element("button", `${text.slice(0, 60)} → ${said.slice(0, 60)}`, { type: "button" });
    row.dataset.text = text;
    again.addEventListener("click", () => { $("text").value = text; typed(0); });
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

  const look = async (file) => {
    if (!file || !file.type.startsWith("image/")) return;
    const mine = ++turn;
    state(say("working"));
    try {
      picture = await createImageBitmap(file);
      const query = new URLSearchParams({ model: model().name, attention: "true", nbest: "5" });
      const told = await ask(`/v1/caption?${query}`, { method: "POST", body: file });
      if (mine === turn) draw(told.predictions[0]);
    } catch (error) {
      if (mine === turn) state(error.told ? error.message : say("gone"), true);
    }
  };

  const fit = () => {
    const pictures = model() && model().reads === "pictures";
    $("pictures").hidden = !pictures;
    $("text").hidden = $("count").hidden = Boolean(pictures);
    clear();
    if (pictures) state(say("emptyPicture"));
    else typed(0);
  };

  const begin = async () => {
    try {
      const told = await ask("/v1/models", {});
      limits = await ask("/v1/limits", {});
      models = told.models;
      if (!models.every((m) => m.ready || m.unfit)) {
        state(say("loading"));
        setTimeout(begin, 500);
        return;
      }
      $("model").replaceChildren(...models.map((m) => element("option", m.name, { value: m.name })));
      const linked = new URLSearchParams(location.hash.slice(1));
      if (models.some((m) => m.name === linked.get("model"))) $("model").value = linked.get("model");
      if (linked.get("text")) $("text").value = linked.get("text");
      fit();
    } catch (error) {
      state(error.told ? error.message : say("gone"), true);
      if (!error.told) setTimeout(begin, AGAIN);
    }
  };

  $("text").addEventListener("input", () => typed());
  $("model").addEventListener("change", fit);
  $("export").addEventListener("click", save);
  $("file").addEventListener("change", () => look($("file").files[0]));
  $("language").addEventListener("click", () => { language = language === "ko" ? "en" : "ko"; speak(); fit(); });
  $("key").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("key", $("secret").value);
    $("key").hidden = true;
    begin();
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => { event.preventDefault(); look(event.dataTransfer.files[0]); });
  document.addEventListener("paste", (event) => { if (event.clipboardData.files.length) look(event.clipboardData.files[0]); });
  speak();
  begin();
})();
