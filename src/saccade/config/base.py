"""What all configs share."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from saccade.errors import unknown


class Config(BaseModel):
    """Settings that cannot be misspelt and do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @classmethod
    def read(cls, settings: dict[str, Any], where: str = "config") -> Self:
        """Settings as a config; a mistake is a ValueError of one line that says where, what, and how to mend it."""
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            if first["type"] == "extra_forbidden":
                raise ValueError(f"{where}: {unknown('key', key, cls._keys_beside(first['loc']))}") from None
            message = first["msg"].removeprefix("Value error, ")
            raise ValueError(f"{where}: {key}: {message}" if key else f"{where}: {message}") from None

    @classmethod
    def _keys_beside(cls, place: tuple[int | str, ...]) -> list[str]:
        """The known keys, written in full, of the section in which an unknown one was found."""
        section: Any = cls
        for part in place[:-1]:
            section = section.model_fields[str(part)].annotation
        above = "".join(f"{part}." for part in place[:-1])
        return [above + name for name in section.model_fields]
