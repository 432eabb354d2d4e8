"""Lines as `ncu` prints them for sm_90."""

from __future__ import annotations

import pytest

from evaluator.collect.nsight.sass import Instruction, instruction, producer


def code(*texts: str) -> list[Instruction]:
    return [instruction(f"0x{number:x}", text) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("text", "writes", "reads", "kind"),
    [
        ("      LDG.E.128 R4, desc[UR6][R2.64+0x10]", {4, 5, 6, 7}, {2, 3}, "load"),
        ("@!P0  LDS.64 R8, [R3+UR4]", {8, 9}, {3}, "load from shared memory"),
        ("      FFMA R0, R1, R2, R0", {0}, {0, 1, 2}, ""),
        ("      IMAD.WIDE.U32 R6, R0, 0x4, R6", {6, 7}, {0, 6}, ""),
        ("      STG.E.128 desc[UR4][R2.64], R8", set(), {2, 3, 8, 9, 10, 11}, ""),
        ("      STS [R2], R7", set(), {2, 7}, ""),
        ("      SHFL.BFLY PT, R5, R4, 0x10, 0x1f", {5}, {4}, "shuffle"),
        ("      MUFU.EX2 R4, R4", {4}, {4}, "special function"),
        ("      ISETP.GT.AND P1, PT, R8, 0xc, PT", set(), {8}, ""),
        ("      BAR.SYNC.DEFER_BLOCKING 0x0", set(), set(), ""),
        ("@P1   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R0+URZ], R3", set(), {0, 3}, "mbarrier"),
    ],
)
def test_registers_that_are_written_and_read(
    text: str, writes: set[int], reads: set[int], kind: str
) -> None:
    found = instruction("0x0", text)
    assert (found.writes, found.reads, found.kind) == (writes, reads, kind)


def test_the_producer_is_the_nearest_load_of_what_is_read() -> None:
    listing = code(
        "LDG.E R4, desc[UR4][R2.64]",
        "LDG.E R5, desc[UR4][R2.64+0x4]",
        "IADD3 R6, R6, 0x1, RZ",
        "FADD R7, R4, R6",
        "FADD R8, R7, R5",
    )
    assert producer(listing, 3) == listing[0]
    assert producer(listing, 4) == listing[1]
    assert producer(listing, 2) is None


def test_a_register_that_was_overwritten_waits_for_nothing() -> None:
    listing = code("LDG.E R4, desc[UR4][R2.64]", "MOV R4, 0x3f800000", "FADD R7, R4, R6")
    assert producer(listing, 2) is None


def test_in_a_loop_the_load_may_stand_behind() -> None:
    """The next tile is loaded while this one is used."""
    listing = code("FADD R7, R7, R4", "LDG.E R4, desc[UR4][R2.64]", "BRA 0x0")
    assert producer(listing, 0) == listing[1]


def test_what_is_no_instruction_is_none() -> None:
    assert instruction("0x0", "") == Instruction("0x0", "", frozenset(), frozenset())
