"""Small checks at the border of the room."""

from torch import Tensor


def check_tensor(name: str, x: object) -> None:
    if not isinstance(x, Tensor):
        raise ValueError(f"{name}: {type(x).__name__}, expected a tensor")


def check_whole(**numbers: int | None) -> None:
    """Whole numbers, at least 1; None is none of our business."""
    for name, number in numbers.items():
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
            raise ValueError(f"{name}: {number!r}, expected a whole number, at least 1")
