"""A claim as a notebook: its own module in cells that a student can change."""

import hashlib
import importlib
import inspect
from typing import Any

from saccade.lab.claim import Claim


def notebook(claim: Claim) -> dict[str, Any]:
    """The claim's own module in cells that a student can change, small enough to run at once."""
    source = inspect.getsource(importlib.import_module(f"saccade.lab.{claim.name}"))
    setup = (
        "from pathlib import Path\nfrom saccade.lab.bench import Bench\n\n"
        "bench = Bench(Path('lab-notebook'), quick=True, again=True)  # quick=False for the sizes of the book\n"
        "figures = measure(bench)\nfigures[:5]"
    )
    shown = (
        "from IPython.display import HTML\nfrom saccade.lab.book import charts\nfrom saccade.see.page import whole\n\n"
        "HTML(whole(CLAIM.title.en, charts(CLAIM, figures)))"
    )
    cells = [
        _text(f"# {claim.title.en} · {claim.title.ko}\n\n{claim.says.en}\n\n{claim.says.ko}"),
        _text(f"{claim.setup.en}\n\n{claim.setup.ko}"),
        _code(source),
        *([] if claim.live is None else [_code(f"{claim.live.__name__}()")]),
        _code(setup),
        _text(f"**Rule.** {claim.rule.en}\n\n**규칙.** {claim.rule.ko}"),
        _code("str(judge(figures))"),
        _code(shown),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _text(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": _id(text), "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(code: str) -> dict[str, Any]:
    lines = code.splitlines(keepends=True)
    empty: dict[str, Any] = {"execution_count": None, "metadata": {}, "outputs": []}
    return {"cell_type": "code", "id": _id(code), **empty, "source": lines}


def _id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
