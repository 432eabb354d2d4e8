from __future__ import annotations

import pytest

from evaluator.candidate_tree import candidate_tree


@pytest.mark.parametrize(
    ("source", "is_read"),
    [
        ("x = " + " + ".join(["y"] * 90), True),
        ("x = " + " + ".join(["y"] * 110), False),
        (f"s = '''{'/*' * 60_000}'''", True),
        (f"s = '''{'/*' * 70_000}'''", False),
        ("(" * 199 + ")" * 199 + ".a" * 50_000, False),
        ("def (", False),
    ],
)
def test_hostile_text_is_refused(source: str, is_read: bool) -> None:
    assert (candidate_tree(source) is not None) is is_read
