"""Which compiler and linker flags a candidate may pass: what is not listed is refused by name.

Flags that name files, load plug-ins, or hand options to a further program unseen are not listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_MATHS = (
    r"fast-math|unsafe-math-optimizations|associative-math|reciprocal-math|finite-math-only|"
    r"signed-zeros|trapping-math|rounding-math|math-errno|fp-contract=\w+|signaling-nans|"
    r"cx-limited-range|excess-precision=\w+"
)
_CODE = (
    r"openmp|openmp-simd|unroll-loops|unroll-all-loops|tree-vectorize|tree-loop-vectorize|"
    r"tree-slp-vectorize|vect-cost-model=\w+|simd-cost-model=\w+|strict-aliasing|inline|"
    r"inline-functions|inline-limit=\d+|omit-frame-pointer|peel-loops|prefetch-loop-arrays|"
    r"exceptions|rtti|permissive|PIC|pic|visibility=\w+|visibility-inlines-hidden|split-loops|"
    r"ipa-pta|gcse|schedule-insns2?|stack-protector|plt|semantic-interposition|wrapv|"
    r"diagnostics-color=\w+|max-errors=\d+|concepts|char8_t|signed-char|unsigned-char|lto"
)
_HOST = re.compile(
    rf"-O(?:[0-3sgz]|fast)?|-m(?:arch|tune|cpu)=[\w.+-]+|-m(?:avx\w*|sse[\w.]*|fma4?|f16c|bmi2?|"
    rf"popcnt|lzcnt|prefer-vector-width=\w+|fpmath=\w+|abm|amx-\w+|no-\w+|64|mmx|aes|movbe)|"
    rf"-f(?:no-)?(?:{_MATHS}|{_CODE})|-std=(?:c|gnu)\+\+\w+|-[DU](?!_GLIBCXX)\w+(?:\(\w*\))?"
    rf"(?:=[^\0]*)?|-W(?!l,|a,|p,)[\w+=-]*|-w|-g\d?|-ggdb\d?|-pthread|-pipe|-fPIC|-pedantic|-v|"
    rf"--param=[\w-]+=\d+",
    re.ASCII,
)
_DEVICE = re.compile(
    r"-{1,2}use_fast_math|-{1,2}extra-device-vectorization|-{1,2}(?:maxrregcount|ftz|prec-div|"
    r"prec-sqrt|fmad|threads|split-compile|std|ptxas-options|optimize|dlcm)(?:=[\w+.-]+)|"
    r"-O[0-3]|-std=c\+\+\w+|-[DU](?!_GLIBCXX)\w+(?:\(\w*\))?(?:=[^\0]*)?|-G|-g|-{1,2}lineinfo|-lineinfo|"
    r"-{1,2}generate-line-info|-{1,2}expt-(?:relaxed-constexpr|extended-lambda)|"
    r"-{1,2}extended-lambda|-{1,2}resource-usage|-res-usage|-w|-{1,2}disable-warnings|"
    r"-Wno-[\w-]+|-{1,2}diag-suppress=[\w,]+|-diag-suppress=[\w,]+|-{1,2}default-stream=[\w-]+|"
    r"-{1,2}device-debug|-{1,2}restrict|-Xptxas=[\w=,.-]+|-Xcudafe=[\w=,.-]+|-{1,2}m64|-t=?\d+|"
    r"-{1,2}verbose|-v|--Werror=?[\w,-]*|-{1,2}maxrregcount=\d+|-allow-unsupported-compiler|"
    r"-{1,2}allow-unsupported-compiler",
    re.ASCII,
)
_TAKES_VALUE = re.compile(
    r"-{1,2}(?:maxrregcount|default-stream|std|diag-suppress)|-t|--threads|-Xcudafe"
)
_WITH_VALUE = re.compile(
    r"(?:-{1,2}maxrregcount|-t|--threads) \d+|-{1,2}default-stream [\w-]+|"
    r"-{1,2}std c\+\+\w+|-{1,2}diag-suppress [\w,]+|-Xcudafe --?[\w=,-]+"
)
_ASSEMBLER = re.compile(
    r"-{0,2}(?:O[0-4]|v|verbose|warn-[\w-]+|w|dlcm=\w+|dscm=\w+|def-load-cache=\w+|"
    r"maxrregcount=\d+|allow-expensive-optimizations=\w+|fmad=\w+|opt-level=\d|suppress-\w[\w-]*|"
    r"generate-line-info|lineinfo|preserve-relocs|disable-optimizer-constants)",
    re.ASCII,
)
_LIBRARY = re.compile(
    r"-l(?:cublas|cublasLt|cudnn|cudart|cuda|curand|cusparse|cusolver|cufft|nvrtc|nvToolsExt|gomp|"
    r"m|pthread|dl|rt|stdc\+\+|c10|c10_cuda|torch|torch_cpu|torch_cuda|torch_python)"
)
_LINK = re.compile(
    r"-fopenmp|-pthread|-O[0-3s]?|-s|-g|-flto|-Wl,(?:-O\d|--as-needed|--no-as-needed)"
)
_ARCHITECTURE = re.compile(
    r"-(?:gencode|-generate-code|arch|-gpu-architecture|code|-gpu-code)(?P<value>=.+)?"
)


class RefusedFlagError(ValueError):
    def __init__(self, flag: str) -> None:
        super().__init__(f"the flag {flag!r} is not allowed")
        self.flag = flag


SANITIZED = (
    "-g",
    "-O1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    # PyTorch's classes, of which the library has no type information of its own.
    "-fno-sanitize=vptr",
    "-fno-sanitize-recover=bounds",
)
"""What a sanitized build adds behind a candidate's own flags. No candidate may ask for these."""
SANITIZED_LINK = ("-fsanitize=address,undefined",)


def _split(flags: Iterable[str]) -> list[str]:
    # Models write '-O3 -Wall' as one string; torch's ninja file splits it as well.
    kept = [word for flag in flags for word in flag.split()]
    for word in kept:
        if "\0" in word:
            raise RefusedFlagError(word)
    return kept


def _include(flag: str, allowed: Iterable[Path]) -> bool:
    if not flag.startswith("-I") or len(flag) < 3:
        return False
    folder = Path(flag[2:]).resolve()
    return any(folder.is_relative_to(parent) for parent in allowed)


def host_flags(flags: Iterable[str], includes: Iterable[Path] = ()) -> tuple[str, ...]:
    """Flags for g++, all of them. Raises RefusedFlagError."""
    kept = _split(flags)
    for flag in kept:
        # A library on a compiler's line does nothing, and models put it there.
        known = _HOST.fullmatch(flag) or _LIBRARY.fullmatch(flag)
        if not known and not _include(flag, includes):
            raise RefusedFlagError(flag)
    return tuple(kept)


def device_flags(flags: Iterable[str], includes: Iterable[Path] = ()) -> tuple[str, ...]:
    """Flags for nvcc, without architectures: it compiles for the present one. Raises
    RefusedFlagError."""
    kept: list[str] = []
    words = iter(_split(flags))
    for flag in words:
        name, _, value = flag.partition("=")
        if architecture := _ARCHITECTURE.fullmatch(flag):
            if not architecture["value"]:
                next(words, "")
        elif name in ("-Xptxas", "--ptxas-options"):
            value = value or next(words, "")
            for option in value.split(","):
                if not _ASSEMBLER.fullmatch(option):
                    raise RefusedFlagError(f"{name} {value}".strip())
            kept += ["-Xptxas", value]
        elif name in ("-Xcompiler", "--compiler-options"):
            value = (value or next(words, "")).strip("'\"")
            for option in value.split(","):
                if not _HOST.fullmatch(option):
                    raise RefusedFlagError(f"{name} {value}".strip())
            kept += ["-Xcompiler", value]
        elif _TAKES_VALUE.fullmatch(flag):
            value = next(words, "")
            if not _WITH_VALUE.fullmatch(f"{flag} {value}"):
                raise RefusedFlagError(f"{flag} {value}".strip())
            kept += [flag, value]
        elif _DEVICE.fullmatch(flag) or _LIBRARY.fullmatch(flag) or _include(flag, includes):
            kept.append(flag)
        else:
            raise RefusedFlagError(flag)
    return tuple(kept)


def link_flags(flags: Iterable[str], folders: Iterable[Path] = ()) -> tuple[str, ...]:
    """Flags for the linker: known libraries, folders of the toolkit. Raises RefusedFlagError."""
    kept = _split(flags)
    for flag in kept:
        known = _LIBRARY.fullmatch(flag)
        inside = flag.startswith("-L") and _include("-I" + flag[2:], folders)
        if not known and not inside and not _LINK.fullmatch(flag):
            raise RefusedFlagError(flag)
    return tuple(kept)
