"""Which light headers a source does not need, judged by the names that it mentions.

The standard library's larger headers and PyTorch's 16-bit numbers are half of what a compiler
reads, and most kernels use none of them. Being wrong costs time alone: what does not
compile so is compiled again with everything, unless its first error is plainly the source's own.
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
_NUMBERS = re.compile(r"half|bfloat16|bf16|fp\d|f16|REDUCED", re.I)

_FIRST_ERROR = re.compile(r"\berror: (.*)")
_UNKNOWN_NAME = re.compile(
    r"identifier \"(\w+)\" is undefined|'(\w+)' was not declared in this scope"
)
_PUNCTUATION = re.compile(r"expected a \"?[;)}]|expected '[;)}]'")
_ELSEWHERE = frozenset(
    re.findall(
        r"\w+",
        """
        accumulate adjacent_difference adjacent_find all_of any_of as_const async begin
        binary_search bind bit_and bit_or cbegin cend cerr chrono cin clamp clock complex copy
        copy_if copy_n count count_if cout data deque divides end endl equal equal_range equal_to
        errno exclusive_scan fill fill_n find find_if fixed flush for_each format function future
        gcd generate greater greater_equal hash hex inclusive_scan inner_product invoke iota
        is_sorted isalnum isalpha isdigit isspace istream lcm less less_equal list localtime
        lower_bound make_shared make_unique map max_element merge midpoint min_element minmax
        minmax_element minus mismatch modulus mt19937 multiplies multiset mutex nanosleep negate
        next_permutation none_of nth_element ostream ostringstream partial_sort partial_sum
        partition plus prev_permutation queue rand_r random_device ranges reduce ref remove
        remove_if replace reverse rotate sample scoped_lock search set setlocale setprecision setw
        shared_ptr shuffle size sort stable_sort stack strftime string_view stringstream
        swap_ranges thread time tm tolower toupper transform transform_reduce
        uniform_int_distribution uniform_real_distribution unique unique_lock unique_ptr
        unordered_map unordered_set upper_bound weak_ptr
        """,
    )
)
"""Names, in std or outside of it, that the headers which are left out declare, or those that they
bring along; a name that begins like `_PREFIXES` may be of one too."""
_PREFIXES = ("__", "C10_", "AT_", "CUDA_", "TORCH_", "pthread", "wcs", "wmem")


def may_lack(output: str) -> bool:
    """Whether what was left out may be why a compiler refused a source, by what it printed."""
    error = _FIRST_ERROR.search(output)
    if error is None:
        return True
    if unknown := _UNKNOWN_NAME.match(error[1]):
        name = unknown[1] or unknown[2]
        return name in _ELSEWHERE or name in _STANDARD or name.startswith(_PREFIXES)
    return _PUNCTUATION.match(error[1]) is None


def lean_flags(text: str) -> tuple[str, ...]:
    """Macros for a source whose text, with all of its own headers', is `text`."""
    flags = []
    if not _LIBRARY.search(text) and _STANDARD.issuperset(_OF_STD.findall(text)):
        flags.append("-DREFINERY_LEAN_LIBRARY")
    if not _NUMBERS.search(text):
        flags.append("-DREFINERY_LEAN_NUMBERS")
        # NVIDIA's own switch: without it cub and thrust bring these numbers
        # along, and those of 8, 6 and 4 bits with them.
        flags.append("-DCCCL_DISABLE_FP16_SUPPORT")
    return tuple(flags)
