"""/docs: the service's own description as one page that needs no network."""

import html
import json
from typing import Any

from saccade.serve.limits import Limits

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:1em auto;padding:0 1em;color:#123;background:#fff}"
    "pre{background:#f2f4f7;padding:.7em;overflow:auto}h2{font-size:1.1em;margin-top:2em}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#dde}pre{background:#222}}"
)


def manual(schema: dict[str, Any], limits: Limits) -> str:
    """Every path with what it takes, from the OpenAPI schema."""
    parts = []
    for path, methods in schema["paths"].items():
        for method, told in methods.items():
            parts.append(f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>")
            parts.append(f"<p>{html.escape(told.get('summary', ''))}</p>")
            parts += [f"<p><code>{html.escape(p['name'])}</code> ({p['in']})</p>" for p in told.get("parameters", [])]
            for kind, content in told.get("requestBody", {}).get("content", {}).items():
                name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
                found = schema.get("components", {}).get("schemas", {}).get(name, content.get("schema", {}))
                shown = json.dumps(found.get("properties", found), indent=1, ensure_ascii=False)
                parts.append(f'<p><code>{html.escape(kind)}</code></p><pre tabindex="0">{html.escape(shown)}</pre>')
    ceilings = "".join(f"<li><code>{n}</code>: {getattr(limits, n):g}</li>" for n in limits.__slots__)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>saccade: the API</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style></head><body><main>'
        f'<h1>saccade: the API</h1><p>The same as <a href="/openapi.json">OpenAPI</a>. Limits:</p><ul>{ceilings}</ul>'
        f"{''.join(parts)}</main></body></html>"
    )
