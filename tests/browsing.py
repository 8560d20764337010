"""Chromium as Debian has it, and axe, for the tests that open pages."""

import shutil
from pathlib import Path

import axe_core_python as axe

CHROMIUM = shutil.which("chromium")
FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync --no-first-run"


def serious(tab) -> list[str]:
    """What axe finds; it is let in past the page's policy, which forbids scripts of others."""
    source = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    client = tab.context.new_cdp_session(tab)
    client.send("Runtime.evaluate", {"expression": source})
    found = client.send("Runtime.evaluate", {"expression": "axe.run()", "awaitPromise": True, "returnByValue": True})[
        "result"
    ]["value"]
    assert len(found["passes"]) > 5  # it did look
    return [f"{v['id']}: {v['help']}" for v in found["violations"] if v["impact"] in ("serious", "critical")]
