const WORDS = {
  en: {
    model: "Model", beside: "Beside it", nobody: "nobody", input: "Text", output: "Answer", picture: "Picture",
    others: "Other answers", table: "Every glance", tree: "The beam as a tree", history: "This visit", key: "API key",
    empty: "Type something: the answer comes when you pause.", emptyPicture: "Choose, drop or paste a picture, or take a photograph.",
    working: "Working …", over: "too long", gone: "The service cannot be reached. It is tried again.",
    loading: "The model is still loading …", unfit: "cannot be loaded", instead: "In its place",
    cut: "The end of the text was not read: it is too long for the model.", cutOutput: "The answer reached its limit.",
    unknown: "Symbols that the model does not know:", blind: "This model has no attention to show.",
    export: "Save the picture", link: "Copy a link to this", copied: "The link is copied.", photograph: "Photograph",
    steer: "Click a cell, drag over several or add to them with Shift: what if it looked there alone? Arrows and Enter do it too.",
    after: "After it", same: "Nothing after it changes.", large: "The answer is too long to show its glances.", cutSoon: "the model does not read on",
    steered: "Looking there alone it would write", needKey: "This service wants a key.",
    looks: "The picture, bright where the model looked for", grow: "Click a word: what follows if the answer begins so?",
    row: "row", column: "column", begins: "Begins with", anew: "search freely again", lookedAt: "looked at",
    noPictures: "No model here reads pictures.", badKey: "A key has plain letters and digits only.", enter: "Enter",
    notShown: "This browser cannot show that picture, so there is no overlay.", saveTree: "Save the tree",
    refused: {},  // the service speaks English
  },
  ko: {
    model: "모형", beside: "나란히", nobody: "없음", input: "글", output: "답", picture: "그림",
    others: "다른 답", table: "모든 눈길", tree: "빔을 나무로", history: "이번 방문", key: "API 키",
    empty: "글을 쓰고 잠시 멈추면 답이 나옵니다.", emptyPicture: "그림을 고르거나 끌어 놓거나 붙여 넣거나 사진을 찍으세요.",
    working: "계산 중 …", over: "너무 깁니다", gone: "서비스에 닿을 수 없어 다시 시도합니다.",
    loading: "모형을 불러오는 중 …", unfit: "불러올 수 없음", instead: "그 대신",
    cut: "글의 끝은 모형이 읽기에 너무 길어 읽지 않았습니다.", cutOutput: "답이 한계에 이르렀습니다.",
    unknown: "모형이 모르는 기호:", blind: "이 모형에는 보여 줄 어텐션이 없습니다.",
    export: "그림 저장", link: "링크 복사", copied: "링크를 복사했습니다.", photograph: "사진 찍기",
    steer: "칸을 누르거나 여러 칸을 끌거나 Shift로 더하면: 그곳만 보았다면? 화살표와 Enter로도 됩니다.",
    after: "그 뒤에는", same: "그 뒤는 그대로입니다.", large: "답이 너무 길어 눈길을 보여 줄 수 없습니다.", cutSoon: "그다음은 모형이 읽지 않습니다",
    steered: "그곳만 보았다면 쓸 말", needKey: "이 서비스에는 키가 필요합니다.",
    looks: "모형이 이 단어를 쓸 때 본 곳이 밝은 그림:", grow: "단어를 누르면: 답이 그렇게 시작한다면?",
    row: "행", column: "열", begins: "이렇게 시작:", anew: "다시 자유롭게 찾기", lookedAt: "본 곳",
    noPictures: "여기에는 그림을 읽는 모형이 없습니다.", badKey: "키에는 영문자와 숫자만 쓸 수 있습니다.", enter: "입력",
    notShown: "이 브라우저가 그 그림을 보여 줄 수 없어 겹쳐 그릴 수 없습니다.", saveTree: "나무 저장",
    refused: {
      too_much: "한도를 넘었습니다", busy: "기다리는 글이 많습니다. 잠시 뒤에 다시 해 보세요", unfit: "모형을 쓸 수 없습니다",
      closing: "서비스가 멈추는 중입니다", too_slow: "제때 끝나지 않았습니다", interrupted: "모형이 중단되었습니다. 다시 해 보세요",
      internal: "서비스 안에서 오류가 났습니다", unknown_model: "그런 모형이 없습니다", wrong_input: "입력이 맞지 않습니다",
    },
  },
};

let language = sessionStorage.getItem("language") || (navigator.language.startsWith("ko") ? "ko" : "en");

export const say = (name) => WORDS[language][name];

// Why the service refused, in the language of now; what it said stands beside it where there is more to know.
export const refused = ({ code, message, limit, most }) => {
  const known = say("refused")[code];
  return known ? `${known} (${limit ? `${limit} ≤ ${most}` : message})` : message;
};

export const speak = (switched = false) => {
  if (switched) {
    language = language === "ko" ? "en" : "ko";
    sessionStorage.setItem("language", language);
  }
  document.documentElement.lang = language;
  document.querySelectorAll("[data-say]").forEach((e) => { e.textContent = say(e.dataset.say); });
  const button = document.getElementById("language");
  button.lang = language === "ko" ? "en" : "ko";
  button.textContent = language === "ko" ? "English" : "한국어";
};

// What cannot be seen, by its number.
export const visible = (text) => text.replace(/[\p{C}\p{Z}]/gu, (c) => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);

export const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  Object.assign(made, attributes);
  return made;
};

// One of many buttons can be reached by Tab; from there the arrows go on. Each has its row and column in `at`.
export const rove = (buttons) => {
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const places = new Map(buttons.map((b) => [`${b.at}`, b]));
  buttons.forEach((button, i) => {
    button.tabIndex = i ? -1 : 0;
    button.addEventListener("focus", () => buttons.forEach((b) => { b.tabIndex = b === button ? 0 : -1; }));
    button.addEventListener("keydown", (event) => {
      const step = steps[event.key];
      if (!step) return;
      event.preventDefault();
      let [row, column] = button.at;
      for (let far = 0; far < 100; far++) {  // a tree has holes
        [row, column] = [row + step[0], column + step[1]];
        const next = places.get(`${[row, column]}`);
        if (next) { next.focus(); return; }
      }
    });
  });
};
