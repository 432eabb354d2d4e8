from pathlib import Path

import pytest

from agent.config.settings_file import parse_assignments, read_settings, scalar
from problems.errors import UsageError

KEYS = {key: key for key in ("budget", "feedback", "model_args", "start_from", "temperature")} | {
    "problem": "problems",
    "problems": "problems",
    "level": "levels",
}


def test_items_win_over_files_wherever_they_stand(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("budget: 3\nfeedback: G\n")
    second.write_text("budget: 4\n")
    assert read_settings(["budget=5", str(first), str(second)], KEYS) == {
        "budget": 5,
        "feedback": "G",
    }


def test_one_key_of_a_mapping_leaves_its_neighbours_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("model-args: {top_p: 0.5, max_tokens: 100}\ntemperature: null\n")
    assert read_settings([str(file), "model_args.top_p=0.9"], KEYS) == {
        "model_args": {"top_p": 0.9, "max_tokens": 100}
    }, "a saved value of null is the same as none given"


def test_option_names_and_lists_are_understood() -> None:
    found = read_settings(["level=2", "problem=[a, b]", "temperature=null"], KEYS)
    assert found == {"levels": 2, "problems": ["a", "b"]}


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("budgte=3", "unknown key 'budgte' in -c budgte=3: did you mean 'budget'?"),
        ("zzz=3", "known: budget, feedback, level, model_args"),
        ("nothing.yaml", "no such file"),
        ("budget=[1", "not valid YAML"),
    ],
)
def test_what_cannot_be_understood_is_told_in_one_line(item: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_settings([item], KEYS)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["budget: [1\nfeedback: G", "- a\n- b\n", "3: 4\n", "budget: 'x\n", "a: b: c\n"]
)
def test_a_file_that_is_no_mapping_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"bad\.yaml") as caught:
        read_settings([str(file)], KEYS)
    assert "\n" not in str(caught.value)


def test_a_folder_or_a_binary_file_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "x.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path, binary):
        with pytest.raises(UsageError, match="can't be read"):
            read_settings([str(path)], KEYS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.9", 0.9),
        ("4096", 4096),
        ("true", True),
        ("null", None),
        ("off", "off"),
        ("high", "high"),
        ("NaN", "NaN"),
        ("[1]", "[1]"),
        ('"7"', "7"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
    ],
)
def test_scalars_are_typed(text: str, value: object) -> None:
    found = scalar(text)
    assert found == value
    assert type(found) is type(value)


def test_assignments_keep_equals_signs_in_values() -> None:
    assert parse_assignments(["a=b=c", "n=1"], "--model-args") == {"a": "b=c", "n": 1}
    with pytest.raises(UsageError, match="--model-args 'top_p' is not of the form key=value"):
        parse_assignments(["top_p"], "--model-args")
