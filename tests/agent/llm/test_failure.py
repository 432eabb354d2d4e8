from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.llm.failure import RetryPolicy, one_line, retry_after_s, without_secrets

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "2", "Retry-After-Ms": "250"}, 0.25),
        ({"Retry-After": "Fri, 20 Nov 2026 12:01:30 GMT"}, 90.0),
        ({"Retry-After": "Fri, 20 Nov 2026 13:01:30 +0100"}, 90.0),
        ({"Retry-After": "Fri, 20 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({}, None),
    ],
)
def test_what_a_provider_asks(headers, seconds):
    assert retry_after_s(headers, NOON) == seconds


@given(st.text())
def test_any_header_is_understood_or_not(text):
    seconds = retry_after_s({"Retry-After": text}, NOON)
    assert seconds is None or 0 <= seconds < float("inf")


@given(st.integers(1, 500), st.text(max_size=5))
def test_delays_stay_within_bounds(attempt, key):
    policy = RetryPolicy(first_delay_s=1.0, longest_delay_s=60.0)
    full = min(60.0, 2.0 ** (attempt - 1))
    assert full / 2 <= policy.delay_s(attempt, None, key) <= full
    assert 100 <= policy.delay_s(attempt, 100.0, key) <= 110
    assert policy.delay_s(attempt, None, key) == policy.delay_s(attempt, None, key)


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
