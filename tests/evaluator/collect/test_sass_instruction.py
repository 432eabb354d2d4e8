"""The lines are nvdisasm's and ncu's, of kernels for compute capability 9.0."""

from __future__ import annotations

import pytest

from evaluator.collect.nsight.sass_instruction import parse_instruction


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
