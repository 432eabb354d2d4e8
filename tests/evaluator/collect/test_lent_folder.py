from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evaluator.collect.target.lent_folder import lent_folder
from tests.evaluator.walls import lesser_machine

MAKES = """
import os, sys
os.chdir(sys.argv[1])
os.symlink(sys.argv[2], "link")
os.makedirs("shut/inner")
open("shut/inner/file", "w").close()
os.symlink(sys.argv[2], "shut/inner/link")
os.chmod("shut/inner", 0)
os.chmod("shut", 0)
for _ in range(int(sys.argv[3])):
    os.mkdir("below")
    os.chdir("below")
"""
"""More folders than Python may recurse into, and some that are shut."""


@pytest.mark.parametrize("depth", [1, 3000])
def test_it_goes_whatever_was_made_of_it(
    depth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with lent_folder("lent-") as folder:
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept" / "file").touch()
        made = [sys.executable, "-c", MAKES, str(folder), str(tmp_path / "kept"), str(depth)]
        subprocess.run(made, check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "file").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_nor_need_it_be_root_who_removes_it() -> None:
    code = (
        f"import subprocess, sys, tempfile\nfrom pathlib import Path\n"
        f"from evaluator.collect.target.lent_folder import lent_folder\nmakes = {MAKES!r}\n"
        "with tempfile.TemporaryDirectory() as place:\n"
        "    tempfile.tempdir = place\n"
        "    with lent_folder('lent-') as folder:\n"
        "        command = [sys.executable, '-c', makes, str(folder), '/etc', '3000']\n"
        "        subprocess.run(command, check=True)\n"
        "    assert not list(Path(place).iterdir())\n"
    )
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o1777)
        subprocess.run(
            [sys.executable, lesser_machine.__file__, "user", sys.executable, "-c", code],
            env=os.environ | {"TMPDIR": name, "PYTHONPATH": str(Path(__file__).parents[3])},
            check=True,
        )
