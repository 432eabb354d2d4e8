from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says nothing on a busy machine.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


@pytest.fixture(scope="session", autouse=True)
def main_loop() -> Iterator[None]:
    """Libraries that ask the main thread for an event loop get this one; it is closed at last."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(scope="session", autouse=True)
def shared_locks() -> Iterator[None]:
    """Those of the processes of this test run: one with another TMPDIR need not wait for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_REFINERY_LOCKS", tempfile.gettempdir())
        yield


@pytest.fixture
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that read all of stderr, where a command says what it waits for."""
    monkeypatch.setenv("KERNEL_REFINERY_LOCKS", str(tmp_path))


@pytest.fixture(scope="session", autouse=True)
def shared_cache(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Path]:
    """One cache of built libraries for all tests and their processes; not the user's.

    Objects, which are found by the content of all that went in, stay from one run to the next, in
    pytest's own cache: the first one of a machine takes half a minute.
    """
    folder = tmp_path_factory.mktemp("kernel-refinery")
    if (kept := getattr(request.config, "cache", None)) is not None:
        (folder / "objects").symlink_to(kept.mkdir("objects"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_REFINERY_CACHE", str(folder))
        patch.setenv("TORCH_EXTENSIONS_DIR", str(folder / "extensions"))
        yield folder
