"""Which lines of a kernel's source its warps waited at: Nsight Compute's source page.

The page repeats each instruction below the lines that it comes from. An instruction of an inlined
function stands below its own line and below the line of the call, so shares of lines may add up to
more than one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from evaluator.collect.collected import CollectedKernel, KernelTrace, SourceLine
from evaluator.collect.nsight.sass import instruction, producer

_LEAST_SHARE = 0.05
_MOST_LINES = 12
_MOST_LIKELY = 3
_DEFINED = re.compile(
    # CUDA's, whose bounds may stand on either side of its type; Triton's, with its decorators.
    r"(?:__global__[\s\w]*?(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)[\s\w]*?)?\b"
    r"|@triton\.jit\b.*\n(?:\s*@.*\n)*\s*def\s+)(\w+)\s*\("
)
_STALL = re.compile(r"stall_\w+")
"""Heads of the counts of all samples; those of samples without an issue have words behind."""
_NO_WAITS = ("stall_selected", "stall_not_selected")
"""A warp that was sampled while it issued, or while another one did: it could have issued."""
_OPERANDS = ("stall_long_sb", "stall_short_sb")
"""An operand is not there yet: the instruction that makes it is what takes so long."""
_QUANTITIES = {
    "stall_branch_resolving": "stall_branch",
    "stall_dispatch": "stall_dispatch",
    "stall_gmma": "stall_tensor",
    "stall_imc": "stall_constant",
    "stall_lg": "stall_lg_throttle",
    "stall_long_sb": "stall_long_scoreboard",
    "stall_math": "stall_math_pipe",
    "stall_mio": "stall_mio_throttle",
    "stall_no_inst": "stall_no_instruction",
    "stall_short_sb": "stall_short_scoreboard",
    "stall_sleep": "stall_sleeping",
    "stall_tex": "stall_tex_throttle",
}
"""The page's short names, as `ncu_metrics.QUANTITIES` has them; the others are the same there."""


def hottest_own(trace: KernelTrace, source: str) -> CollectedKernel | None:
    """The kernel that takes most time of those that the candidate's file names; None without."""
    return max(trace.own(source), key=lambda kernel: kernel.time_us, default=None)


def likely_kernels(source: str) -> tuple[str, ...]:
    """Names of kernels that the candidate's file seems to define, in its order; a few at most.

    Whose page is asked for ahead need not wait until it is known which kernel is the hottest. A
    name too many or too few costs that wait and no more.
    """
    return tuple(dict.fromkeys(_DEFINED.findall(source)))[:_MOST_LIKELY]


def source_options(name: str) -> list[str]:
    """What to ask `ncu --import` for: the page of one launch of the kernel, as each takes long."""
    one = ["--kernel-name", f"regex:(^|::){name}$", "--launch-count", "1"]
    return ["--page", "source", "--print-source", "cuda,sass", *one]


def with_lines(trace: KernelTrace, name: str, lines: tuple[SourceLine, ...]) -> KernelTrace:
    """The same trace, the kernel of that name with its lines."""
    kernels = tuple(
        kernel.model_copy(update={"lines": lines}) if kernel.name == name else kernel
        for kernel in trace.kernels
    )
    return trace.model_copy(update={"kernels": kernels})


def parse_source(text: str) -> tuple[SourceLine, ...]:
    """The lines at which most time was lost, of the page of one launch, the worst first.

    A wait for an operand counts at the line of the instruction that makes the operand. Empty where
    the build has no line information.
    """
    places: dict[str, set[tuple[str, int]]] = {}
    stalls: dict[str, Counter[str]] = {}
    texts: dict[str, str] = {}
    place: tuple[str, int] | None = None
    for row in _rows(text):
        if row.number is not None:
            place = (row.file, row.number)
            continue
        stalls[row.address], texts[row.address] = row.stalls, row.text
        if place is not None:
            places.setdefault(row.address, set()).add(place)
    lost: dict[tuple[str, int], Counter[tuple[str, str]]] = {}
    code = [instruction(address, texts[address]) for address in sorted(texts)]
    for number, at in enumerate(code):
        for reason, count in stalls[at.address].items():
            made_by = producer(code, number) if reason in _OPERANDS else None
            source = made_by or at
            for spot in places.get(source.address, ()):
                lost.setdefault(spot, Counter())[reason, source.kind] += count
    whole = sum(counts.total() for counts in stalls.values())
    lines = []
    for (file, line), counts in lost.items():
        if whole and counts.total() >= _LEAST_SHARE * whole:
            (reason, kind), _ = counts.most_common(1)[0]
            lines.append(
                SourceLine(
                    file=file,
                    line=line,
                    share=min(1.0, counts.total() / whole),
                    reason=_QUANTITIES.get(reason, reason),
                    producer=kind if reason in _OPERANDS else "",
                )
            )
    return tuple(sorted(lines, key=lambda line: -line.share)[:_MOST_LINES])


@dataclass(frozen=True)
class _Row:
    """A line of source, or an instruction below it."""

    file: str
    number: int | None
    """None for an instruction."""
    address: str
    text: str
    stalls: Counter[str]
    """Samples by reason."""


def _rows(text: str) -> Iterator[_Row]:
    file = ""
    head: list[str] = []
    for row in text.splitlines():
        # The page does not double the quotes in lines of source: no reader of CSV gets it right.
        cells = row.strip().removeprefix('"').removesuffix('"').split('","')
        if cells[0] == "File Path":
            file = cells[1].rpartition("/")[2]
        elif cells[0] == "Line No":
            head = cells
        elif head and len(cells) >= len(head) and (cells[0].isdigit() or not cells[0]):
            named = zip(reversed(head), reversed(cells), strict=False)
            stalls = Counter(
                {
                    name: int(count)
                    for name, count in named
                    if _STALL.fullmatch(name)
                    and name not in _NO_WAITS
                    and count.isdigit()
                    and count != "0"
                }
            )
            yield _Row(file, int(cells[0]) if cells[0] else None, cells[2], cells[3], stalls)
