"""Folders that a candidate filled are removed, however they are filled."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evaluator.walls.scratch import remove
from tests.evaluator.walls import lesser_machine


def test_a_folder_deeper_than_any_stack(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=here)
        there = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)
    remove(folder)
    assert not folder.exists()


def test_links_are_removed_and_not_followed(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("ours")
    folder = tmp_path / "scratch"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    remove(folder)
    assert not folder.exists() and kept.read_text() == "ours"


def test_a_link_in_its_place_goes_and_what_it_leads_to_stays(tmp_path):
    (tmp_path / "kept" / "below").mkdir(parents=True)
    (tmp_path / "kept" / "below" / "file").touch(mode=0o640)
    link = tmp_path / "scratch"
    link.symlink_to(tmp_path / "kept")
    before = (tmp_path / "kept").stat().st_mode
    remove(link)
    assert not link.is_symlink()
    assert (tmp_path / "kept" / "below" / "file").exists()
    assert (tmp_path / "kept").stat().st_mode == before


def test_one_that_is_gone_already(tmp_path):
    remove(tmp_path / "never")


SHUT = """
import os, sys
os.chdir(sys.argv[1])
os.makedirs("shut/inner/below")
os.symlink("/etc", "shut/inner/link")
os.chmod("shut/inner", 0)
os.chmod("shut", 0)
for _ in range(3000):
    os.mkdir("below")
    os.chdir("below")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_folders_that_are_shut_to_a_user_who_is_not_root():
    code = (
        f"import subprocess, sys, tempfile\nfrom pathlib import Path\n"
        f"from evaluator.walls.scratch import remove\nshut = {SHUT!r}\n"
        "folder = Path(tempfile.mkdtemp())\n"
        "subprocess.run([sys.executable, '-c', shut, str(folder)], check=True)\n"
        "remove(folder)\n"
        "assert not folder.exists()\n"
    )
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o1777)
        subprocess.run(
            [sys.executable, lesser_machine.__file__, "user", sys.executable, "-c", code],
            env=os.environ | {"TMPDIR": name, "PYTHONPATH": str(Path(__file__).parents[3])},
            check=True,
        )
