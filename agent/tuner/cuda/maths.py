"""Single-precision functions for CUDA kernels, in three styles.

`libm` is CUDA's own single-precision library, within a few units in the last place; `flags` is the
same under `--use_fast_math`, which replaces what it can. `fast` uses the special-function unit
where a few units more in the last place are all it costs. `crude` goes through half precision:
wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_LIBM = {
    "exp_": "expf(x)",
    "expm1_": "expm1f(x)",
    "log_": "logf(x)",
    "log1p_": "log1pf(x)",
    "sigmoid_": "1.0f / (1.0f + expf(-x))",
    "tanh_": "tanhf(x)",
    "erf_": "erff(x)",
    "rsqrt_": "rsqrtf(x)",
}
_FAST = {
    **_LIBM,
    "exp_": "__expf(x)",
    "log_": "__logf(x)",
    "sigmoid_": "__fdividef(1.0f, 1.0f + __expf(-x))",
    # 1 - 2 / (exp(2 |x|) + 1) loses digits near zero, hardly more than the outputs' spread allows.
    "tanh_": "copysignf(1.0f - __fdividef(2.0f, __expf(2.0f * fminf(fabsf(x), 15.0f)) + 1.0f), x)",
}
_CRUDE = {
    **_FAST,
    "exp_": "__half2float(hexp(__float2half(x)))",
    "log_": "__half2float(hlog(__float2half(x)))",
    "sigmoid_": "__half2float(hrcp(__float2half(1.0f + __expf(-x))))",
    "tanh_": "__half2float(__float2half(tanhf(x)))",
    "erf_": "__half2float(__float2half(erff(x)))",
    "rsqrt_": "__half2float(hrsqrt(__float2half(x)))",
}
STYLES: Mapping[str, Mapping[str, str]] = {
    "libm": _LIBM,
    "flags": _LIBM,
    "fast": _FAST,
    "crude": _CRUDE,
}

FLAGS: Mapping[str, tuple[str, ...]] = {
    "flags": ("--use_fast_math",),
    "fast": ("-prec-div=false", "-prec-sqrt=false"),
}
"""What a style passes to nvcc."""


def prelude(style: str, names: Iterable[str]) -> str:
    """Definitions of the functions `names` (`exp_`, ...)."""
    table = STYLES[style]
    return "".join(
        f"__device__ __forceinline__ float {n}(float x) {{ return {table[n]}; }}\n" for n in names
    )
