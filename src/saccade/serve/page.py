"""The page's parts, which lie beside this file: a page may load its own parts and nothing else."""

from collections.abc import Callable
from importlib.resources import files

from fastapi import FastAPI, Response

SCRIPTS = ("/page.js", "/panel.js", "/map.js", "/words.js")
PARTS = {"/": "text/html; charset=utf-8", "/page.css": "text/css", **dict.fromkeys(SCRIPTS, "text/javascript")}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


def add(app: FastAPI) -> None:
    for path, kind in PARTS.items():
        app.add_api_route(path, _part(path, kind), include_in_schema=False, methods=["GET", "HEAD"])


def _part(path: str, kind: str) -> Callable[[], Response]:
    name = "page.html" if path == "/" else path[1:]
    content = files("saccade.serve").joinpath(name).read_bytes()

    def part() -> Response:
        return Response(
            content, media_type=kind, headers={"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
        )

    return part
