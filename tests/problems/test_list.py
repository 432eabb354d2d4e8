import json
import subprocess
import sys
from pathlib import Path

from problems.loader import load_suite
from tests.command import command, refused

SUITE = Path(__file__).parent.parent / "data" / "suite"


def test_json_is_one_object_a_line() -> None:
    done = command("problems.list", "--json")
    assert done.returncode == 0
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in rows] == [problem.id for problem in load_suite()]
    assert set(rows[0]) == {"id", "level", "name", "category", "path", "suite", "hash"}
    assert rows[0]["suite"] == "refinery"


def test_plain_lines_where_there_is_no_terminal() -> None:
    done = command("problems.list", "--suite", str(SUITE), "--level", "1", "--filter", "relu")
    assert done.returncode == 0
    assert done.stdout.split() == [
        "level1_19_ReLU",
        "elementwise",
        str(SUITE / "level1" / "19_ReLU.py"),
    ]


def test_a_mistake_is_one_line_and_exit_code_2() -> None:
    refused("problems.list", "--suite", "/nonexistent")


def test_listing_never_imports_torch() -> None:
    code = "import sys, problems.list; from problems.loader import load_suite; load_suite()"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True)
