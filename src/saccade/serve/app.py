"""The service: what may be asked, and how much of it."""

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from prometheus_client import generate_latest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

import saccade
from saccade.serve import libre, page
from saccade.serve.desk import Desk, refusal
from saccade.serve.guard import Meters, guard
from saccade.serve.limits import Limits, Refused, over, whole
from saccade.serve.manual import manual
from saccade.serve.stream import LINES, Lines, streamed, while_there

# As of every route; named by hand where an answer is no JSON, but a refusal is.
REFUSAL = {
    "description": "Refused",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Wrong"}}},
}
REFUSALS: dict[int | str, dict[str, Any]] = {"4XX": REFUSAL, "5XX": REFUSAL}
TEXTS = {"required": True, "content": {LINES: {"schema": {"type": "string"}}}}
PICTURE = {"required": True, "content": {"image/*": {"schema": {"type": "string", "format": "binary"}}}}
Text = Annotated[str, AfterValidator(whole)]
Place = Annotated[int, Field(ge=0, lt=2**31)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Search(Strict):
    """How to search."""

    model: str | None = Field(None, description="Which model; the first, if not given.", max_length=200)
    beam: int = Field(5, ge=1)
    nbest: int = Field(1, ge=1)
    length_penalty: float | None = Field(None, ge=-10, le=10, allow_inf_nan=False)
    sample: bool = False
    temperature: float = Field(1.0, ge=0.01, le=10, allow_inf_nan=False)
    seed: int = Field(0, ge=0, le=2**31)
    prefix: Text = Field("", description="What every output must begin with.")
    attention: bool = Field(False, description="Whether to tell where every word looked.")
    tree: bool = Field(False, description="Whether to tell everything that the beam ever kept.")


class Translate(Search):
    texts: list[Text] = Field(description="One output comes back for each, in order; an empty text stays empty.")


class Caption(Search):
    """A picture is the body, so that what is asked of it stands in the address."""

    target: Text | None = Field(None, description="Where would it look while it wrote this?")
    word: int | None = Field(None, ge=0, description="With a target: for which word it is to look elsewhere.")
    places: list[Place] = Field([], description="With a word: the cells that it is to look at alone.")


class PairToAlign(Strict):
    source: Text
    target: Text


class Steer(Strict):
    """Look at some places alone for one word."""

    word: int = Field(ge=0)
    places: list[Place] = Field(min_length=1)


class Align(Strict):
    model: str | None = Field(None, max_length=200)
    pairs: list[PairToAlign]
    steer: Steer | None = Field(None, description="What if, for one word, it looked there? Its runners-up tell.")


class Answers(BaseModel):
    """A record for each input, in order: text, score, tokens with spans, alternatives, attention on request."""

    model: str
    predictions: list[dict[str, Any]]


class Reason(BaseModel):
    code: str
    message: str
    limit: str | None = Field(None, description="Which of /v1/limits was met.")
    most: float | None = None


class Wrong(BaseModel):
    """Why there is no answer."""

    error: Reason


class Service:
    """The models, by name, and what each request has to pass."""

    def __init__(self, desks: Sequence[Desk], limits: Limits) -> None:
        self.desks, self.limits = {desk.name: desk for desk in desks}, limits

    def find(self, name: str | None, reads: str | None = None) -> Desk:
        """The model of that name or, without one, the first that reads such things."""
        if name is not None and name not in self.desks:
            raise Refused(404, "unknown_model", f"no model {name!r}; there are {', '.join(self.desks)}")
        fitting = [d for d in self.desks.values() if d.facts.get("reads", reads) == reads or reads is None]
        if name is None and not fitting:
            raise Refused(404, "unknown_model", f"no model here reads {reads}")
        desk = fitting[0] if name is None else self.desks[name]
        if reads is not None and desk.facts.get("reads", reads) != reads:
            raise Refused(422, "wrong_input", f"{desk.name} reads {desk.facts['reads']}, not {reads}")
        return desk

    def check(self, asked: Search) -> dict[str, Any]:
        """Within the limits? Then, how the worker is to be asked."""
        target = asked.target if isinstance(asked, Caption) and asked.target is not None else ""
        for name, found in (
            ("beam", asked.beam),
            ("nbest", asked.nbest),
            ("prefix", len(asked.prefix)),
            ("prefix", len(target)),
        ):
            if found > getattr(self.limits, name):
                raise over(name, found, getattr(self.limits, name))
        if asked.nbest > asked.beam and not asked.sample:
            raise Refused(422, "wrong_input", f"nbest: {asked.nbest}, expected at most beam={asked.beam}")
        if not asked.sample and (asked.temperature != 1.0 or asked.seed):
            raise Refused(422, "wrong_input", "temperature and seed are for sampling: add sample")
        names = ("beam", "nbest", "length_penalty", "sample", "temperature", "seed", "tree")
        options = {name: getattr(asked, name) for name in names}
        return {"options": options, "prefix": asked.prefix, "look": True, "attention": asked.attention}

    def check_texts(self, count: int, texts: Sequence[str]) -> None:
        if count > self.limits.texts:
            raise over("texts", count, self.limits.texts)
        longest = max(map(len, texts), default=0)
        if longest > self.limits.characters:
            raise over("characters", longest, self.limits.characters)


def build_app(
    desks: Sequence[Desk],
    limits: Limits,
    *,
    hosts: Sequence[str],
    key: str | None = None,
    langs: dict[str, tuple[str, str]] | None = None,
) -> FastAPI:
    """The application around the desks of its models; the first is asked where nobody says which."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        for desk in desks:
            desk.start()
        yield
        await asyncio.gather(*(desk.close() for desk in desks))

    app = FastAPI(
        title="saccade",
        version=saccade.__version__,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        responses={"4XX": {"model": Wrong}, "5XX": {"model": Wrong}},
    )
    service, meters = Service(desks, limits), Meters(desks)
    _add_work(app, service)
    _add_facts(app, service, meters)
    page.add(app)
    libre.add(app, desks, limits, langs or {}, key)
    guard(app, limits, hosts, key, meters)
    return app


def _add_work(app: FastAPI, service: Service) -> None:
    @app.post("/v1/translate", response_model=Answers, summary="Text to text")
    async def translate(request: Request, asked: Translate) -> dict[str, Any]:
        desk, how = service.find(asked.model, "text"), service.check(asked)
        service.check_texts(len(asked.texts), asked.texts)
        return _told(desk, await while_there(request, desk.ask("translate", asked.texts, **how)))

    @app.post(
        "/v1/stream",
        response_class=Lines,
        responses=REFUSALS,
        openapi_extra={"requestBody": TEXTS},
        summary="Text to text, a line of JSON for each: lines in, lines out, as they come",
    )
    async def stream(request: Request, asked: Annotated[Search, Query()]) -> Response:
        desk, how = service.find(asked.model, "text"), service.check(asked)
        return Lines(streamed(request, desk, how, service.limits))

    @app.post(
        "/v1/caption",
        response_model=Answers,
        summary="A picture, as the body, to text",
        openapi_extra={"requestBody": PICTURE},
    )
    async def caption(request: Request, asked: Annotated[Caption, Query()]) -> dict[str, Any]:
        desk, how = service.find(asked.model, "pictures"), service.check(asked)
        content = await request.body()
        if not content:
            raise Refused(422, "wrong_input", "the body is empty; expected a picture")
        if request.headers.get("content-type", "").startswith("multipart/"):
            raise Refused(
                422, "wrong_input", "expected the picture itself as the body (curl --data-binary), not a form"
            )
        picture = base64.b64encode(content).decode()
        if (asked.word is None) == bool(asked.places) or (asked.word is not None and asked.target is None):
            raise Refused(422, "wrong_input", "word and places go together, and with a target")
        if asked.target is None:
            return _told(desk, await while_there(request, desk.ask("caption", [picture], **how)))
        steer = {} if asked.word is None else {"steer": [asked.word, *asked.places]}
        return _told(desk, await while_there(request, desk.ask("align", [(picture, asked.target)], **steer)))

    @app.post("/v1/align", response_model=Answers, summary="Where the model looks while it writes a given target")
    async def align(request: Request, asked: Align) -> dict[str, Any]:
        desk = service.find(asked.model, "text")
        service.check_texts(len(asked.pairs), [text for pair in asked.pairs for text in (pair.source, pair.target)])
        how = {} if asked.steer is None else {"steer": [asked.steer.word, *asked.steer.places]}
        given = [(p.source, p.target) for p in asked.pairs]
        return _told(desk, await while_there(request, desk.ask("align", given, **how)))


def _told(desk: Desk, answers: list[dict[str, Any]]) -> dict[str, Any]:
    """What went wrong with one input is told in its place, as long as others went well."""
    wrong = [refusal(a) for a in answers]
    if answers and all(wrong):
        raise next(w for w in wrong if w is not None)
    told = [a if w is None else w.record() for a, w in zip(answers, wrong, strict=True)]
    return {"model": desk.name, "predictions": told}


def _add_facts(app: FastAPI, service: Service, meters: Meters) -> None:
    desks, limits = service.desks.values(), service.limits

    @app.get("/v1/models", summary="What is served")
    async def models() -> dict[str, Any]:
        return {"models": [{"name": d.name, "ready": d.ready, "unfit": d.unfit, **d.facts} for d in desks]}

    @app.post("/v1/models/{name}/reload", summary="Load a model anew, without a gap")
    async def reload(name: str) -> dict[str, Any]:
        await service.find(name).reload()
        return {"name": name, "ready": True}

    @app.get("/v1/limits", summary="Ceilings")
    async def published() -> dict[str, Any]:
        return {name: getattr(limits, name) for name in limits.__slots__}

    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", summary="200 when every model is ready", responses={503: {"description": "Not yet, or never"}})
    async def healthz(response: Response) -> dict[str, str]:
        ready = all(desk.ready for desk in desks)
        response.status_code = 200 if ready else 503
        return {"status": "ok" if ready else "unfit" if any(desk.unfit for desk in desks) else "loading"}

    @app.get("/metrics", response_class=PlainTextResponse, responses=REFUSALS, summary="For Prometheus")
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(generate_latest(meters.registry), media_type="text/plain; version=0.0.4")

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(manual(app.openapi(), limits))
