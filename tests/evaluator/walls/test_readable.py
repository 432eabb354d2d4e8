"""What a confined process can read of this machine: a walk, and the list in docs/walls.md."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from evaluator.walls import folders
from tests.evaluator.walls.test_mounts import ROOT, printed_by

WALK = """
import json, os, sys
from pathlib import Path
from evaluator.walls.layers import confine, enclose
from evaluator.walls.namespaces import fork_apart

def first_file(path):
    below = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    for file in ([path] if os.path.isfile(path) else below):
        try:
            with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb"):
                return str(file)
        except OSError:
            pass

scratch, kind, places = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
enclosed = enclose(scratch.parent) if kind == "namespaces" else []
child = os.fork()
if child == 0:
    confine(scratch, memory_bytes=None, cpu_seconds=60, enclosed=enclosed)
    if os.access(os.__file__, os.R_OK):  # another user may not come there
        import sqlite3, wsgiref, xmlrpc.client, torchgen.gen, yaml
    print(json.dumps([place for place in places if first_file(Path(place))]), flush=True)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("kind", ["namespaces", "landlock"])
@pytest.mark.parametrize("around", [False, True])
def test_a_candidate_reads_what_the_page_lists_and_no_problem(
    kind: str, around: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`around`: all of this checkout lies in a folder that may be read."""
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    if around:
        monkeypatch.setenv("CUDA_HOME", str(ROOT))
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    ours = [ROOT / "evaluator", *(ROOT / "problems").iterdir()]
    deepest = [*ours, Path(sys.prefix), Path(sys.base_prefix)]
    above = {parent for path in deepest for parent in path.parents}
    places = {entry for folder in above for entry in folder.iterdir()} - above
    found = json.loads(printed_by(WALK, scratch, kind, json.dumps(sorted(map(str, places)))))

    section = (ROOT / "docs" / "walls.md").read_text().partition("## What a candidate can read")[2]
    listed = re.findall(r"`(/[\w/]+|\w+/|\w+/\*\.py)`", section.partition("\n## ")[0])
    assert {f"/{Path(name).parts[1]}" for name in folders.SYSTEM} <= {*listed}
    interpreter = [path.resolve() for path in folders.interpreter_folders()]
    for place in map(Path, found):
        inside = f"{place.relative_to(ROOT)}/" if place.is_relative_to(ROOT) else str(place)
        if place.parent == ROOT / "problems":
            assert "level" not in place.name
            inside = "problems/*.py"
        assert inside in listed or any(place.is_relative_to(path) for path in interpreter), place
    assert str(ROOT / "evaluator") in found
    assert os.access(next(ROOT.glob("problems/level1/*.py")), os.R_OK)
