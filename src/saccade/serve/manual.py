"""/docs: the service's own description as one page that needs no network."""

import html
import json
from typing import Any

from saccade.serve.limits import Limits

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:1em auto;padding:0 1em;color:#123;background:#fff}"
    "table{border-collapse:collapse;display:block;overflow:auto}th,td{text-align:left;vertical-align:top;font-weight:400;"
    "padding:.2em .8em .2em 0;border-bottom:1px solid #8884}h2{font-size:1.1em;margin-top:2em}a{color:#0b57a4}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#dde}a{color:#8ecbff}}"
)


ANSWER = {
    "text": "what was written",
    "score": "its log-probability (natural)",
    "source_tokens, target_tokens": "pieces, each with its text and its span in code points; the end is ∎",
    "log_probabilities": "of each target token",
    "runners_up": "for each target token what might have stood there: text, as it would be appended, and probability",
    "alignment": "links [i, j] between words, from 0: word j that was written came from word i of the source",
    "alternatives": "with nbest: the next best, text and score",
    "attention": "on request: cross [layer][head][target token][place]; `layer` is the one to show, its heads' mean",
    "tree": "on request: all that the beam from the start kept: parent's place (-1: none), text, score, probability",
    "grid, cell, size": "of a picture: rows and columns of places, pixels of one, and height and width as it was seen",
    "unknown, cut_source, cut_output": "symbols the model does not know; whether the source or the output was cut",
    "error": "in place of all this, if one input could not be answered while others could: code, message, limit, most",
}


def manual(schema: dict[str, Any], limits: Limits) -> str:
    """Every path with what it takes, from the OpenAPI schema."""
    parts = []
    for path, methods in schema["paths"].items():
        for method, told in methods.items():
            parts.append(f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>")
            parts.append(f"<p>{html.escape(told.get('summary', ''))}</p>")
            rows = [(p["name"], _kind(p["schema"], schema), p["schema"].get("description", "")) for p in _asked(told)]
            parts.append(_table(rows))
            kinds: dict[str, list[str]] = {}  # those whose fields are the same, by their table
            for kind, content in told.get("requestBody", {}).get("content", {}).items():
                known = _resolved(content.get("schema", {}), schema).get("properties", {}).items()
                table = _table([(n, _kind(f, schema), f.get("description", "")) for n, f in known])
                kinds.setdefault(table, []).append(f"<code>{html.escape(kind)}</code>")
            parts += [f"<p>Body: {' or '.join(names)}</p>{table}" for table, names in kinds.items()]
    ceilings = "".join(f"<li><code>{n}</code>: {getattr(limits, n):,}</li>" for n in limits.__slots__)
    answer = _table([(name, "", meaning) for name, meaning in ANSWER.items()])
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>saccade: the API</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style></head><body><main>'
        f'<h1>saccade: the API</h1><p>The same as <a href="/openapi.json">OpenAPI</a>. Limits:</p><ul>{ceilings}</ul>'
        '<p>What is refused is told as <code>{"error": {"code", "message", "limit", "most"}}</code>, '
        "under 401, 403, 404, 408, 409, 411, 413, 421, 422, 429 or 503; by LibreTranslate's routes as "
        '<code>{"error": "message"}</code>, under 400 or 403 too.</p>'
        f"<h2>A prediction</h2>{answer}{''.join(parts)}</main></body></html>"
    )


def _asked(told: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = told.get("parameters", [])
    return found


def _table(rows: list[tuple[str, str, str]]) -> str:
    cells = "".join(
        f'<tr><th scope="row"><code>{html.escape(a)}</code></th><td>{html.escape(b)}</td><td>{html.escape(c)}</td></tr>'
        for a, b, c in rows
    )
    return f"<table><tbody>{cells}</tbody></table>" if rows else ""


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    name = part.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = schema.get("components", {}).get("schemas", {}).get(name, part)
    return found


def _kind(part: dict[str, Any], schema: dict[str, Any]) -> str:
    """A type in words: `list of {source: string, target: string}`, and what it is if it is not given."""
    part = _resolved(part, schema)
    if "anyOf" in part:
        kinds = [_kind(p, schema) for p in part["anyOf"] if p.get("type") != "null"]
        return " or ".join(kinds) + (", optional" if len(kinds) < len(part["anyOf"]) else "")
    if part.get("type") == "array":
        return f"list of {_kind(part.get('items', {}), schema)}"
    if "properties" in part:
        inner = ", ".join(f"{n}: {_kind(f, schema)}" for n, f in part["properties"].items())
        return f"{{{inner}}}"
    default = f", {json.dumps(part['default'])} if not given" if "default" in part else ""
    return f"{part.get('type', 'any')}{default}"
