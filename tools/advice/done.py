"""Advice on what a candidate's source shows to be done already, and better words for it."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*# [^\n]*", re.DOTALL | re.MULTILINE)
_PARALLEL = r"#pragma omp|parallel_for"
DONE: tuple[tuple[str, str, str], ...] = (
    (r"cp[._]async|memcpy_async|[Tt]ensorMap", r"\(cp\.async.*?\)", "(more stages than it has)"),
    (r"__stcs|st\.global\.cs", r", and store [\w ]*__stcs", ""),
    (r"[cC]luster_?[dD]im", r"Split the work into more blocks: smaller tiles",
     "Make clusters smaller: each takes SMs of one GPC, of which those left over stay idle. Or"
     " split the work into more blocks: smaller tiles"),
    (rf"(?s)-fopenmp.*({_PARALLEL})|({_PARALLEL}).*-fopenmp", r"Spread .*, in chunks",
     "It has a loop over threads already: merge it with the one inside, divide long pieces, or"
     " lower the grain size, in chunks"),
    (_PARALLEL, r"Spread .*", "Give -fopenmp to compiler and linker (extra_cflags, extra_ldflags):"
     " without it, pragmas of OpenMP and at::parallel_for run on one thread."),
)  # fmt: skip
"""What a source has, the words that are in vain then, and others in their place."""


def undone(change: str, source: str) -> str:
    """`change`, what to do, without what `source`, the candidate's file, does."""
    bare = _COMMENT.sub(" ", source)
    for has, vain, instead in DONE:
        if re.search(has, bare):
            change = re.sub(vain, instead, change)
    return change
