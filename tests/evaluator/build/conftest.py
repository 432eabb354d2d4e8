from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.build.builder import Builder


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for the session: what stands behind the light headers is compiled once."""
    return tmp_path_factory.mktemp("builds")


@pytest.fixture(scope="session")
def builder(cache: Path) -> Builder:
    made = Builder(cache, cuda_arch="9.0a")
    made.warm_up()
    return made
