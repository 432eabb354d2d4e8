"""Single-precision functions for C++ and CUDA kernels.

`libm` calls the C library, `cuda` that of CUDA. `poly`, for a CPU, is branch-free, so loops over it
vectorise, and good to about 2 units in the last place: argument reduction by powers of two and
polynomials fitted for this file (Lawson's iteration on Chebyshev nodes, degrees chosen so that the
fit's error is below 4e-9).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_LIBM = {
    "exp_": "return expf(x);",
    "expm1_": "return expm1f(x);",
    "log_": "return logf(x);",
    "log1p_": "return log1pf(x);",
    "sigmoid_": "return 1.0f / (1.0f + expf(-x));",
    "tanh_": "return tanhf(x);",
    "erf_": "return erff(x);",
    "rsqrt_": "return 1.0f / sqrtf(x);",
}
_CUDA = {**_LIBM, "rsqrt_": "return rsqrtf(x);"}
_HELPERS = """\
static inline float from_bits(int32_t i) { float f; std::memcpy(&f, &i, 4); return f; }
static inline int32_t to_bits(float f) { int32_t i; std::memcpy(&i, &f, 4); return i; }
template <class... C> static inline float horner(float x, float p, C... c) {
  ((p = fmaf(p, x, c)), ...);
  return p;
}
// x = n ln 2 + r, |r| <= ln 2 / 2; q = expm1(r) = r + r^2 P(r).
static inline float reduce_exp(float x, float& q) {
  const float n = nearbyintf(x * 1.442695041f);
  const float r = fmaf(n, -1.428606820e-6f, fmaf(n, -0.693145752f, x));
  const float p = horner(r, 1.395067933e-3f, 8.369020853e-3f, 4.166620376e-2f, 1.666651791e-1f,
                         5.000000095e-1f);
  q = fmaf(p * r, r, r);
  return n;
}
"""
_POLY = {
    # Below 2^-125 exp is taken for 0: denormal numbers are slow.
    "exp_": """
  const float y = x > 88.72284f ? 89.0f : (x < -86.9f ? -86.9f : x);
  float q;
  const int32_t n = (int32_t)reduce_exp(y, q);
  const float value = (q + 1.0f) * 2.0f * from_bits((n + 126) << 23);
  return x < -86.9f ? 0.0f : value;
""",
    "expm1_": """
  const float y = x > 87.0f ? 87.0f : (x < -30.0f ? -30.0f : x);
  float q;
  const int32_t n = (int32_t)reduce_exp(y, q);
  const float scale = from_bits((n + 127) << 23);
  const float value = fmaf(scale, q, scale - 1.0f);
  return x > 87.0f ? INFINITY : value;
""",
    # x = 2^k m, m in [sqrt(1/2), sqrt(2)); log(1 + f) = f - f^2 / 2 + f^3 P(f).
    "log_": """
  const bool tiny = x < 1.17549435e-38f;
  const int32_t i = to_bits(tiny ? x * 8388608.0f : x) - 0x3f3504f3;
  const float k = (float)(i >> 23) - (tiny ? 23.0f : 0.0f);
  const float f = from_bits((i & 0x007fffff) + 0x3f3504f3) - 1.0f;
  const float z = f * f;
  const float p = horner(f, 6.915578354e-2f, -1.178879941e-1f, 1.187230923e-1f, -1.238449426e-1f,
                         1.421878042e-1f, -1.666924531e-1f, 2.000221928e-1f, -2.499998663e-1f,
                         3.333331058e-1f);
  float r = fmaf(p * f, z, k * 1.428606820e-6f);
  r = fmaf(-0.5f, z, r) + f;
  r = fmaf(k, 0.693145752f, r);
  r = x == 0.0f ? -INFINITY : r;
  r = x == INFINITY ? INFINITY : r;
  return x < 0.0f ? NAN : r;
""",
    # The rounding of 1 + x is paid back.
    "log1p_": """
  const float u = 1.0f + x;
  return log_(u) + (x - (u - 1.0f)) / u;
""",
    "sigmoid_": "return 1.0f / (1.0f + exp_(-x));",
    # x + x^3 P(x^2) near zero, else 1 - 2 / (exp(2 |x|) + 1).
    "tanh_": """
  const float a = fabsf(x);
  const float z = x * x;
  const float p = horner(z, 2.122953687e-3f, -8.156539382e-3f, 2.169272892e-2f, -5.394540506e-2f,
                         1.333319618e-1f, -3.333333058e-1f);
  const float near = fmaf(p * z, x, x);
  const float far = 1.0f - 2.0f / (exp_(2.0f * (a > 10.0f ? 10.0f : a)) + 1.0f);
  return a < 0.6f ? near : (x < 0.0f ? -far : far);
""",
    # x P(x^2) near zero, else 1 - exp(-Q(|x|)).
    "erf_": """
  const float a = fabsf(x);
  const float p = horner(x * x, 7.889119540e-5f, -8.020841282e-4f, 5.189535340e-3f,
                         -2.685444459e-2f, 1.128360018e-1f, -3.761262714e-1f, 1.128379166e0f);
  const float q = horner(a > 4.0f ? 4.0f : a, 2.168685001e-5f, -4.413363778e-4f, 4.204561878e-3f,
                         -2.520825675e-2f, 1.084185774e-1f, 6.332198931e-1f, 1.129578424e0f,
                         -1.880402330e-4f);
  const float far = 1.0f - exp_(-q);
  return a < 1.0f ? x * p : (x < 0.0f ? -far : far);
""",
    "rsqrt_": _LIBM["rsqrt_"],
}
STYLES: Mapping[str, Mapping[str, str]] = {"libm": _LIBM, "poly": _POLY, "cuda": _CUDA}
"""Style -> function -> body; functions stand after those that they call."""


def prelude(style: str, text: str) -> str:
    """Definitions of the functions that `text` calls, and of what they call."""
    bodies = STYLES[style]
    wanted, pending = set[str](), [text]
    while pending:
        called = set(re.findall(r"(\w+_)\(", pending.pop())) & bodies.keys()
        pending += [bodies[name] for name in called - wanted]
        wanted |= called
    qualifiers = "__device__ __forceinline__" if style == "cuda" else "static inline"
    helpers = _HELPERS if style == "poly" and wanted else ""
    return helpers + "".join(
        f"{qualifiers} float {name}(float x) {{ {body} }}\n"
        for name, body in bodies.items()
        if name in wanted
    )
