"""LibreTranslate's API, so that its clients work unchanged."""

import hmac
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs

from fastapi import FastAPI, Request

from saccade.serve.desk import Desk
from saccade.serve.desk import refusal as refused_by
from saccade.serve.limits import Limits, Refused, over, whole
from saccade.serve.stream import while_there

DIGITS = 4  # of a number that is worth reading
PATHS = ("/translate", "/languages", "/detect", "/health")
FIELDS = "q (a text or a list), source (a code or auto), target, alternatives, api_key, as JSON or a form"
HOW = {"options": {"beam": 5}, "prefix": "", "look": False, "attention": False}
NAMES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese",
    "ru": "Russian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese",
    "zh": "Chinese",
}  # fmt: skip
SCRIPTS = {  # by which some languages give themselves away
    "ko": ("\uac00", "\ud7a3"), "ja": ("\u3040", "\u30ff"), "zh": ("\u4e00", "\u9fff"), "ru": ("\u0400", "\u04ff"),
    "uk": ("\u0400", "\u04ff"), "el": ("\u0370", "\u03ff"), "he": ("\u0590", "\u05ff"), "ar": ("\u0600", "\u06ff"),
    "hi": ("\u0900", "\u097f"), "th": ("\u0e00", "\u0e7f"),
}  # fmt: skip


def speaks(path: str) -> bool:
    return path in PATHS


def brings_key(path: str) -> bool:
    """Whether the key may stand in the body, as their clients send it; then it is checked here."""
    return path in ("/translate", "/detect", "/languages")


def refusal(refused: Refused) -> dict[str, str]:
    """Their shape of an error."""
    return {"error": refused.message}


def add(
    app: FastAPI, desks: Sequence[Desk], limits: Limits, langs: dict[str, tuple[str, str]], key: str | None
) -> None:
    """Adds the routes; `langs` are those given by hand, by model, before those that a run knows of itself."""

    def spoken() -> dict[tuple[str, str], Desk]:
        found: dict[tuple[str, str], Desk] = {}
        for desk in desks:
            both = langs.get(desk.name) or desk.facts.get("langs")
            if both:
                found.setdefault((both[0], both[1]), desk)
        return found

    @app.post("/translate", tags=["LibreTranslate"], summary=f"As LibreTranslate does it: {FIELDS}")
    async def translate(request: Request) -> dict[str, Any]:
        asked = await _read(request, key)
        texts, pairs = _texts(asked, limits), spoken()
        source, target = asked.get("source"), asked.get("target")
        told: dict[str, Any] = {}
        if source == "auto":
            found = _detect(texts[0], sorted({a for a, b in pairs if b == target}))
            source = found[0]["language"] if found else None
            told = {"detectedLanguage": found[0]} if found else {}
        desk = pairs.get((source, target)) if isinstance(source, str) and isinstance(target, str) else None
        if desk is None:
            there = ", ".join(f"{a} to {b}" for a, b in pairs) or "no model here knows its languages: serve --langs"
            raise Refused(400, "wrong_input", f"{source} to {target} is not supported ({there})")
        others = _alternatives(asked, limits)
        how = {**HOW, "options": {"beam": max(5, others + 1), "nbest": others + 1}}
        answers = await while_there(request, desk.ask("translate", texts, **how))
        for answer in answers:
            if wrong := refused_by(answer):
                raise wrong
        several = isinstance(asked["q"], list)
        written = [answer["text"] for answer in answers]
        if others:
            listed = [[a["text"] for a in answer.get("alternatives", [])] for answer in answers]
            told["alternatives"] = listed if several else listed[0]
        if cut := [i for i, answer in enumerate(answers) if answer["cut_source"] or answer["cut_output"]]:
            told["cut"] = cut  # those cut short; LibreTranslate has no such field, and its clients leave it
        return {"translatedText": written if several else written[0], **told}

    @app.post("/detect", tags=["LibreTranslate"], summary="q, as JSON or a form: the languages it may be in, by script")
    async def detect(request: Request) -> list[dict[str, Any]]:
        text = _texts(await _read(request, key), limits)[0]
        return _detect(text, sorted({a for a, _ in spoken()}))

    @app.get("/languages", tags=["LibreTranslate"], summary="Codes, names and targets")
    async def languages(request: Request) -> list[dict[str, Any]]:
        await _read(request, key)
        pairs = spoken()
        codes = dict.fromkeys(code for both in pairs for code in both)
        return [{"code": c, "name": NAMES.get(c, c), "targets": [b for a, b in pairs if a == c]} for c in codes]

    @app.get("/health", tags=["LibreTranslate"], summary="Whether it is there")
    async def health() -> dict[str, str]:
        return {"status": "ok"}


async def _read(request: Request, key: str | None) -> dict[str, Any]:
    """What was asked, as JSON or as a form, by somebody who has the key."""
    body = await request.body()
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise Refused(400, "wrong_input", "Invalid request: expected JSON or a urlencoded form, not multipart")
    try:
        if "json" in request.headers.get("content-type", ""):
            asked = json.loads(body or b"{}")
        else:
            asked = {name: found[-1] for name, found in parse_qs(body.decode(), keep_blank_values=True).items()}
    except (ValueError, RecursionError):
        raise Refused(400, "wrong_input", "Invalid request: neither JSON nor a form") from None
    if not isinstance(asked, dict):
        raise Refused(400, "wrong_input", "Invalid request: expected an object")
    asked = {name: whole(value) if isinstance(value, str) else value for name, value in asked.items()}
    given = asked.get("api_key") or request.headers.get("authorization", "").removeprefix("Bearer ")
    if key is not None and not hmac.compare_digest(str(given).encode(), key.encode()):
        raise Refused(403, "no_key", "Please contact the server operator to get an API key")
    return asked


def _texts(asked: dict[str, Any], limits: Limits) -> list[str]:
    q = asked.get("q")
    given = q if isinstance(q, list) else [q]
    texts = [t for t in given if isinstance(t, str)]
    if not texts or len(texts) < len(given):
        raise Refused(400, "wrong_input", "Invalid request: missing q parameter")
    if len(texts) > limits.texts:
        raise over("texts", len(texts), limits.texts, 400)
    if max(map(len, texts)) > limits.characters:
        raise over("characters", max(map(len, texts)), limits.characters, 400)
    if asked.get("format", "text") != "text":
        raise Refused(400, "wrong_input", "Invalid request: only the format text is supported")
    return [whole(text) for text in texts]


def _alternatives(asked: dict[str, Any], limits: Limits) -> int:
    """How many more answers are wanted for each text."""
    given = str(asked.get("alternatives", 0))
    if not given.isdecimal() or len(given) > DIGITS or int(given) >= limits.nbest:
        raise Refused(400, "wrong_input", f"Invalid request: alternatives must be a number below {limits.nbest}")
    return int(given)


def _detect(text: str, known: Sequence[str]) -> list[dict[str, Any]]:
    """By script: which of the known languages could have been written like this, the likelier first."""
    letters = [c for c in text if c.isalpha()]
    found = []
    for code in known:
        first, last = SCRIPTS.get(code, ("a", "\u024f"))
        share = sum(first <= c.lower() <= last for c in letters) / max(1, len(letters))
        found.append({"language": code, "confidence": round(100 * share, 1)})
    return sorted(found, key=lambda row: -float(row["confidence"]))
