"""What stalls wait for, in code of nvcc 13 for compute capability 9.0."""

from __future__ import annotations

import re

import pytest

from evaluator.collect.nsight.scoreboard import Code, parse_instruction

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


@pytest.mark.parametrize(
    ("text", "written", "read"),
    [
        ("LDG.E R7, desc[UR6][R6.64]", "R7", "UR6 R6 R7"),
        ("LDG.E.128 R4, desc[UR4][R2.64+-0x10]", "R4 R5 R6 R7", "UR4 R2 R3"),
        ("LDC.64 R16, c[0x0][0x210] ;", "R16 R17", ""),
        ("ULDC.64 UR10, c[0x0][0x208]", "UR10 UR11", ""),
        ("@P0 STS.U16 [R3+0x80], R24", "", "P0 R3 R24"),
        ("STG.E.128 desc[UR6][R8.64], R4", "", "UR6 R8 R9 R4 R5 R6 R7"),
        ("LDGSTS.E.BYPASS.128 [R21+0x1000], desc[UR6][R12.64]", "", "R21 UR6 R12 R13"),
        ("LDSM.16.M88.4 R8, [R3+UR4]", "R8 R9 R10 R11", "R3 UR4"),
        ("@!PT LDS RZ, [RZ]", "", ""),
        ("ATOMG.E.ADD.STRONG.GPU PT, R12, desc[UR4][R12.64], R15", "R12", "UR4 R12 R13 R15"),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R5", "", "UR4 R2 R3 R5"),
        ("SHFL.BFLY PT, R3, R6, 0x10, 0x1f", "R3", "R6"),
        ("MUFU.EX2 R9, R8", "R9", "R8"),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR5], R0", "P0", "UR5 R0"),
        ("@!P0  BRA 0x7effb37a0740", "", "P0"),
        ("ISETP.GE.AND P0, PT, R0, 0x1, PT", "P0", "R0"),
        ("IADD3 R2, P2, R2, 0x40, RZ", "R2 P2", "R2"),
        ("IMAD.X R3, RZ, RZ, R3, P2", "R3", "R3 P2"),
        ("IMAD.WIDE.U32 R6, R0, 0x4, R6", "R6 R7", "R0 R6"),
        ("LOP3.LUT R0, R0.reuse, 0x3, RZ, 0xc0, !PT", "R0", "R0"),
        ("SEL R4, R5, R6, !P1", "R4", "R5 R6 P1"),
        ("FFMA R13, R6, 1.925963033500011079e-08, -R13", "R13", "R6 R13"),
        ("DMUL R4, R4, R6", "R4 R5", "R4 R6"),
        ("HMMA.16816.F32.BF16 R8, R16.reuse, R24, R8", "R8 R9 R10 R11", "R16 R24 R8"),
        ("S2R R5, SR_TID.X", "R5", ""),
        ("DEPBAR.LE SB0, 0x1", "", ""),
        ("UBLKCP.S.G [UR6], [UR4], UR8", "", "UR6 UR4 UR8"),
    ],
)
def test_registers(text: str, written: str, read: str) -> None:
    found = parse_instruction(0, text)
    assert found is not None
    assert found.written == set(written.split())
    assert found.read == set(read.split())
    assert found.guarded == text.startswith("@")


def test_branches_and_what_is_none() -> None:
    branch = parse_instruction(16, "@P1   BRA 0x7effb37a0240")
    assert branch is not None and branch.target == 0x7EFFB37A0240
    assert parse_instruction(0, "-") is None
