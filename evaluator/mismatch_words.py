"""A wrong output in words: what is wrong, where, what it looks like, and what to check."""

from __future__ import annotations

import math

from evaluator.evaluation import Correctness, ErrorPart, Mismatch

# How each of the judge's details is reported; those of one tuple go together or not at all.
_DETAILS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("counterfactual",), "{}"),
    (("parameters",), "by its process's own word, {}"),
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
    (("first_wrong_flat",), "first wrong element: flat index {}"),
)

_PARTS: dict[ErrorPart, tuple[str, str]] = {
    "whole": ("Its error as a whole", ""),
    "row": ("The error of the row of element {}", " there"),
    "column": ("The error of the column of element {}", " there"),
    "element of a row": ("The error of element {}", " at most in that row"),
    "element of a column": ("The error of element {}", " at most in that column"),
}
"""What is too far off, and where PyTorch's own error is taken from."""


def mismatch_words(correctness: Correctness) -> list[str]:
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
    if ratio is not None and limit is not None and limit < ratio < math.inf:
        what, where = _PARTS[correctness.error_part]
        lines.append(
            f"{what.format(list(found.furthest))} is {ratio:.3g} times that of PyTorch's own result"
            f"{where}; {limit:.3g} times is allowed."
        )
    for position, code in enumerate(found.patterns[:3]):
        word = "It looks like this" if position == 0 else "Or"
        lines.append(f"{word}: {code}. {code.look} {code.check}")
    figures = [
        text.format(*(_shown(key, found.details[key]) for key in keys))
        for keys, text in _DETAILS
        if all(key in found.details for key in keys)
    ]
    if figures:
        lines.append("In figures: " + "; ".join(figures) + ".")
    if found.examples:
        lines += ["", "| index | expected | got |", "|---|---|---|"]
        lines += [
            f"| {list(example.index)} | {_figure(example.expected)} | {_figure(example.actual)} |"
            for example in found.examples
        ]
    return lines


def _shown(key: str, value: float | int | str) -> float | int | str:
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
