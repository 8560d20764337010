"""LibreTranslate's API, so that its clients work unchanged."""

import hmac
import html
import json
import re
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from pydantic import BaseModel, Field

from saccade.serve.desk import Desk
from saccade.serve.desk import refusal as refused_by
from saccade.serve.limits import Limits, Refused, over, whole
from saccade.serve.stream import while_there

DIGITS = 4  # of a number that is worth reading
PATHS = ("/translate", "/languages", "/detect", "/health")
FORMS = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
TAG = re.compile(r"(<!--.*?-->|</?[a-zA-Z][^>]*>)", re.DOTALL)
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


class ToDetect(BaseModel):
    q: str
    api_key: str | None = None


class ToTranslate(BaseModel):
    q: str | list[str]
    source: str = Field(description="A code, or auto.")
    target: str
    format: Literal["text", "html"] = Field("text", description="Of html, what stands between tags is translated.")
    alternatives: int = Field(0, ge=0)
    api_key: str | None = None


class Complaint(BaseModel):
    """Their shape of an error."""

    error: str


WRONG: dict[int | str, dict[str, Any]] = {"4XX": {"model": Complaint}, "5XX": {"model": Complaint}}


def _body(model: type[BaseModel]) -> dict[str, Any]:
    """For the manual: a body is read by hand, since their clients send it in several ways."""
    return {
        "requestBody": {"required": True, "content": {kind: {"schema": model.model_json_schema()} for kind in FORMS}}
    }


def speaks(path: str) -> bool:
    return path in PATHS


def brings_key(path: str) -> bool:
    """Whether the key may stand in the body, as their clients send it; then it is checked here."""
    return path in ("/translate", "/detect", "/languages")


def refusal(refused: Refused) -> dict[str, str]:
    return Complaint(error=refused.message).model_dump()


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

    @app.post(
        "/translate",
        tags=["LibreTranslate"],
        summary="As LibreTranslate does it",
        openapi_extra=_body(ToTranslate),
        responses=WRONG,
    )
    async def translate(request: Request) -> dict[str, Any]:
        asked = await _read(request, key)
        texts, pairs, several = _texts(asked, limits), spoken(), isinstance(asked["q"], list)
        source, target, others = _code(asked, "source"), _code(asked, "target"), _alternatives(asked, limits)
        told: dict[str, Any] = {}
        sources = [source] * len(texts)
        known = sorted({a for a, b in pairs if b == target})
        if source == "auto" and known:
            found = [_detect(text, known)[0] for text in texts]
            sources = [row["language"] for row in found]
            told["detectedLanguage"] = found if several else found[0]
        parts = [Parts(text, asked.get("format") == "html") for text in texts]
        how = {**HOW, "options": {"beam": max(5, others + 1), "nbest": others + 1}}
        for source in dict.fromkeys(map(str, sources)):
            desk, chosen = (
                pairs.get((source, str(target))),
                [p for p, s in zip(parts, sources, strict=True) if s == source],
            )
            if desk is None:
                there = ", ".join(f"{a} to {b}" for a, b in pairs) or "no model here knows its languages: serve --langs"
                raise Refused(400, "wrong_input", f"{source} to {target} is not supported ({there})")
            answers = await while_there(request, desk.ask("translate", [t for p in chosen for t in p.texts], **how))
            for wrong in map(refused_by, answers):
                if wrong:
                    raise wrong
            rest = iter(answers)
            for part in chosen:
                part.answers = [next(rest) for _ in part.texts]
        written = [part.written(0) for part in parts]
        if others:
            listed = [[part.written(n) for n in range(1, others + 1)] for part in parts]
            told["alternatives"] = listed if several else listed[0]
        if cut := [i for i, part in enumerate(parts) if part.cut]:
            told["cut"] = cut  # those cut short; LibreTranslate has no such field, and its clients leave it
        return {"translatedText": written if several else written[0], **told}

    @app.post(
        "/detect",
        tags=["LibreTranslate"],
        summary="The languages a text may be in, by its script",
        openapi_extra=_body(ToDetect),
        responses=WRONG,
    )
    async def detect(request: Request) -> list[dict[str, Any]]:
        text = _texts(await _read(request, key), limits)[0]
        return _detect(text, sorted({a for a, _ in spoken()}))

    @app.get("/languages", tags=["LibreTranslate"], summary="Codes, names and targets", responses=WRONG)
    async def languages(request: Request) -> list[dict[str, Any]]:
        await _read(request, key)
        pairs = spoken()
        codes = dict.fromkeys(code for both in pairs for code in both)
        return [{"code": c, "name": NAMES.get(c, c), "targets": [b for a, b in pairs if a == c]} for c in codes]

    @app.get("/health", tags=["LibreTranslate"], summary="Whether it is there", responses=WRONG)
    async def health() -> dict[str, str]:
        return {"status": "ok"}


class Parts:
    """What is to be translated in a text: all of it or, in HTML, what stands between tags."""

    def __init__(self, text: str, tagged: bool) -> None:
        self.tagged = tagged
        self.pieces = TAG.split(text) if tagged else [text]  # every other one is a tag
        self.places = [i for i in range(0, len(self.pieces), 2) if self.pieces[i].strip() or not tagged]
        self.texts = [html.unescape(self.pieces[i]).strip() if tagged else self.pieces[i] for i in self.places]
        self.answers: list[dict[str, Any]] = []

    @property
    def cut(self) -> bool:
        return any(answer["cut_source"] or answer["cut_output"] for answer in self.answers)

    def written(self, rank: int) -> str:
        """The text with the answers of that rank, or the last there is, in place of what was translated."""
        pieces = [*self.pieces]
        for i, answer in zip(self.places, self.answers, strict=True):
            best = [answer["text"], *(other["text"] for other in answer.get("alternatives", []))]
            text = best[min(rank, len(best) - 1)]
            pieces[i] = pieces[i].replace(pieces[i].strip(), html.escape(text, quote=False)) if self.tagged else text
        return "".join(pieces)


async def _read(request: Request, key: str | None) -> dict[str, Any]:
    """What was asked, in the address, as JSON or as a form, by somebody who has the key."""
    body, kind = await request.body(), request.headers.get("content-type", "")
    try:
        if "json" in kind:
            sent = json.loads(body or b"{}")
        else:
            sent = _multipart(kind, body) if kind.startswith("multipart/") else _fields(body.decode())
    except (ValueError, RecursionError):
        raise Refused(400, "wrong_input", "Invalid request: neither JSON nor a form") from None
    if not isinstance(sent, dict):
        raise Refused(400, "wrong_input", "Invalid request: expected an object")
    both = {**_fields(request.url.query), **sent}
    asked = {name: whole(value) if isinstance(value, str) else value for name, value in both.items()}
    given = asked.get("api_key") or request.headers.get("authorization", "").removeprefix("Bearer ")
    if key is not None and not hmac.compare_digest(str(given).encode(), key.encode()):
        raise Refused(403, "no_key", "Please contact the server operator to get an API key")
    return asked


def _fields(form: str) -> dict[str, Any]:
    return {name: found[-1] for name, found in parse_qs(form, keep_blank_values=True).items()}


def _multipart(kind: str, body: bytes) -> dict[str, str]:
    """The fields of a form as browsers send their FormData."""
    border = kind.partition("boundary=")[2].partition(";")[0].strip('"')
    parts = [part.partition(b"\r\n\r\n") for part in body.split(f"--{border}".encode())] if border else []
    named = [(re.search(rb'name="([^"]*)"', head), value) for head, _, value in parts]
    return {name[1].decode(): value.removesuffix(b"\r\n").decode() for name, value in named if name}


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
    if asked.get("format") not in (None, "", "text", "html"):
        raise Refused(400, "wrong_input", f"{asked['format']} format is not supported")
    return [whole(text) for text in texts]


def _code(asked: dict[str, Any], name: str) -> str:
    code = asked.get(name)
    if not isinstance(code, str) or not code:
        raise Refused(400, "wrong_input", f"Invalid request: missing {name} parameter")
    return code


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
