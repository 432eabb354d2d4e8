from __future__ import annotations

import pytest

from evaluator.collect.kernel_name import base_name


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("gelu_k(const float *, float *, long)", "gelu_k"),
        ("void at::native::vectorized<(int)4, F<float>>(int, T2)", "at::native::vectorized"),
        ("(anonymous namespace)::softmax_k(const float *)", "softmax_k"),
        ("void unnamed>::reg<float, unnamed>::Log, long, 4>(T2 *)", "reg"),
        ("nvjet_tst_128x64_64x9_2x1_v_bz_TNT", "nvjet_tst_128x64_64x9_2x1_v_bz_TNT"),
    ],
)
def test_base_name(full: str, short: str) -> None:
    assert base_name(full) == short
