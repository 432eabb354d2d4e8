import pytest

from agent.llm.failure import one_line, without_secrets


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("litellm.RateLimitError: RateLimitError: OpenAIException - slow\n down", "slow down"),
        ("litellm.InternalServerError: GeminiException InternalServerError - bad", "bad"),
        ('litellm.X: {"error": {"type": "t", "message": "why not"}}', "why not"),
        ("litellm.APIConnectionError: 'k'\nTraceback (most recent call last):\n  File", "'k'"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_one_line(text, line):
    assert one_line(text.replace("litellm.X", "litellm.BadRequestError")) == line


def test_it_is_short():
    assert len(one_line("word " * 1000)) == 300


def test_secrets_go(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "plainvalue99")
    monkeypatch.setenv("EMPTY_TOKEN", "")
    text = (
        "plainvalue99 sk-ant-api03-abcdefgh AIzaSyA1234567890abcdefghij Authorization: Bearer x.y"
    )
    assert without_secrets(text) == "<MY_API_KEY> <key> <key> Authorization: <key>"
    assert without_secrets("risk-free, task-specific") == "risk-free, task-specific"
