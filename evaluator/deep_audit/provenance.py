"""Whose work it is: how the time of forward divides, and the label that follows.

The time comes from a trace made in the candidate's own process, so a label is a claim that was
looked at, not a proof; what the trusted builder built bounds it. The rule is in
`docs/evaluator.md`.
"""

from __future__ import annotations

import ast
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.audit_record import Provenance, Shares
from evaluator.candidate_tree import candidate_tree
from evaluator.collect.collected import KernelTrace, ProfiledCall
from evaluator.collect.own_collectors import collect_own
from evaluator.collect.target.broker import Ended
from evaluator.collect.target.target import Collector, write_request
from evaluator.deep_audit.own_code import OwnCode
from evaluator.errors import InfrastructureError, ProfilerError
from evaluator.evaluation import EvaluationRequest

CUSTOM_FROM = 0.9
LIBRARY_BELOW = 0.1
_UNKNOWN_ABOVE = 0.5
_PYTHON_US = 200.0
"""Of a call's time on a CPU, what Python and the profiler may take without counting."""
_TIMEOUT_S = 120.0
_MOST_NAMES = 8
_NEUTRAL = frozenset(
    {
        "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted",
        "resize_", "view", "_unsafe_view", "reshape", "_reshape_alias", "as_strided", "detach",
        "detach_", "alias", "t", "transpose", "permute", "expand", "expand_as", "unsqueeze",
        "squeeze", "select", "slice", "narrow", "flatten", "unflatten", "contiguous", "view_as",
        "to", "split", "chunk", "unbind", "unfold", "item", "_local_scalar_dense", "result_type",
        "is_nonzero", "size", "stride", "numel", "data", "requires_grad_", "set_", "lift_fresh",
    }
)  # fmt: skip
"""PyTorch's operators that compute nothing: what they need copied, they leave to `copy_`, which
counts."""


@dataclass(frozen=True)
class Origin:
    """The label and what it rests on. Without a label, `note` says why."""

    label: Provenance | None
    shares: Shares | None = None
    note: str = ""


def origin_of(
    request: EvaluationRequest, code: OwnCode, *, build_failed: bool, ended: Ended
) -> Origin:
    """Trace the candidate behind the judge's walls and label it. Raises nothing.

    `ended`: whether to give up, without a label."""
    try:
        shares = _traced(request, code, ended)
    except (InfrastructureError, OSError) as error:
        return Origin(None, note=f"provenance is unknown: {error}")
    if request.settings.device != "cpu" and not code.known:
        return Origin(None, shares, "provenance is unknown: the names of its kernels can't be read")
    fell_back = build_failed or uses_reference(request.candidate.source, request.reference)
    label = label_of(shares, code, fell_back=fell_back)
    if label is None:
        note = (
            f"provenance is unknown: {100 * shares.other:.0f} % of the time went into neither its "
            "own functions nor operators of PyTorch"
        )
        return Origin(None, shares, note)
    return Origin(label, shares)


def label_of(shares: Shares, code: OwnCode, *, fell_back: bool) -> Provenance | None:
    """The label for these shares; None where too much of the time is unaccounted for.

    `fell_back`: a build failed, or the reference's class does the work.
    """
    if shares.own >= CUSTOM_FROM:
        # Its own functions call a library for an unknown time that no trace sees.
        return Provenance.MIXED if shares.imports else Provenance.CUSTOM
    if code.exists and shares.other > _UNKNOWN_ABOVE:
        return None
    if shares.own >= LIBRARY_BELOW:
        return Provenance.MIXED
    never_ran = code.exists and not shares.own_names
    return Provenance.FALLBACK if fell_back or never_ran else Provenance.LIBRARY


def cpu_shares(calls: Sequence[ProfiledCall], code: OwnCode) -> Shares:
    """The call whose own share is the median of all. Needs at least one call."""
    # Other processes on the processor make it longer, and nothing makes it shorter.
    other = sorted(map(_other_us, calls))[len(calls) // 4]
    chosen = sorted(calls, key=lambda call: _own_share(call, other))[len(calls) // 2]
    own, library = sum(_own_us(chosen).values()), sum(_library_us(chosen).values())
    whole = max(own + library + other, 1e-9)
    times = [_own_us(call) for call in calls]
    ran = {
        name: statistics.median(each.get(name, 0.0) for each in times)
        for name in {name for each in times for name in each}
    }
    return Shares(
        own=own / whole,
        library=library / whole,
        other=other / whole,
        own_names=_longest(ran),
        library_names=_longest(_library_us(chosen)),
        imports=code.unseen,
    )


def gpu_shares(trace: KernelTrace, code: OwnCode) -> Shares:
    """The same from the kernels of one call: those that the candidate's code defines are its own.

    What a library's function launches shows as that library's kernels, no matter what called it.
    """
    own = {k.name: k.time_us for k in trace.kernels if k.name in code.kernels}
    library = {k.name: k.time_us for k in trace.kernels if k.name not in code.kernels}
    whole = max(trace.busy_us, 1e-9)
    return Shares(
        own=sum(own.values()) / whole,
        library=sum(library.values()) / whole,
        other=0.0,
        own_names=_longest(own),
        library_names=_longest(library),
    )


def _traced(request: EvaluationRequest, code: OwnCode, ended: Ended) -> Shares:
    device = request.settings.device
    with tempfile.TemporaryDirectory(prefix="refinery-audit-") as name:
        folder = Path(name)
        write_request(folder, request)
        mode: Collector = "shares" if device == "cpu" else "torch_trace"
        collected = collect_own(folder, mode, device=device, timeout_s=_TIMEOUT_S, ended=ended)
    if collected.gpu is not None:
        return gpu_shares(collected.gpu, code)
    if not collected.calls:
        raise ProfilerError("no call was traced")
    return cpu_shares(collected.calls, code)


def _own_us(call: ProfiledCall) -> dict[str, float]:
    """By name, as for libraries below."""
    return {each.name: each.time_us for each in call.operators if each.own}


def _library_us(call: ProfiledCall) -> dict[str, float]:
    return {
        each.name: each.time_us
        for each in call.operators
        if "::" in each.name and not (each.own or each.name.removeprefix("aten::") in _NEUTRAL)
    }


def _other_us(call: ProfiledCall) -> float:
    known = sum(each.time_us for each in call.operators if each.own or "::" in each.name)
    return max(0.0, call.wall_us - known - _PYTHON_US)


def _own_share(call: ProfiledCall, other_us: float) -> float:
    own = sum(_own_us(call).values())
    return own / max(own + sum(_library_us(call).values()) + other_us, 1e-9)


def _longest(times: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(sorted(times, key=lambda name: -times[name]))[:_MOST_NAMES]


def uses_reference(candidate: str, reference: str) -> bool:
    """Whether a class whose forward is the reference's is what `ModelNew` runs.

    It is where `ModelNew` inherits from that class and leaves forward to it, or where the class is
    instantiated, or its forward called. A `ModelNew` that copies the reference word for word is
    not meant: that one calls operators like any other.
    """
    own, given = candidate_tree(candidate), candidate_tree(reference)
    if own is None or given is None:
        return False
    wanted = {_forward(each) for each in _classes(given) if each.name == "Model"} - {None}
    copies = {
        each.name for each in _classes(own) if each.name != "ModelNew" and _forward(each) in wanted
    }
    for each in _classes(own):
        inherits = any(_named(base) in copies for base in each.bases)
        if each.name == "ModelNew" and inherits and _defers(each):
            return True
    return any(isinstance(node, ast.Call) and _named(node.func) in copies for node in ast.walk(own))


def _defers(each: ast.ClassDef) -> bool:
    return _forward(each) is None or any(
        isinstance(node, ast.Attribute)
        and node.attr == "forward"
        and isinstance(node.value, ast.Call)
        and _named(node.value.func) == "super"
        for node in ast.walk(each)
    )


def _named(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute) and function.attr == "forward":
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def _forward(each: ast.ClassDef) -> str | None:
    for node in each.body:
        if isinstance(node, ast.FunctionDef) and node.name == "forward":
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            return "\n".join(map(ast.dump, body))
    return None
