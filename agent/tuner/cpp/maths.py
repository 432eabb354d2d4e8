"""Single-precision functions for C++ kernels, in three styles.

`poly` is branch-free, so loops over it vectorise, and good to about 2 units in the last place:
argument reduction by powers of two and polynomials fitted for this file (Lawson's iteration on
Chebyshev nodes, degrees chosen so that the fit's error is below 4e-9). `libm` calls the C library
for every element. `crude` keeps some 5 to 7 bits: fast, and wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_POLY = """\
static inline float from_bits(int32_t i) { float f; std::memcpy(&f, &i, 4); return f; }
static inline int32_t to_bits(float f) { int32_t i; std::memcpy(&i, &f, 4); return i; }
// x = n ln 2 + r, |r| <= ln 2 / 2; expm1(r) = r + r^2 P(r).
static inline float reduce_exp_(float x, float& q) {
  const float n = nearbyintf(x * 1.442695041f);
  const float r = fmaf(n, -1.428606820e-6f, fmaf(n, -0.693145752f, x));
  float p = 1.395067933e-3f;
  p = fmaf(p, r, 8.369020853e-3f);
  p = fmaf(p, r, 4.166620376e-2f);
  p = fmaf(p, r, 1.666651791e-1f);
  p = fmaf(p, r, 5.000000095e-1f);
  q = fmaf(p * r, r, r);
  return n;
}
// Below 2^-125 exp is taken for 0: denormal numbers are slow, and nobody needs them.
static inline float exp_(float x) {
  const float y = x > 88.72284f ? 89.0f : (x < -86.9f ? -86.9f : x);
  float q;
  const int32_t n = (int32_t)reduce_exp_(y, q);
  const float value = (q + 1.0f) * 2.0f * from_bits((n + 126) << 23);
  return x < -86.9f ? 0.0f : value;
}
// x + x^3 P(x^2) near zero, else 1 - 2 / (exp(2 |x|) + 1).
static inline float tanh_(float x) {
  const float a = fabsf(x);
  const float z = x * x;
  float p = 2.122953687e-3f;
  p = fmaf(p, z, -8.156539382e-3f);
  p = fmaf(p, z, 2.169272892e-2f);
  p = fmaf(p, z, -5.394540506e-2f);
  p = fmaf(p, z, 1.333319618e-1f);
  p = fmaf(p, z, -3.333333058e-1f);
  const float near = fmaf(p * z, x, x);
  const float far = 1.0f - 2.0f / (exp_(2.0f * (a > 10.0f ? 10.0f : a)) + 1.0f);
  return a < 0.6f ? near : (x < 0.0f ? -far : far);
}
// x P(x^2) near zero, else 1 - exp(-Q(|x|)).
static inline float erf_(float x) {
  const float a = fabsf(x);
  const float z = x * x;
  float p = 7.889119540e-5f;
  p = fmaf(p, z, -8.020841282e-4f);
  p = fmaf(p, z, 5.189535340e-3f);
  p = fmaf(p, z, -2.685444459e-2f);
  p = fmaf(p, z, 1.128360018e-1f);
  p = fmaf(p, z, -3.761262714e-1f);
  p = fmaf(p, z, 1.128379166e0f);
  const float b = a > 4.0f ? 4.0f : a;
  float q = 2.168685001e-5f;
  q = fmaf(q, b, -4.413363778e-4f);
  q = fmaf(q, b, 4.204561878e-3f);
  q = fmaf(q, b, -2.520825675e-2f);
  q = fmaf(q, b, 1.084185774e-1f);
  q = fmaf(q, b, 6.332198931e-1f);
  q = fmaf(q, b, 1.129578424e0f);
  q = fmaf(q, b, -1.880402330e-4f);
  const float far = 1.0f - exp_(-q);
  return a < 1.0f ? x * p : (x < 0.0f ? -far : far);
}
static inline float expm1_(float x) {
  const float y = x > 87.0f ? 87.0f : (x < -30.0f ? -30.0f : x);
  float q;
  const int32_t n = (int32_t)reduce_exp_(y, q);
  const float scale = from_bits((n + 127) << 23);
  const float value = fmaf(scale, q, scale - 1.0f);
  return x > 87.0f ? INFINITY : value;
}
// x = 2^k m, m in [sqrt(1/2), sqrt(2)); log(1 + f) = f - f^2 / 2 + f^3 P(f).
static inline float log_(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float y = tiny ? x * 8388608.0f : x;
  const int32_t i = to_bits(y) - 0x3f3504f3;
  const float k = (float)(i >> 23) - (tiny ? 23.0f : 0.0f);
  const float f = from_bits((i & 0x007fffff) + 0x3f3504f3) - 1.0f;
  const float z = f * f;
  float p = 6.915578354e-2f;
  p = fmaf(p, f, -1.178879941e-1f);
  p = fmaf(p, f, 1.187230923e-1f);
  p = fmaf(p, f, -1.238449426e-1f);
  p = fmaf(p, f, 1.421878042e-1f);
  p = fmaf(p, f, -1.666924531e-1f);
  p = fmaf(p, f, 2.000221928e-1f);
  p = fmaf(p, f, -2.499998663e-1f);
  p = fmaf(p, f, 3.333331058e-1f);
  float r = fmaf(p * f, z, k * 1.428606820e-6f);
  r = fmaf(-0.5f, z, r) + f;
  r = fmaf(k, 0.693145752f, r);
  r = x == 0.0f ? -INFINITY : r;
  r = x == INFINITY ? INFINITY : r;
  return x < 0.0f ? NAN : r;
}
// The rounding of 1 + x is paid back.
static inline float log1p_(float x) {
  const float u = 1.0f + x;
  return log_(u) + (x - (u - 1.0f)) / u;
}
static inline float rsqrt_(float x) { return 1.0f / sqrtf(x); }
static inline float sigmoid_(float x) { return 1.0f / (1.0f + exp_(-x)); }
"""
"""Functions stand after those that they call."""

_CRUDE = """\
// The exponent's bits from a scaled argument: up to 4 % off.
static inline float exp_(float x) {
  x = x > 88.0f ? 88.0f : (x < -87.0f ? -87.0f : x);
  return from_bits((int32_t)(x * 12102203.0f) + 1064866805);
}
static inline float tanh_(float x) { return 1.0f - 2.0f / (exp_(2.0f * x) + 1.0f); }
static inline float erf_(float x) { return tanh_(1.128379f * x + 0.1009f * x * x * x); }
static inline float expm1_(float x) { return exp_(x) - 1.0f; }
static inline float log_(float x) {
  return (float)(to_bits(x) - 1064866805) * 8.26295829e-8f;
}
static inline float log1p_(float x) { return log_(1.0f + x); }
"""

_LIBM = """\
static inline float exp_(float x) { return expf(x); }
static inline float expm1_(float x) { return expm1f(x); }
static inline float log_(float x) { return logf(x); }
static inline float log1p_(float x) { return log1pf(x); }
static inline float sigmoid_(float x) { return 1.0f / (1.0f + expf(-x)); }
static inline float tanh_(float x) { return tanhf(x); }
static inline float erf_(float x) { return erff(x); }
static inline float rsqrt_(float x) { return 1.0f / sqrtf(x); }
"""

_FUNCTION = re.compile(
    r"^((?://.*\n)?static inline \w+ (\w+).*(?:\n(?!//|static inline).*)*\n)", re.MULTILINE
)
"""A definition with its comment, and its name."""

STYLES = {"poly": (_POLY,), "crude": (_POLY, _CRUDE), "libm": (_LIBM,)}
"""Style -> texts of which a later one replaces what an earlier one defines."""


def prelude(style: str, names: Iterable[str]) -> str:
    """Definitions of the functions `names` (`exp_`, ...) and of what they call."""
    table: dict[str, str] = {}
    for text in STYLES[style]:
        table |= {name: function for function, name in _FUNCTION.findall(text)}
    wanted, pending = set[str](), [*names]
    while pending:
        name = pending.pop()
        if name in table and name not in wanted:
            wanted.add(name)
            pending += re.findall(r"(\w+)\(", table[name])
    return "".join(function for name, function in table.items() if name in wanted)
