"""What stalls wait for, in code of nvcc 13 for compute capability 9.0."""

from __future__ import annotations

import re

import pytest

from evaluator.collect.nsight.sass_instruction import parse_instruction
from evaluator.collect.nsight.scoreboard import Code

LONG, SHORT = "stall_long_scoreboard", "stall_short_scoreboard"
MIXED = """
/*0000*/ LDG.E.128 R4, desc[UR4][R6.64]
/*0010*/ LDS R8, [R0]
/*0020*/ IMAD.WIDE R2, R0, 0x4, R2
/*0030*/ FFMA R9, R7, R8, R2
/*0040*/ @P0 MOV R9, R3
/*0050*/ MUFU.EX2 R9, R9
/*0060*/ ATOMG.E.ADD.STRONG.GPU PT, R12, desc[UR4][R2.64], R15
/*0070*/ FADD R9, R9, R12
/*0080*/ SHFL.BFLY PT, R3, R9, 0x10, 0x1f
/*0090*/ STG.E.128 desc[UR4][R6.64], R0
"""
BULK = """
/*0220*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR5], R0
/*0230*/ @!P0 BRA 0x2b0
/*0270*/ LDS R5, [R0]
/*0290*/ STG.E desc[UR8][R2.64], R5
/*02a0*/ EXIT
/*02b0*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR5], R0
/*02c0*/ @!P0 BRA 0x2b0
/*02d0*/ BRA 0x240
"""
COPIES = """
/*0100*/ LDGSTS.E.BYPASS.128 [R21], desc[UR6][R8.64]
/*0110*/ LDGDEPBAR
/*02a0*/ LDGSTS.E.BYPASS.128 [R21+0x1000], desc[UR6][R12.64]
/*02d0*/ LDGDEPBAR
/*02f0*/ DEPBAR.LE SB0, 0x1
"""
BARRIERS = """
/*0000*/ BAR.SYNC.DEFER_BLOCKING 0x0
/*0010*/ LDS R4, [R2]
/*0020*/ FADD R6, R6, R4
/*0030*/ ISETP.GE.AND P0, PT, R0, 0x1, PT
/*0040*/ @P0 BRA 0x10
"""
PREFETCH = """
/*0000*/ LDG.E R4, desc[UR4][R2.64]
/*0010*/ FFMA R6, R4, R4, R6
/*0020*/ LDG.E R4, desc[UR4][R2.64+0x4]
/*0030*/ ISETP.GE.AND P0, PT, R0, 0x1, PT
/*0040*/ @P0 BRA 0x10
/*0050*/ FADD R6, R6, R4
/*0060*/ BRA 0x0
"""


def told(text: str, at: int, stall: str) -> tuple[int, str]:
    """By address instead of place."""
    parts = re.findall(r"/\*(\w+)\*/ (.*)", text)
    code = [parse_instruction(int(address, 16), line) for address, line in parts]
    known = [instruction for instruction in code if instruction is not None]
    addresses = [instruction.address for instruction in known]
    place, words = Code(known).producer(addresses.index(at), stall)
    return addresses[place], words


@pytest.mark.parametrize(
    ("text", "at", "stall", "blamed", "words"),
    [
        (MIXED, 0x30, LONG, 0x00, "a load from global memory"),
        (MIXED, 0x30, SHORT, 0x10, "a load from shared memory"),
        (MIXED, 0x70, SHORT, 0x50, "a special function"),
        (MIXED, 0x70, LONG, 0x60, "an atomic on global memory"),
        (MIXED, 0x90, SHORT, 0x80, "a shuffle"),
        # What is written by an instruction of fixed latency is not waited for.
        (MIXED, 0x80, LONG, 0x80, ""),
        (MIXED, 0x30, "stall_wait", 0x30, ""),
        (BULK, 0x230, LONG, 0x220, "an mbarrier: a bulk copy or other warps"),
        (BULK, 0x2B0, LONG, 0x2B0, "an mbarrier: a bulk copy or other warps"),
        (BULK, 0x290, SHORT, 0x270, "a load from shared memory"),
        (COPIES, 0x2F0, LONG, 0x2A0, "an asynchronous copy (cp.async)"),
        # A warp at a barrier has issued it, and stands at the next instruction.
        (BARRIERS, 0x10, "stall_barrier", 0x00, ""),
        (BARRIERS, 0x00, "stall_barrier", 0x00, ""),
        (MIXED, 0x70, "stall_barrier", 0x70, ""),
        # The turn before has loaded what this one uses.
        (PREFETCH, 0x10, LONG, 0x20, "a load from global memory"),
        (PREFETCH, 0x50, LONG, 0x20, "a load from global memory"),
    ],
)
def test_what_is_waited_for(text: str, at: int, stall: str, blamed: int, words: str) -> None:
    assert told(text, at, stall) == (blamed, words)
