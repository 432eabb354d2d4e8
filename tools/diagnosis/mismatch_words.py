"""A wrong output in words: what is wrong, where, what it looks like, and what to check."""

from __future__ import annotations

import math

from evaluator.evaluation import Correctness, Mismatch

_LOOKS = {
    "nan": ("It holds NaN.", "Look for 0/0, inf - inf (softmax without subtracting the maximum),"
            " the root or logarithm of a negative number, and memory read before it was written."),
    "infinite": ("It holds infinities.", "Look for a division by zero, exp of a large number, and"
                 " a reduction that starts at -inf and is never updated."),
    "unwritten": ("Part of it was never written.", "Check that grid times block (and the loop's"
                  " last chunk) covers every element, the tail included."),
    "zeros": ("It is zero where it should not be.", "Check that the kernel was launched at all,"
              " that its error is checked, and that the result is stored where it is returned."),
    "constant": ("It holds one value all over.", "Check that the index used for reading depends"
                 " on the thread, and that a broadcast was not confused with a reduction."),
    "factor": ("It is the right answer times a constant.", "Check scales, a mean that is a sum,"
               " the 1/sqrt(d), and n against n - 1."),
    "offset": ("It is the right answer plus a constant.", "Check a bias or an epsilon that is"
               " missing or added twice."),
    "transposed": ("It is the right answer transposed.", "Swap the two indices (or strides) in the"
                   " store or in the load of an operand."),
    "boundary": ("The errors lie at the edges.", "Check the guards, the tail of the last block or"
                 " vector, padding, and sizes that are no multiple of the tile."),
    "rows": ("Whole rows are wrong.", "Check the row index and the loop over rows; in a row-wise"
             " reduction, that all threads of the row see its final value."),
    "columns": ("Whole columns are wrong.", "Check the column index, the stride between rows, and"
                " a parameter that is applied per column."),
    "every_kth": ("The errors come at a fixed distance.", "Check the vector width, the unrolled"
                  " loop, and lanes that no thread handles."),
    "race": ("Running the same input again gives another answer.", "Check for memory that is read"
             " before it is set, a missing __syncthreads or barrier, writes of several threads to"
             " one address without atomics, and use of a buffer on another stream."),
    "precision": ("It is right up to rounding, but less exact than this task's precision allows.",
                  "Accumulate in the task's precision or higher (no fp16, bf16 or TF32 on the way"
                  " unless the task says so), leave out fast maths, and sum in a stable way."),
    "input_copy": ("It is a copy of an input.", "Check that the result, not the input buffer, is"
                   " returned."),
    "shifted": ("The right values stand beside their places.", "Check for an index that is off by"
                " one, and for an exclusive scan where an inclusive one is asked for."),
    "row_factor": ("Each row is the right one times a number of its own.", "Check what each row is"
                   " divided by: a sum that is missing, cut short, or that of another row."),
    "shifted_index": ("It is what comes out when a parameter is read one element off.", "Check the"
                      " index that it is read with."),
    "transposed_operand": ("It is what comes out with one factor transposed.", "Swap its two"
                           " indices, or its strides."),
    "short_reduction": ("It is what comes out when a sum leaves out some of its terms.", "Check"
                        " where the loop over them begins and ends, and its tail."),
    "unfinished": ("It is an intermediate result of the reference.", "Do what is left."),
    "missing_operation": ("It is what comes out when one operation is left out.", "Do that one,"
                          " too."),
    "missing_parameter": ("It is what comes out without one of the parameters.", "Use it, and pass"
                          " it to the kernel."),
    "wrong_axis": ("It is what comes out when a reduction goes over another axis.", "Check which"
                   " dimension is reduced, and the strides that follow from it."),
    "swapped_operands": ("It is what comes out with two operands swapped.", "Check their order."),
    "wrong_constant": ("It is what comes out with another constant.", "Check it against the"
                       " reference."),
    "other_function": ("It is what comes out with another function.", "Check which one the"
                       " reference calls, and its variant."),
    "eval_mode": ("It is what comes out in eval().", "It is judged in train mode, as the reference"
                  " is made: batch norms use the batch's statistics."),
    "right_in_eval": ("It is right in eval() alone.", "It is judged in train mode, as the reference"
                      " is made: batch norms use the batch's statistics, and dropout drops."),
    "in_parts": ("It is what comes out when an axis is handled in parts.", "Combine the parts:"
                 " their maxima and sums, or the last value of the one before."),
    "earlier_result": ("It is the result of an earlier call.", "Compute each result from this"
                       " call's inputs."),
    "state_not_kept": ("It is the result of a first call.", "Keep the state from call to call, as"
                       " the reference does."),
    "stale_address": ("It reads the inputs at the address of an earlier call.", "Copy inputs into"
                      " a buffer of your own before a captured graph reads them."),
    "insensitive": ("The right output hardly depends on the inputs.", "Check the formula."),
    "scattered": ("The errors have no pattern in their places.", "Check the formula on the first"
                  " example below by hand."),
}  # fmt: skip

# How each of the judge's details is told; several of one tuple go together or not at all.
_DETAILS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("counterfactual",), "{}"),
    (("factor",), "factor {:.6g}"),
    (("offset",), "offset {:.6g}"),
    (("constant",), "the value {:.6g}"),
    (("input",), "a copy of input {}"),
    (("shifted_by",), "moved by {} elements"),
    (("least_row_factor", "greatest_row_factor"), "row factors from {:.4g} to {:.4g}"),
    (("transposed",), "the dimensions that were swapped: {}"),
    (("nan_share",), "{:.0f} % of the wrong elements are NaN"),
    (("infinite_share",), "{:.0f} % of the wrong elements are infinite"),
    (("unwritten_share",), "{:.0f} % of the wrong elements were never written"),
    (("dim", "from_index"), "wrong in dimension {} from index {} on"),
    (("dim", "to_index"), "wrong in dimension {} up to index {}"),
    (("from_flat",), "wrong from flat index {} to the end"),
    (("rim",), "all wrong elements lie within {} of the end of a dimension"),
    (("rows", "first_row"), "{} wrong rows, the first is {}"),
    (("columns", "first_column"), "{} wrong columns, the first is {}"),
    (
        ("period", "residues", "residue"),
        "modulo {}, the flat index of a wrong element has one of {} remainders, the first is {}",
    ),
    (("relative_rms",), "relative error {:.2g} on average"),
    (("looks_like",), "about what {} gives"),
    (("first_wrong_flat",), "first wrong element: flat index {}"),
)


def mismatch_words(correctness: Correctness) -> list[str]:
    """Lines of text on what did not compare; empty without a mismatch."""
    found = correctness.mismatch
    if found is None:
        return []
    name = f"Output {found.output}"
    if found.kind == "count":
        return [
            f"forward returns {found.wrong} outputs where {found.total} are expected: return what"
            " the reference returns, in the same order."
        ]
    if found.kind == "shape":
        return [
            f"{name}: expected shape {found.expected_shape}, got {found.actual_shape}.",
            *_shape_look(found),
        ]
    if found.kind == "dtype":
        return [
            f"{name}: expected dtype {found.expected_dtype}, got {found.actual_dtype}."
            " Convert the result, or allocate it with the input's dtype."
        ]
    return _values(name, found, correctness)


def _values(name: str, found: Mismatch, correctness: Correctness) -> list[str]:
    share = 100 * found.wrong / found.total if found.total else 0.0
    lines = [
        f"{name}, shape {found.actual_shape or found.expected_shape},"
        f" {found.actual_dtype or found.expected_dtype}:"
        f" {found.wrong:,} of {found.total:,} elements are wrong ({_percent(share)}).",
        f"Largest error: {_figure(found.max_abs_error)} absolute,"
        f" {_figure(found.max_rel_error)} relative.",
    ]
    ratio, limit = correctness.error_ratio, correctness.error_ratio_limit
    if ratio is not None and limit is not None and math.isfinite(ratio):
        lines.append(
            f"Against an fp64 reference its error is {ratio:.3g} times that of PyTorch's own"
            f" result; {limit:.3g} times is allowed."
        )
    for position, code in enumerate(found.patterns[:3]):
        look, check = _LOOKS.get(code, (f"It looks like: {code}.", ""))
        word = "It looks like this" if position == 0 else "Or"
        lines.append(f"{word}: {code}. {look} {check}".rstrip())
    told = [
        text.format(*(_told(key, found.details[key]) for key in keys))
        for keys, text in _DETAILS
        if all(key in found.details for key in keys)
    ]
    if told:
        lines.append("In figures: " + "; ".join(told) + ".")
    if found.examples:
        lines += ["", "| index | expected | got |", "|---|---|---|"]
        lines += [
            f"| {list(example.index)} | {_figure(example.expected)} | {_figure(example.actual)} |"
            for example in found.examples
        ]
    return lines


def _told(key: str, value: float | int | str) -> float | int | str:
    return 100 * value if key.endswith("_share") and not isinstance(value, str) else value


def _shape_look(found: Mismatch) -> list[str]:
    expected, actual = found.expected_shape, found.actual_shape
    if math.prod(expected) == math.prod(actual):
        if sorted(expected) == sorted(actual) and len(expected) == len(actual):
            return ["The same sizes in another order: a transposition is missing or too many."]
        if tuple(n for n in expected if n != 1) == tuple(n for n in actual if n != 1):
            return ["Only dimensions of size 1 differ: look at keepdim, squeeze and unsqueeze."]
        return ["The same number of elements: return it with .view of the expected shape."]
    return ["Compare which dimensions the reference reduces, and how sizes follow from stride,"
            " padding and kernel."]  # fmt: skip


def _percent(share: float) -> str:
    if share >= 99.95:
        return "all" if share == 100 else ">99.9 %"
    return f"{share:.1f} %" if share >= 0.1 else f"{share:.2g} %"


def _figure(value: float) -> str:
    return str(value) if not math.isfinite(value) else f"{value:.7g}"
