"""The manual of all settings, written from the config classes, so that it cannot be out of date."""

import json
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from saccade.config.model import OWNERS
from saccade.config.train import RunConfig


def manual() -> str:
    """A config file in TOML: every setting with its meaning; those that are commented out are decided by the data."""
    lines = ["# Settings of a run, for `saccade train --config FILE`. What is left out is chosen from the data."]
    tables: list[str] = []
    for name, field in RunConfig.model_fields.items():
        kinds = [k for k in (field.annotation, *get_args(field.annotation)) if isinstance(k, type)]
        kind = next((k for k in kinds if issubclass(k, BaseModel)), None)
        if kind is not None:
            tables += ["", f"[{name}]  # {field.description}"]
            for key, part in kind.model_fields.items():
                owners = OWNERS.get(key, ()) if name == "model" else ()
                tables += _setting(key, part, f" ({', '.join(owners)} only)" if owners else "")
        elif name != "format":
            lines += _setting(name, field, "")
    return "\n".join([*lines, *tables])


def _setting(name: str, field: FieldInfo, note: str) -> list[str]:
    default: Any = field.get_default(call_default_factory=True)
    value = "…" if default is None else json.dumps(default)
    return [f"# {field.description}{note}", f"# {name} = {value}"]
