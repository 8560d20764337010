"""The process that owns a model: it reads a batch from its pipe, answers, and reads the next."""

import base64
import json
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Message = dict[str, Any]


def work(paths: list[str], connection: Connection, threads: int, pixels: int) -> None:
    """Answers until it is told to end, or until nobody is there to ask."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # whoever started it says when it is over
    try:
        _send(connection, _serve(paths, connection, threads, pixels))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except ValueError as error:
        _send(connection, {"unfit": str(error)})


def _serve(paths: list[str], connection: Connection, threads: int, pixels: int) -> Message:
    import torch  # noqa: PLC0415  (here alone: the service itself never loads it)

    from saccade.train import Run, load  # noqa: PLC0415

    torch.set_num_threads(threads)
    translator = load(*map(Path, paths))
    run = Run.open(Path(paths[0]))
    facts = {
        "family": run.config.model.family,
        "reads": "pictures" if translator.reads_pictures else "text",
        "symbols": translator.symbols,
        "langs": run.config.data.langs,
        "most_tokens": translator.most,
    }
    _send(connection, {"ready": facts})
    while True:
        asked: Message = json.loads(connection.recv_bytes())
        if asked["kind"] == "end":
            return {"ended": True}
        _send(connection, {"found": _answered(translator, asked, pixels)})


def _answered(translator: Any, asked: Message, pixels: int) -> list[Message]:
    """What one client asked wrongly fails for that client alone: then the batch is gone through one by one."""
    try:
        return _answer(translator, asked, pixels)
    except ValueError as error:
        if len(asked["items"]) == 1:
            return [{"failed": str(error)}]
        return [m for item in asked["items"] for m in _answered(translator, {**asked, "items": [item]}, pixels)]


def _answer(translator: Any, asked: Message, pixels: int) -> list[Message]:
    from saccade.search import Options  # noqa: PLC0415

    items = asked["items"]
    if asked["kind"] == "align":
        steer = asked.get("steer")
        found = translator.score_all([(s, t) for s, t in items], steer=None if steer is None else tuple(steer))
        return [_told(p, attention=True) for p in found]
    broken: dict[int, str] = {}
    if asked["kind"] == "caption":
        names, fitted = [], {}
        for i, encoded in enumerate(items):
            try:
                fitted[f"picture {i}"] = translator.source.fit(_opened(base64.b64decode(encoded), pixels))
                names.append(f"picture {i}")
            except ValueError as error:
                broken[i] = str(error)
                names.append("")
        translator.pictures, items = fitted, names
    options = Options(**asked["options"])
    found = translator.translate(items, options, asked["look"], asked["prefix"])
    told = [_told(p, asked["attention"]) for p in found]
    return [{"failed": broken[i]} if i in broken else t for i, t in enumerate(told)]


def _opened(content: bytes, pixels: int) -> Any:
    from saccade.data.pictures import open_picture  # noqa: PLC0415

    picture = open_picture(content)
    if picture.width * picture.height > pixels:
        raise ValueError(f"the picture: {picture.width}×{picture.height} pixels, more than {pixels:,}")
    return picture


def _told(prediction: Any, attention: bool) -> Message:
    record: Message = prediction.record()
    record.pop("source")  # the client knows it, and of a picture it is a name of ours
    if not attention:
        record.pop("attention")
    return record


def _send(connection: Connection, message: Message) -> None:
    connection.send_bytes(json.dumps(message).encode())
