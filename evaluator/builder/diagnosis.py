"""Reads compilers' output: whose fault the first error is, and what a model should see of it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from evaluator.builder import headers

MAX_LOG_BYTES = 64 * 1024

_GCC = re.compile(r"^(?P<file>[^\s:()]+):\d+:(?:\d+:)? (?:fatal )?error: (?P<text>.*)$")
_NVCC = re.compile(
    r"^(?P<file>[^\s()]+)\(\d+\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.*)$"
)
_OUR_NAMES = re.compile(
    r"\b(?:at|c10|torch|caffe2|pybind11|py|refinery)::|"
    r"['\"](?:at|c10|torch|caffe2|pybind11|py|std)['\"]|'std::|refinery_"
)
_PYTORCH_HEADER = re.compile(r"\b(?:ATen|c10|torch|pybind11|caffe2|THC|TH)/[\w/.]+: No such file")
_NVCC_MISSING = re.compile(r"cannot open source file \"(?:ATen|c10|torch|pybind11|caffe2|THC?)/")
_UNKNOWN = (
    re.compile(r"'(\w+)' was not declared"),
    re.compile(r"'(\w+)' does not name a type"),
    re.compile(r"'(\w+)' has not been declared"),
    re.compile(r"identifier \"(\w+)\" is undefined"),
    re.compile(r"^(\w+) is not a template$"),
    re.compile(r"there are no arguments to '(\w+)'"),
)
_OF_STD = re.compile(r"note: 'std::(\w+)' is defined in header")
"""GCC's, where a source says `using namespace std`. nvcc has none."""
_NAMESPACE_LACKING = re.compile(r"'\w+' is not a namespace-name|name must be a namespace name")
_USES_PYTORCH = re.compile(r"\busing\s+namespace\s+(?:::\s*)?(?:at|c10|caffe2|torch|py|pybind11)\b")
_USES_STD = re.compile(r"\busing\s+namespace\s+(?:::\s*)?std\b")
_STD_OF_PYTORCH = frozenset(
    re.findall(
        r"\w+",
        """
        any atomic_int binary_semaphore bitset call_once chrono complex condition_variable
        condition_variable_any counting_semaphore deque forward_list get_if get_time
        holds_alternative jthread list localtime map micro milli monostate multimap multiset nano
        once_flag priority_queue put_time queue ratio recursive_mutex scoped_lock set setfill
        setprecision setw shared_lock shared_mutex span stack stop_token strftime this_thread
        thread timed_mutex type_index unique_lock unordered_multiset unordered_set variant visit
        """,
    )
)
"""What PyTorch's headers bring along of namespace std and ours don't."""
_NO_NAMESPACE = 'name followed by "::" must be a class or namespace name'
"""nvcc's. The name is above the caret."""
_CANDIDATE = re.compile(r"(?P<file>[^\s:()]+):\d+:\d+: note:\s+candidate: ")
_PYTORCH_NAME = re.compile(
    r"(?:AT|TORCH|C10|PYBIND11|CUDA|THC)_\w+|cu(?:blas|dnn|sparse|solver)\w*"
)
_NOT_DISPATCHED = re.compile(
    r"(?:cannot convert|no suitable conversion function from) ['\"](?:const )?"
    r"at::(?:refinery_::)?DeprecatedTypeProperties['\"] "
    r"to ['\"]c10::(?:refinery_::)?ScalarType['\"]"
)
"""What AT_DISPATCH says of `x.type()`; ours takes it where PyTorch's does."""
_BOUND = re.compile(r'm\.def\("(\w+)", torch::wrap_pybind_function\(\1\)')
"""How the binding that `functions` asks for names each of them, always on a line of its own."""
_LINKER = re.compile(r"(?:undefined reference to|multiple definition of|hidden symbol) [`'](.*?)'")
_MACRO = re.compile(r"\b(?:AT|TORCH|C10|PYBIND11|THC|CUDA_KERNEL)_\w+\b")

_HEADER = re.compile(r"^(In file included from | +from )?(/[^\s:()]*/\.\./[^\s:()]*)", re.MULTILINE)
"""A header whose name GCC or nvcc put together from where they look: `/x/bin/../include/y.h`."""
_GIVEN = frozenset({"TORCH_EXTENSION_NAME"})
"""Macros that the command line defines, over either headers."""


def needs_full_headers(log: str, source: str = "", operators: Path | None = None) -> bool:
    """Whether the first error may come from what the light headers lack or do otherwise.

    It may when it lies in a header of ours or of PyTorch's, or names a type or namespace that ours
    stand in for, a function of theirs that the arguments don't fit, a macro or header that ours
    lack, or something missing in `std`, which PyTorch's headers may have brought along. A bare name
    may be PyTorch's where the source uses a namespace of its, or where an operator of that name
    is called, by its arguments. `source` is what was compiled, `operators` the folder `ATen/ops`.
    """
    lines = log.splitlines()
    matches = [(number, _GCC.match(line) or _NVCC.match(line)) for number, line in enumerate(lines)]
    errors = [(number, match) for number, match in matches if match]
    if not errors:
        return False
    number, match = errors[0]
    if "/refinery/" in match["file"] or "/torch/" in match["file"]:
        return True
    text = match["text"]
    if _NOT_DISPATCHED.match(text):
        return False
    about = lines[number + 1 : errors[1][0] if len(errors) > 1 else None]
    unknown = {name[1] for pattern in _UNKNOWN if (name := pattern.search(text))}
    if _never_declared(unknown, about, source):
        return False
    if _OUR_NAMES.search(text) or _PYTORCH_HEADER.search(text) or _NVCC_MISSING.search(text):
        return True
    if any("/refinery/" in found["file"] for found in map(_CANDIDATE.match, about) if found):
        return True
    if text == _NO_NAMESPACE and len(about) > 1:
        unknown.update(re.findall(r"^\w+", about[0][about[1].find("^") :]))
    of_std = set(_OF_STD.findall(log)) | (_STD_OF_PYTORCH if _USES_STD.search(source) else set())
    if any(map(_PYTORCH_NAME.fullmatch, unknown)) or unknown & of_std:
        return True
    if _NAMESPACE_LACKING.search(text) or (unknown and _USES_PYTORCH.search(source)):
        return True
    # nvcc and gcc quote the line after the message.
    quoted = " ".join(about[:2])
    called = unknown.intersection(re.findall(r"\b(\w+)\s*\(", quoted))
    if operators and any((operators / f"{name[:200]}.h").exists() for name in called):
        return True
    if "before '<<' token" in text and _MACRO.search(quoted):
        return True  # PyTorch's checks take more words by this operator
    return not (headers.macros() | _GIVEN).issuperset(_MACRO.findall(quoted))


def _never_declared(unknown: set[str], about: list[str], source: str) -> bool:
    """Whether the binding lists a function that the source says nothing else of.

    Then no header declares it, unless the source uses a namespace of a header's.
    """
    bound = _BOUND.search(about[0]) if about else None
    if bound is None or bound[1] not in unknown or _PYTORCH_NAME.fullmatch(bound[1]):
        return False
    if _USES_PYTORCH.search(source) or _USES_STD.search(source):
        return False
    rest = "\n".join(line for line in source.splitlines() if not _BOUND.search(line))
    return re.search(rf"\b{bound[1]}\b", rest) is None


def linker_names(log: str) -> list[str]:
    return _LINKER.findall(log)


def is_pytorchs(symbol: str) -> bool:
    """Whether a demangled symbol is in PyTorch's namespaces and none that our headers declare.

    The functions that ours declare and leave undefined are undefined in PyTorch too.
    """
    symbol = _without_templates(symbol)
    # The return type comes before it.
    name = symbol.partition("(")[0].rpartition(" ")[2].lstrip("*&")
    return name.startswith(("at::", "c10::", "caffe2::", "torch::")) and "refinery_::" not in name


def _without_templates(symbol: str) -> str:
    kept: list[str] = []
    opened: list[int] = []
    for letter in symbol:
        if letter == ">" and opened:
            del kept[opened.pop() :]
            continue
        if letter == "<":
            opened.append(len(kept))
        kept.append(letter)
    return "".join(kept)


def readable(log: str, folder: Path, header_folder: Path | None = None) -> str:
    """The log as the candidate's author should see it: their names, none of our paths, 64 KiB."""
    log = log.replace(f"{folder}/", "")
    if header_folder is not None:
        log = log.replace(f"{header_folder}/", "")
    log = log.replace("refinery_::", "")
    # The temporary folder that nvcc puts in messages of its stages.
    log = re.sub(r"\btmp/tmpxft_\w+-\w+_", "", log)
    log = _HEADER.sub(lambda found: (found[1] or "") + os.path.normpath(found[2]), log)
    return cut_short(log)


def cut_short(log: str) -> str:
    """At most 64 KiB of it, and a word that there was more."""
    raw = log.encode(errors="replace")
    if len(raw) <= MAX_LOG_BYTES:
        return log
    return raw[:MAX_LOG_BYTES].decode(errors="ignore") + "\n[the rest is cut off]\n"
