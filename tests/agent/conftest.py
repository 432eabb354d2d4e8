from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.llm.provider_server import ProviderServer
from tests.agent.world import World

KEY = "topsecretvalue-1234567890"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = ProviderServer()
    yield found
    found.close()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
