"""What all configs share."""

from typing import Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from saccade.errors import UsageError, unknown


class Config(BaseModel):
    """Settings that cannot be misspelt and do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)

    @classmethod
    def read(cls, settings: dict[str, Any], file: str | None = None) -> Self:
        """Settings as a config; a mistake is an error of one line that says where, what, and how to mend it: a
        UsageError, unless a file holds them.
        """
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            what = cls._told(error.errors()[0])
            raise (UsageError(f"settings: {what}") if file is None else ValueError(f"{file}: {what}")) from None

    @classmethod
    def _told(cls, mistake: ErrorDetails) -> str:
        place = [str(part) for part in mistake["loc"]]
        key, message = ".".join(place), mistake["msg"].removeprefix("Value error, ")
        if mistake["type"] == "extra_forbidden":
            return str(unknown("key", key, [".".join([*place[:-1], name]) for name in cls._beside(place)]))
        if mistake["type"] == "literal_error":
            message = str(unknown(place[-1], mistake["input"], _names(cls._beside(place)[place[-1]].annotation)))
        return f"{key}: {message}" if key else message

    @classmethod
    def _beside(cls, place: list[str]) -> dict[str, FieldInfo]:
        """The settings of the section in which a mistake was found."""
        section: type[Config] = cls
        for part in place[:-1]:
            kinds = _kinds(section.model_fields[part].annotation)
            section = next(k for k in kinds if isinstance(k, type) and issubclass(k, Config))
        return section.model_fields


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """What a setting may be, if it may be several."""
    return annotation, *get_args(annotation)


def _names(annotation: Any) -> list[str]:
    return [str(name) for kind in _kinds(annotation) if get_origin(kind) is Literal for name in get_args(kind)]
