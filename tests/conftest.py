from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cache of built libraries for all tests and the processes that they start; not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_REFINERY_CACHE", str(tmp_path_factory.mktemp("kernel-refinery")))
        yield
