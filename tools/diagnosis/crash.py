"""Crashes and exceptions in words: what was raised, where, and what it usually means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import dropwhile, islice

from evaluator.audit_record import DeepAudit
from tools.diagnosis.crash_site import site_words, unfound_words
from tools.diagnosis.source_map import SourceMap

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,)? in (?P<function>\S+)')
_EXCEPTION = re.compile(
    r"^(?:(?P<phase>import|construction of the module|call of forward): )?"
    r"(?P<kind>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning|OutOfResources"
    r"|Iteration|Invalid\w+)): ?(?P<message>.*)$"
)
_FOREIGN = re.compile(
    r"site-packages|dist-packages|/lib/python\d|^<frozen|(?:^|/)(?:evaluator|tools|torch|triton)/"
)
_BEGIN = 24
_TRITON_AT = re.compile(r"(?:^|: )at \d+:\d+:$")

# What PyTorch adds to every CUDA error alike.
_ADVICE = re.compile(r"CUDA kernel errors might|For debugging consider|Compile with|Search for")

_MEANINGS = (
    # CUDA
    (r"illegal memory access|CUDA_ERROR_ILLEGAL_ADDRESS",
     "A kernel read or wrote outside of its buffers: check that every index is guarded"
     " (`if (i < n)`), that the grid covers n and no more, that n and strides are 64-bit where the"
     " product passes 2^31, and that only device pointers are passed. The error is reported at"
     " the next synchronisation, so the line that is named may come after the guilty launch."),
    (r"misaligned address",
     "A vector load or store (float4, int4, ...) hit an address that is not a multiple of its"
     " size: check the row length, the offset of each row and the tail."),
    (r"too many resources requested",
     "Registers per thread times threads per block exceed the 65536 of an SM: use smaller blocks"
     " or __launch_bounds__."),
    (r"invalid configuration argument",
     "The launch is not possible: at most 1024 threads a block, no dimension of grid or block may"
     " be 0, gridDim.y and .z end at 65535, and dynamic shared memory above 48 KB needs"
     " cudaFuncSetAttribute first."),
    (r"no kernel image|invalid device function",
     "The kernel was compiled for another architecture: leave out -arch and -gencode flags."),
    (r"device-side assert",
     "An assertion in a kernel failed, most often an index out of range."),
    (r"unspecified launch failure",
     "The kernel crashed: look for wild pointers, stack overflow and __syncthreads that not all"
     " threads reach."),
    (r"out of resource: shared memory",
     "The tile does not fit into shared memory: use smaller blocks or fewer stages."),
    (r"CUDA out of memory|CUDA error: out of memory|can't allocate memory|DefaultCPUAllocator",
     "The candidate holds more memory than the limit allows: use smaller or fewer temporaries."),
    (r"CUBLAS_STATUS|CUDNN_STATUS", "A library call was given sizes or pointers that it refuses."),
    # binding and tensors
    (r"incompatible function arguments",
     "The call from Python does not fit the C++ signature: compare number, order and types."),
    (r"undefined symbol",
     "The library was built but lacks a function: declared and defined with different types, or"
     " never defined."),
    (r"must be contiguous|is_contiguous",
     "An input is not contiguous: call .contiguous() before taking its pointer."),
    (r"expected scalar type|expected .* dtype|Expected .* but (?:got|found)",
     "A tensor has another dtype or shape than the code expects."),
    (r"same device|is on cpu|is_cuda|CPU tensor",
     "A tensor is on another device: allocate with the input's device."),
    (r"does not require grad|requires grad", "Only the forward pass is judged, without autograd."),
    (r"shapes cannot be multiplied|must match the size|shape '.*' is invalid",
     "Sizes do not fit: work the shapes through by hand, as the reference has them."),
    (r"missing \d+ required positional|takes \d+ positional|unexpected keyword",
     "Constructor and forward must take the same arguments as those of `Model`."),
    (r"_register_parameter|state_dict|size mismatch for",
     "Parameters must have the shapes that those of `Model` have."),
    (r"name '.*' is not defined", "Something is used without being defined or imported."),
)  # fmt: skip

_SIGNALS = {
    "SIGSEGV": (r"SIGSEGV|[Ss]egmentation fault|segfault|signal 11\b",
     "a pointer or an index outside of its buffer, a tensor on the GPU read by the CPU, or a"
     " function whose C++ signature is not what its caller thinks"),
    "SIGBUS": (r"SIGBUS|[Bb]us error|signal 7\b",
     "an access beyond the end of a mapped buffer"),
    "SIGABRT": (r"SIGABRT|Fatal Python error: Aborted|\baborted\b|signal 6\b",
     "an uncaught C++ exception, a failed assertion, or memory corrupted (written past the end of"
     " a buffer) and noticed on release"),
    "SIGFPE": (r"SIGFPE|[Ff]loating.point exception|signal 8\b",
     "an integer division by zero"),
    "SIGILL": (r"SIGILL|[Ii]llegal instruction|signal 4\b",
     "instructions that this CPU does not have, or a non-void function without return"),
    "SIGXCPU": (r"SIGXCPU|signal 24\b", "it used up its processor time"),
    "SIGTRAP": (r"SIGTRAP|signal 5\b",
     "the compiler's trap: undefined behaviour, such as a function without return"),
    "SIGKILL": (r"SIGKILL|signal 9\b",
     "it was ended from outside, most often for the memory it held"),
}  # fmt: skip
"""By signal: how a message names it, and what it usually means. The first that is named counts."""


@dataclass(frozen=True)
class Raised:
    kind: str
    message: str
    when: str


def crash_words(
    message: str, detail: str, source: str, audit: DeepAudit | None = None
) -> list[str]:
    """Lines of text on an exception or a fatal signal.

    `message`, `detail` and `audit` are those of an `Evaluation`, `source` the candidate's Python
    file.
    """
    text = f"{message}\n{detail}"
    lines = []
    site = site_words(audit, source) if audit is not None else []
    raised = _raised(detail) or _raised(message)
    signal = _signal(text)
    if raised is not None:
        lines.append(f"Raised{raised.when}: {raised.kind}: {raised.message}".rstrip(": "))
    elif signal is not None:
        when = re.search(r" during the [\w ]+", message)
        usually = "" if site else f" What that usually means: {_SIGNALS[signal][1]}."
        lines.append(f"The process was ended by {signal}{when[0] if when else ''}.{usually}")
        lines += _terminate_words(detail)
    elif message:
        lines.append(message.strip()[:600])
    if site:
        return lines + site
    if audit is not None:
        lines += unfound_words(audit)
    lines += position_words(detail, source, crashed=raised is None)
    if source:
        lines += _thrown_words(raised, source)
        lines += _triton_words(text)
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, text):
            lines.append(f"What it usually means: {meaning}")
            break
    # A traceback quotes lines of the source, which is not always to be shown.
    if len(lines) <= 1 and detail.strip() and (source or not _frames(detail)):
        lines += ["The end of what it printed:"]
        lines += [f"  | {line[:200]}" for line in detail.strip().splitlines()[-12:]]
    return lines


def position_words(detail: str, source: str, *, crashed: bool) -> list[str]:
    """The last position in the candidate's own file that a traceback or a fault dump names."""
    frames = _frames(detail)
    own = [frame for frame in frames if not _FOREIGN.search(frame["file"])]
    mapped = SourceMap(source)
    own = [frame for frame in own if mapped.line(int(frame["line"])).strip()]
    if not own:
        return []
    # A fault dump has the most recent call first, a traceback has it last.
    newest_first = "most recent call first" in detail
    frame = own[0] if newest_first else own[-1]
    word = "Last known position" if crashed else "Raised from"
    number = int(frame["line"])
    return [f"{word}: line {number}, in {frame['function']}", *mapped.excerpt(number, 1)]


def _frames(text: str) -> list[re.Match[str]]:
    return [match for line in text.splitlines() if (match := _FRAME.match(line))]


def _raised(text: str) -> Raised | None:
    """The last exception that the text tells of, with at most 6 lines of its message."""
    lines = text.splitlines()
    for position in range(len(lines) - 1, -1, -1):
        if match := _EXCEPTION.match(lines[position]):
            kind = match["kind"].rsplit(".", 1)[-1]
            when = f" during the {match['phase']}" if match["phase"] else ""
            following: list[str] = []
            if _TRITON_AT.search(match["message"]):
                return Raised(kind, "the kernel does not compile", when)
            for line in lines[position + 1 : position + 6]:
                if _FRAME.match(line) or line.startswith("Traceback") or not line.strip():
                    break
                following += [] if _ADVICE.match(line) else [line[:200]]
            return Raised(kind, "\n".join([match["message"][:600], *following]), when)
    return None


def _signal(text: str) -> str | None:
    return next((name for name, (named, _) in _SIGNALS.items() if re.search(named, text)), None)


def _terminate_words(detail: str) -> list[str]:
    found = re.findall(
        r"^.*(?:terminate called|what\(\):|Assertion .* failed|free\(\)|malloc\(\)|double free"
        r"|corrupted|stack smashing).*$",
        detail,
        re.MULTILINE,
    )
    return [f"It printed: {line.strip()[:300]}" for line in found[:4]]


def _thrown_words(raised: Raised | None, source: str) -> list[str]:
    """The line of C++ with the text that TORCH_CHECK or `throw` gave, which no traceback names."""
    begin = raised.message[:_BEGIN] if raised is not None else ""
    if len(begin) < _BEGIN // 2:
        return []
    rows = enumerate(source.splitlines(), 1)
    found = [number for number, row in rows if f'"{begin}' in row and "raise" not in row]
    return ["Its text is from:", *SourceMap(source).excerpt(found[0], 1)] if found else []


def _triton_words(text: str) -> list[str]:
    after = dropwhile(lambda row: not _TRITON_AT.search(row.strip()), text.splitlines())
    excerpt = list(islice(after, 1, 40))
    arrow = next((n for n, row in enumerate(excerpt) if row.strip() == "^"), None)
    if arrow is None:
        return []
    # After the arrow comes the reason, up to the first blank line.
    shown = [f"  | {row[:160]}" for row in excerpt[max(0, arrow - 4) : arrow + 5] if row]
    return ["Triton's compiler stopped here:", *shown]
