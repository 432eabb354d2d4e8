from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.builder.builder import Builder


@pytest.fixture(scope="session")
def cache(shared_cache: Path) -> Path:
    """One cache for the session: what stands behind the light headers is compiled once."""
    return shared_cache


@pytest.fixture(scope="session")
def builder(cache: Path) -> Builder:
    made = Builder(cache, cuda_arch="9.0a")
    made.warm_up()
    return made
