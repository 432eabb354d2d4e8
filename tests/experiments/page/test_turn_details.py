"""What a block holds of its turns."""

from pathlib import Path

from agent.record.run_files import RunFiles
from agent.record.turn import TurnRecord
from experiments.page.turn_details import TextRef, TurnBlock, turn_block
from tests.agent.made_records import incorrect, keep, turn
from tests.evaluator.made_evaluations import unbuilt


def text_of(block: TurnBlock, ref: TextRef | None) -> str:
    assert ref is not None and ref.block is None
    return block.texts[ref.hash]


def block_of(folder: Path, *records: TurnRecord) -> TurnBlock:
    return turn_block(0, records, RunFiles(folder), {})


def test_a_text_is_stored_once_whatever_shows_it(tmp_path: Path) -> None:
    first, second = turn(0, problem="p"), turn(0, problem="q", completion="c2")
    keep(tmp_path, first, kernel="x = 1\n", prompt="the same prompt", answer="one")
    keep(tmp_path, second, answer="two")
    homes: dict[str, int] = {}
    one, two = (
        turn_block(place, [each], RunFiles(tmp_path), homes)
        for place, each in enumerate((first, second))
    )
    assert "x = 1\n" in one.texts.values()
    assert "the same prompt" in one.texts.values()
    assert sorted(two.texts.values()) == ["thinking of two", "two"]
    kernel = two.turns[0].kernel
    assert kernel is not None and kernel.block == 0
    assert one.texts[kernel.hash] == "x = 1\n"


def test_a_kernel_is_compared_with_the_one_that_it_refines(tmp_path: Path) -> None:
    records = [
        turn(0, candidate="aaa0"),
        turn(1, candidate="bbb1", parent="aaa0"),
        turn(2, candidate="ccc2", parent="aaa0"),
    ]
    for record, kernel in zip(records, ("a\nb\nc", "a\nB\nc", "a\nb\nc\nd"), strict=True):
        keep(tmp_path, record, kernel=kernel)
    found = block_of(tmp_path, *records)
    assert found.turns[0].change is None
    change = found.turns[2].change
    assert change is not None
    assert (change.before_call, change.steps) == (0, ((3, 3, 3, 4),))
    assert text_of(found, change.before) == "a\nb\nc"


def test_a_failure_has_its_log_and_its_mismatch(tmp_path: Path) -> None:
    found = block_of(tmp_path, turn(0, unbuilt("x.cpp:3: error")), turn(1, incorrect()))
    log = next(each for each in found.turns[0].sections if each.title == "Build log")
    assert text_of(found, log.text) == "x.cpp:3: error"
    mismatch = next(each for each in found.turns[1].sections if each.title == "Mismatch")
    assert "3 of 8" in text_of(found, mismatch.text)
