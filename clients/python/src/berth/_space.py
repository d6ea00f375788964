"""A search space, written in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional


def Float(low: float, high: float, *, log: bool = False, step: Optional[float] = None) -> dict[str, Any]:  # noqa: N802
    """A number from low to high, both included; ``log`` searches its decades alike."""
    return _range("float", low, high, log, step)


def Int(low: int, high: int, *, log: bool = False, step: Optional[int] = None) -> dict[str, Any]:  # noqa: N802
    """A whole number from low to high, both included; ``log`` searches its decades alike."""
    return _range("int", low, high, log, step)


def Choice(values: Sequence[Any]) -> dict[str, Any]:  # noqa: N802
    """One of the values, of one type."""
    return {"values": list(values)}


def _range(kind: str, low: float, high: float, log: bool, step: Optional[float]) -> dict[str, Any]:
    parameter: dict[str, Any] = {"type": kind, "min": low, "max": high}
    if log:
        parameter["log"] = True
    if step is not None:
        parameter["step"] = step
    return parameter


def parameters(space: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the parameters of a sweep file: of a list its choices, of a value that is no space a fixed one."""
    return [{"name": name, **_parameter(one)} for name, one in space.items()]


def _parameter(one: Any) -> Mapping[str, Any]:
    if isinstance(one, Mapping):
        return one
    if isinstance(one, (list, tuple)):
        return Choice(one)
    return {"value": one}
