"""What a wrong output looks like, and what to check then."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Pattern(StrEnum):
    """A code on disk and in prompts, with its words: what is seen, and what to check.

    First come those that the wrong values and their places show, then what the reference would have
    to do for the output to be right, then what more calls showed.
    """

    look: str
    check: str

    def __new__(cls, code: str, look: str, check: str) -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.look, member.check = look, check
        return member

    NAN = (
        "nan",
        "It holds NaN.",
        "Look for 0/0, inf - inf (softmax without subtracting the maximum), the root or logarithm"
        " of a negative number, and memory read before it was written.",
    )
    INFINITE = (
        "infinite",
        "It holds infinities.",
        "Look for a division by zero, exp of a large number, and a reduction that starts at -inf "
        "and is never updated.",
    )
    UNWRITTEN = (
        "unwritten",
        "Part of it was never written.",
        "Check that grid times block (and the loop's last chunk) covers every element, the tail "
        "included.",
    )
    ZEROS = (
        "zeros",
        "It is zero where it should not be.",
        "Check that the kernel was launched at all, that its error is checked, and that the "
        "result is stored where it is returned.",
    )
    CONSTANT = (
        "constant",
        "It holds one value all over.",
        "Check that the index used for reading depends on the thread, and that a broadcast was "
        "not confused with a reduction.",
    )
    FACTOR = (
        "factor",
        "It is the right answer times a constant.",
        "Check scales, a mean that is a sum, the 1/sqrt(d), and n against n - 1.",
    )
    OFFSET = (
        "offset",
        "It is the right answer plus a constant.",
        "Check a bias or an epsilon that is missing or added twice.",
    )
    TRANSPOSED = (
        "transposed",
        "It is the right answer transposed.",
        "Swap the two indices (or strides) in the store or in the load of an operand.",
    )
    BOUNDARY = (
        "boundary",
        "The errors lie at the edges.",
        "Check the guards, the tail of the last block or vector, padding, and sizes that are no "
        "multiple of the tile.",
    )
    ROWS = (
        "rows",
        "Whole rows are wrong.",
        "Check the row index and the loop over rows; in a row-wise reduction, that all threads of"
        " the row see its final value.",
    )
    COLUMNS = (
        "columns",
        "Whole columns are wrong.",
        "Check the column index, the stride between rows, and a parameter that is applied per "
        "column.",
    )
    EVERY_KTH = (
        "every_kth",
        "The errors come at a fixed distance.",
        "Check the vector width, the unrolled loop, and lanes that no thread handles.",
    )
    RACE = (
        "race",
        "Running the same input again gives another answer.",
        "Check for memory that is read before it is set, a missing __syncthreads or barrier, "
        "writes of several threads to one address without atomics, and use of a buffer on another"
        " stream.",
    )
    PRECISION = (
        "precision",
        "It is nearly right: all errors are small, and larger than this task's precision allows.",
        "Look for lower precision on the way (fp16, bf16, TF32), an approximation of a function "
        "(fast maths), sums in lower precision or in an unstable order, and products that are made "
        "of differences (Winograd, Strassen): a smaller tile loses less.",
    )
    INPUT_COPY = (
        "input_copy",
        "It is a copy of an input.",
        "Check that the result, not the input buffer, is returned.",
    )
    SHIFTED = (
        "shifted",
        "The values are right, but shifted by one or more positions.",
        "Check for an index that is off by one, and for an exclusive scan where an inclusive one "
        "is asked for.",
    )
    ROW_FACTOR = (
        "row_factor",
        "Each row is the correct row times a factor of its own.",
        "Check what each row is divided by: a sum that is missing, cut short, or that of another "
        "row.",
    )
    EVAL_MODE = (
        "eval_mode",
        "It is right in eval() alone.",
        "It is judged in train mode: batch norms use the batch's statistics, and dropout drops. "
        "Where your kernels run in train mode alone, look for any mistake in them.",
    )
    PARAMETERS = (
        "parameters",
        "Its parameters are not the reference's, or it does not use them.",
        "Register each with the reference's name and shape, and use all of its elements.",
    )
    EARLIER_RESULT = (
        "earlier_result",
        "It is the result of an earlier call.",
        "Compute each result from this call's inputs.",
    )
    STATE_NOT_KEPT = (
        "state_not_kept",
        "It is the result of a first call.",
        "Keep the state from call to call, as the reference does.",
    )
    STALE_ADDRESS = (
        "stale_address",
        "It reads the inputs at the address of an earlier call.",
        "Copy inputs into a buffer of your own before a captured graph reads them.",
    )
    SCATTERED = (
        "scattered",
        "Nothing was found that explains it.",
        "Small errors that stay as they are when the inputs change slightly are none of rounding.",
    )
