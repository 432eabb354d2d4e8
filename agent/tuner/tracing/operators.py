"""The table of PyTorch's operators that the tuner understands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing.library import LIBRARY
from agent.tuner.tracing.pointwise import POINTWISE, Operator
from agent.tuner.tracing.rowwise import ROWWISE

OPERATORS: Mapping[str, Operator] = {**POINTWISE, **ROWWISE, **LIBRARY}


def apply(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> Any:
    """Call an operator by its bare name; CannotTrace where it or its arguments are unknown."""
    if name not in OPERATORS:
        raise CannotTrace(f"the operator `{name}`")
    try:
        return OPERATORS[name](*args, **(kwargs or {}))
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise CannotTrace(f"`{name}` of these arguments ({error})") from None
