"""Why a candidate is not correct, and what its author should do then."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

WITH_WEIGHTS = "with the weights of"
"""In a message: it was right with drawn weights before."""


class Reason(StrEnum):
    """A code on disk and in summaries; `advice` is empty where the message says it all."""

    advice: str

    def __new__(cls, code: str, advice: str = "") -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.advice = advice
        return member

    # Nothing to judge, or nothing that can be built.
    NO_CODE = (
        "no_code",
        "The answer held no usable module. Send one fenced Python block that holds the whole file:"
        " imports, the kernels, and a class `ModelNew(nn.Module)` with the constructor and the"
        " `forward` arguments of `Model`. Nothing after it.",
    )
    SYNTAX_ERROR = "syntax_error"
    NO_MODEL_NEW = ("no_model_new", NO_CODE[1])
    COMPILE_FAILED = "compile_failed"
    TOO_MANY_BUILDS = "too_many_builds"
    WEIGHTS_UNMATCHED = "weights_unmatched"

    # It raised an exception, or its process ended.
    IMPORT_RAISED = "import_raised"
    CONSTRUCT_RAISED = "construct_raised"
    FORWARD_RAISED = "forward_raised"
    SEGFAULT = "segfault"
    ABORT = "abort"
    KILLED = "killed"
    OUT_OF_MEMORY = "out_of_memory"
    SIGBUS = "sigbus"
    SIGFPE = "sigfpe"
    SIGILL = "sigill"
    SIGTRAP = "sigtrap"
    SIGSYS = "sigsys"
    OTHER_SIGNAL = "other_signal"
    EXITED = "exited"

    # It took too long.
    BUILD_TIMEOUT = (
        "build_timeout",
        "Compiling took too long: use fewer template instantiations, less unrolling, and headers no"
        " larger than needed.",
    )
    IMPORT_TIMEOUT = (
        "import_timeout",
        "Importing the file took too long: do no work at import but compiling the kernels.",
    )
    CONSTRUCT_TIMEOUT = (
        "construct_timeout",
        "The constructor took too long: do no heavy work there.",
    )
    CALL_TIMEOUT = (
        "call_timeout",
        "A call of `forward` took too long: look for a loop that does not end, a deadlock (a"
        " barrier that not all threads reach, a spin on a value that nobody writes), and serial"
        " work over the whole tensor.",
    )
    REPLY_TIMEOUT = "reply_timeout"

    # An output is wrong.
    WRONG_COUNT = "wrong_count"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_VALUES = "wrong_values"

    # Its results were right by luck.
    MEMORY_ERROR = (
        "memory_error",
        "Right results are luck then: check every index and every length against the"
        " tensors' real sizes, tails and last rows included.",
    )
    RACE = (
        "race",
        "The results were right, but by luck: put a barrier between threads that write a place in"
        " shared memory and threads that read or write it.",
    )

    # It breaks the rules.
    PROTOCOL_BROKEN = (
        "protocol_broken",
        "What came from the kernel's process is not what a forward call sends: only compute and"
        " return tensors, and leave the process, its files and its sockets alone.",
    )
    INPUT_MODIFIED = (
        "input_modified",
        "Inputs must not be modified: write to a tensor of your own.",
    )
    NOT_CUSTOM = (
        "not_custom",
        "The work has to be done by kernels of your own, not by PyTorch's operators or a vendor's"
        " library.",
    )
    PROVENANCE_UNKNOWN = "provenance_unknown"
    RESULT_OVERWRITTEN = (
        "result_overwritten",
        "A result must stay as it is while forward is called again: return a tensor that the next"
        " call does not write to.",
    )
    BELOW_FLOOR = (
        "below_floor",
        "It was faster than the bytes that must move can be moved on this device, so it did not do"
        " the work. Every call has to compute its result from that call's inputs.",
    )
    BORROWED_OUTPUT = "borrowed_output"
    TENSOR_SUBCLASS = "tensor_subclass"
    OUTPUT_CHANGED = "output_changed"
    NEVER_RESTS = "never_rests"
    WORK_BEFORE_START = "work_before_start"
    KEPT_ADDRESS = "kept_address"
    WRONG_LATER = "wrong_later"
