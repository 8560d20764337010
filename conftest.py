"""Runs the snippets of README and docs: each page is one session."""

from doctest import ELLIPSIS

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS)],
    patterns=["docs/*.md", "README.md"],
).pytest()
