import pytest

from agent.record.completion import apart


@pytest.mark.parametrize(
    ("text", "answer", "reasoning"),
    [
        ("plain", "plain", ""),
        ("  <think>a\nb</think>\nout", "out", "a\nb"),
        ("<thinking>a</thinking>out", "out", "a"),
        ("<think>a", "", "a"),
        ("a</think>out", "out", "a"),
        ("out</think>", "out</think>", ""),
        ("```python\n'</think>'\n```", "```python\n'</think>'\n```", ""),
        ("see <think>x</think> here", "see <think>x</think> here", ""),
        ("", "", ""),
    ],
)
def test_apart(text, answer, reasoning):
    assert apart(text) == (answer, reasoning)
