"""Calls an operator of the table, which the modules imported here fill."""

from __future__ import annotations

import inspect
from typing import Any

from agent.tuner.errors import CannotTrace
from agent.tuner.tracing import library, pointwise, rowwise  # noqa: F401 (they fill the table)
from agent.tuner.tracing.graph import Builder
from agent.tuner.tracing.operators import OPERATORS


def apply(b: Builder, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an operator by its bare name; CannotTrace where it or its arguments are unknown."""
    operator = OPERATORS.get(name)
    if operator is None:
        raise CannotTrace(f"the operator `{name}`")
    try:
        bound = inspect.signature(operator).bind(b, *args, **kwargs)
    except TypeError as error:
        raise CannotTrace(f"the arguments of `{name}` ({error})") from None
    try:
        return operator(*bound.args, **bound.kwargs)
    except (ValueError, IndexError) as error:
        raise CannotTrace(f"`{name}` on these shapes ({error})") from None
