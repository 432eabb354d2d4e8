"""For which lines of a kernel's source its warps waited: Nsight Compute's source page.

The page repeats each instruction below the lines that it comes from. An instruction of an inlined
function is printed below its own line and below the line of each call.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluator.collect.collected import SourceLine
from evaluator.collect.nsight.scoreboard import MBARRIER, Code, SassInstruction, parse_instruction

_LEAST_SHARE = 0.05
_MOST_LINES = 12
_DEFINED = re.compile(
    # CUDA's, whose bounds may be on either side of its type; Triton's, with its decorators.
    r"(?:__global__[\s\w]*?(?:__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)[\s\w]*?)?\b"
    r"|@triton\.jit\b.*\n(?:\s*@.*\n)*\s*def\s+)(\w+)\s*\("
)
_STALL = re.compile(r"(?:stall|smsp__pcsamp_warps_issue_stalled)_((?!\w*_not_issued)\w+)")
"""Heads of the counts of all samples, whose names depend on how they were asked for; those of
samples without an issue have words behind."""
_NO_WAITS = ("selected", "not_selected")
"""A warp that was sampled while it issued, or while another one did: it could have issued."""
_QUANTITIES = {
    "branch_resolving": "branch", "dispatch_stall": "dispatch", "gmma": "tensor",
    "warpgroup_arrive": "tensor", "imc": "constant", "imc_miss": "constant", "lg": "lg_throttle",
    "long_sb": "long_scoreboard", "math": "math_pipe", "math_pipe_throttle": "math_pipe",
    "mio": "mio_throttle", "no_inst": "no_instruction", "no_instructions": "no_instruction",
    "short_sb": "short_scoreboard", "sleep": "sleeping", "tex": "tex_throttle",
}  # fmt: skip
"""The page's names, as `ncu_metrics.QUANTITIES` has them; the others are the same there."""


_LOCAL = re.compile(r"\b(?:LDL|STL)[.\w]* (?:\w+, )?\[([^\]]+)\]")
_FIXED = re.compile(r"R1(?:\+-?0x[\da-f]+)?")


def likely_kernel(source: str) -> str | None:
    """The one kernel that the candidate's file seems to define; None where it has several.

    Its page can be asked for before it is known which kernel is the hottest.
    """
    names = set(_DEFINED.findall(source))
    return names.pop() if len(names) == 1 else None


def source_options(name: str) -> list[str]:
    """What to ask `ncu --import` for: the page of one launch of the kernel, as each takes long."""
    one = ["--kernel-name", f"regex:(^|::){name}$", "--launch-count", "1"]
    return ["--page", "source", "--print-source", "cuda,sass", *one]


def parse_source(text: str) -> tuple[SourceLine, ...]:
    """The lines for which most time was lost, of the page of one launch, the worst first.

    Empty where the build has no line information.
    """
    listing = _instructions(text)
    code = Code([sampled.instruction for sampled in listing])
    files = Counter(file for sampled in listing for file, _ in sampled.lines)
    places = [sampled.place(max(files, key=lambda file: files[file])) for sampled in listing]
    waits: dict[_Place, Counter[tuple[str, str, int]]] = {}
    for at, sampled in enumerate(listing):
        for reason, count in sampled.stalls.items():
            blamed, what = code.producer(at, reason)
            found = waits.setdefault(places[blamed], Counter())
            user = places[at] if what else places[blamed]
            found[reason, what, user.line] += count
    whole = sum(stalls.total() for stalls in waits.values())
    lines = [
        _line(place, stalls, whole)
        for place, stalls in waits.items()
        if stalls.total() >= _LEAST_SHARE * whole
    ]
    return tuple(sorted(lines, key=lambda line: -line.share)[:_MOST_LINES])


def only_spills(text: str) -> bool | None:
    """Whether all local memory is accessed at fixed places, as spilled registers are, and arrays
    that are indexed at run time are not; None where there is no access."""
    places = _LOCAL.findall(text)
    return all(_FIXED.fullmatch(place) for place in places) if places else None


def waits_apart(
    metrics: Mapping[str, float | None], lines: Sequence[SourceLine]
) -> dict[str, float | None]:
    """`metrics`, in which waits at an mbarrier count by themselves, and not as waits for loads."""
    found, waits = dict(metrics), 0.0
    for reason in ("stall_long_scoreboard", "stall_short_scoreboard"):
        shares = [(line.share, line.producer) for line in lines if line.reason == reason]
        if at_mbarriers := sum(share for share, what in shares if what == MBARRIER):
            of_reason = metrics.get(reason) or 0.0
            moved = of_reason * at_mbarriers / sum(share for share, _ in shares)
            waits += moved
            found |= {reason: of_reason - moved, "stall_mbarrier": waits}
    return found


@dataclass(frozen=True)
class _Place:
    file: str
    line: int
    called_at: int | None


@dataclass
class _Sampled:
    instruction: SassInstruction
    stalls: Counter[str]
    lines: set[tuple[str, int]]

    def place(self, main: str) -> _Place:
        """`main`: the file of the kernel itself, into which all is inlined in the end."""
        numbers = [number for file, number in self.lines if file == main]
        if not numbers:
            return _Place(*min(self.lines), None)
        # What is called is defined above the call.
        line, last = min(numbers), max(numbers)
        return _Place(main, line, last if last > line else None)


def _line(place: _Place, stalls: Counter[tuple[str, str, int]], whole: int) -> SourceLine:
    reasons: Counter[tuple[str, str]] = Counter()
    for (reason, what, _), count in stalls.items():
        reasons[reason, what] += count
    top = reasons.most_common(1)[0][0]
    users = Counter({user: n for (*why, user), n in stalls.items() if tuple(why) == top})
    used_at = users.most_common(1)[0][0]
    return SourceLine(
        file=place.file,
        line=place.line,
        share=stalls.total() / whole,
        reason=top[0],
        producer=top[1],
        called_at=place.called_at,
        used_at=used_at if used_at not in (place.line, place.called_at) else None,
    )


def _instructions(text: str) -> list[_Sampled]:
    """In the order of their addresses, each once."""
    found: dict[int, _Sampled] = {}
    file, number = "", 0
    head: list[str] = []
    for row in text.splitlines():
        # The page does not double the quotes in lines of source: no reader of CSV gets it right.
        cells = row.strip().removeprefix('"').removesuffix('"').split('","')
        if cells[0] == "File Path":
            file = cells[1].rpartition("/")[2]
        elif cells[0] == "Line No":
            head = cells
        elif not head or len(cells) < len(head):
            continue
        elif cells[0].isdigit():
            number = int(cells[0])
        elif not cells[0] and cells[2].startswith("0x"):
            address = int(cells[2], 16)
            if address not in found:
                instruction = parse_instruction(address, cells[3])
                if instruction is None:
                    continue
                found[address] = _Sampled(instruction, _stalls(head, cells), set())
            found[address].lines.add((file, number))
    return [found[address] for address in sorted(found)]


def _stalls(head: list[str], cells: list[str]) -> Counter[str]:
    return Counter(
        {
            f"stall_{_QUANTITIES.get(stall[1], stall[1])}": int(count)
            for name, count in zip(reversed(head), reversed(cells), strict=False)
            if (stall := _STALL.fullmatch(name)) and stall[1] not in _NO_WAITS
            if count.isdigit() and count != "0"
        }
    )
