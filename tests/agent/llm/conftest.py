import pytest

from tests.agent.llm.provider_server import ProviderServer

KEY = "topsecretvalue-1234567890"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = ProviderServer()
    yield found
    found.close()
