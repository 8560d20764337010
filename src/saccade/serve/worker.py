"""The process that owns a model: it reads a batch from its pipe, answers, and reads the next."""

import base64
import json
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from saccade.serve.limits import Limits

Message = dict[str, Any]


def work(paths: list[str], connection: Connection, threads: int, limits: Limits) -> None:
    """Answers until it is told to end, or until nobody is there to ask."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # whoever started it says when it is over
    try:
        _send(connection, _serve(paths, connection, threads, limits))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except ValueError as error:
        _log({"unfit": str(error)})
        _send(connection, {"unfit": _without(paths, str(error))})


def _serve(paths: list[str], connection: Connection, threads: int, limits: Limits) -> Message:
    import torch  # noqa: PLC0415  (here alone: the service itself never loads it)

    from saccade.train import Run, load  # noqa: PLC0415

    torch.set_num_threads(threads)
    translator = load(*map(Path, paths))
    translator.most = min(translator.most, limits.tokens - 1)
    run = Run.open(Path(paths[0]))
    facts = {
        "family": run.config.model.family,
        "reads": "pictures" if translator.reads_pictures else "text",
        "symbols": translator.symbols,
        "langs": run.config.data.langs,
        "most_tokens": translator.most,
        "characters": translator.most if _spells(run) else None,  # that it reads of a text, if it counts them at all
    }
    _send(connection, {"ready": facts})
    while True:
        asked: Message = json.loads(connection.recv_bytes())
        if asked["kind"] == "end":
            return {"ended": True}
        _send(connection, {"found": _answered(translator, asked, limits)})


def _spells(run: Any) -> bool:
    """Whether each character of a source is one token: not if it is decomposed, as jamo are."""
    return run.config.source.kind == "characters" and run.config.source.form != "NFD" and not run.config.image


def _answered(translator: Any, asked: Message, limits: Limits) -> list[Message]:
    """What goes wrong for one client goes wrong for that client alone: then the batch is gone through one by one."""
    try:
        return _answer(translator, asked, limits)
    except Exception as error:
        if len(asked["items"]) > 1:
            return [m for item in asked["items"] for m in _answered(translator, {**asked, "items": [item]}, limits)]
        if isinstance(error, ValueError):
            return [{"failed": str(error)}]
        _log({"error": type(error).__name__, "at": traceback.format_tb(error.__traceback__)})  # without a client's text
        return [{"broken": True}]


def _answer(translator: Any, asked: Message, limits: Limits) -> list[Message]:
    from saccade.search import Options  # noqa: PLC0415

    items, forced = asked["items"], asked["kind"] == "align"
    sources = [item[0] for item in items] if forced else items
    broken: dict[int, Message] = {}
    if translator.reads_pictures:
        sources, broken = _seen(translator, sources, limits)
    if forced:
        steer = asked.get("steer")
        pairs = list(zip(sources, (item[1] for item in items), strict=True))
        found = translator.score_all(pairs, steer=None if steer is None else tuple(steer))
    else:
        found = translator.translate(sources, Options(**asked["options"]), asked["look"], asked["prefix"])
    told = [_told(p, forced or asked["attention"]) for p in found]
    return [broken.get(i, t) for i, t in enumerate(told)]


def _seen(translator: Any, encoded: list[str], limits: Limits) -> tuple[list[str], dict[int, Message]]:
    """Pictures by names of ours, ready to be looked at; and what is wrong with those that cannot be."""
    from saccade.data.pictures import TooLargeError, open_picture  # noqa: PLC0415

    names, fitted = [], {}
    broken: dict[int, Message] = {}
    for i, content in enumerate(encoded):
        names.append(f"picture {i}")
        try:
            opened = open_picture(base64.b64decode(content), limits.pixels, translator.source.side)
            fitted[names[i]] = translator.source.fit(opened)
        except TooLargeError as error:
            broken[i], names[i] = {"over": ["pixels", error.pixels, limits.pixels]}, ""
        except ValueError as error:
            broken[i], names[i] = {"failed": str(error)}, ""
    translator.pictures = fitted
    return names, broken


def _told(prediction: Any, attention: bool) -> Message:
    record: Message = prediction.record()
    record.pop("source")  # the client knows it, and of a picture it is a name of ours
    if not attention:
        record.pop("attention")
    return record


def _without(paths: list[str], told: str) -> str:
    """What a client may know: names of files, not where they are."""
    for path in paths:
        for known in (str(Path(path).resolve()), path.rstrip("/")):
            told = told.replace(f"{known}/", "").replace(known, Path(path).resolve().name)
    return told


def _log(told: Message) -> None:
    sys.stderr.write(json.dumps(told) + "\n")


def _send(connection: Connection, message: Message) -> None:
    connection.send_bytes(json.dumps(message).encode())
