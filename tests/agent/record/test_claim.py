"""The lock of a run directory."""

import os
import threading
from pathlib import Path

import pytest

from agent.record.claim import locked
from problems.errors import UsageError


def test_a_lock_that_is_about_to_be_free_is_waited_for(tmp_path: Path) -> None:
    """A process that a killed run was starting has a copy of the handle until it runs."""
    lock = locked(tmp_path)
    copy = os.dup(lock.fileno())
    lock.close()
    with pytest.raises(UsageError, match=f"is in use by process {os.getpid()}; wait for it"):
        locked(tmp_path)
    closing = threading.Timer(0.1, os.close, [copy])
    closing.start()
    locked(tmp_path).close()
    closing.join()
