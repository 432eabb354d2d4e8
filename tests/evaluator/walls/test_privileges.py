"""Whose right to watch performance is the machine's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaluator.walls import privileges

ALL, DOCKER = "000001ffffffffff", "00000000a80425fb"
EVERYBODY = "         0          0 4294967295\n"


@pytest.mark.parametrize(
    ("uid", "rights", "users", "may"),
    [
        (0, ALL, EVERYBODY, True),
        (0, ALL, None, True),
        (0, DOCKER, EVERYBODY, False),
        (0, ALL, "         0       1000          1\n", False),
        (1000, ALL, EVERYBODY, False),
    ],
    ids=["root", "no user namespaces", "container", "own user namespace", "user"],
)
def test_who_may_watch(
    uid: int,
    rights: str,
    users: str | None,
    may: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "status").write_text(f"Name:\tpython\nCapPrm:\t{rights}\nCapEff:\t{rights}\n")
    if users is not None:
        (tmp_path / "uid_map").write_text(users)
    monkeypatch.setattr(privileges, "_STATUS", tmp_path / "status")
    monkeypatch.setattr(privileges, "_USERS", tmp_path / "uid_map")
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert privileges.may_watch() is may
