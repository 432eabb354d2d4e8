"""What of the light headers a source can do without, told from the names that it mentions.

The standard library's larger headers, PyTorch's 16-bit numbers and the bindings are half of what a
compiler reads, and most kernels use none of them. Being wrong costs time alone: what does not
compile so is compiled again with everything.
"""

from __future__ import annotations

import re

_STANDARD = frozenset(
    re.findall(
        r"\w+",
        """
        abs acos array asin atan atan2 cbrt ceil conditional_t copysign cos cosh decay_t declval
        enable_if_t erf erfc exception exp exp2 expm1 fabs false_type floor fma fmax fmin fmod
        forward get index_sequence initializer_list int16_t int32_t int64_t int8_t
        integral_constant invalid_argument is_floating_point is_floating_point_v is_integral
        is_integral_v is_same is_same_v isfinite isinf isnan ldexp lgamma log log10 log1p log2
        logic_error lround make_pair make_tuple max memcpy memset min move nearbyint nullopt
        numeric_limits optional out_of_range pair pow printf ptrdiff_t remove_const_t
        remove_cv_t remove_reference_t rint round runtime_error sin sinh size_t snprintf sqrt
        string swap tan tanh tgamma tie to_string true_type trunc tuple uint16_t uint32_t
        uint64_t uint8_t uintptr_t vector
        """,
    )
)
"""Of namespace std: what the headers that always come along declare."""
_OF_STD = re.compile(r"\bstd\s*::\s*(\w+)")
_LIBRARY = re.compile(r"\busing\s+(?:namespace\s+)?std\b|\birange\b")
_NUMBERS = re.compile(r"half|bfloat16|bf16|fp16|f16|REDUCED|\bC10_(?!CUDA_)|\bAT_\w*HOST", re.I)
_BINDING = re.compile(r"\bpy(?:bind\w*)?\b|PYBIND|TORCH_LIBRARY|\bPy\w+|TORCH_EXTENSION_NAME")


def lean_flags(text: str) -> tuple[str, ...]:
    """Macros for a source whose text, with all of its own headers', is `text`."""
    flags = []
    if not _LIBRARY.search(text) and _STANDARD.issuperset(_OF_STD.findall(text)):
        flags.append("-DREFINERY_LEAN_LIBRARY")
    if not _NUMBERS.search(text):
        flags.append("-DREFINERY_LEAN_NUMBERS")
    if not _BINDING.search(text):
        flags.append("-DREFINERY_LEAN_BINDING")
    return tuple(flags)
