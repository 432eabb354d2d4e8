"""Folders that a candidate filled are removed, however they are filled."""

from __future__ import annotations

import os

from evaluator.walls.scratch import remove


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
