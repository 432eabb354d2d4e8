import pytest

from experiments.analysis.label import model_label, policy_label


@pytest.mark.parametrize(
    ("model", "label"),
    [
        ("offline/tuner", "offline/tuner (rule-based kernel writer, not a language model)"),
        ("replay/runs/x", "replay (recorded answers)"),
        ("relay//tmp/x", "relay (answered through files, by a person or another program)"),
        ("anthropic/claude", "anthropic/claude"),
    ],
)
def test_only_a_language_model_stands_without_a_note(model: str, label: str):
    assert model_label(model) == label


def test_sampling_has_no_letters():
    assert policy_label("refine", "G+E") == "refine G+E"
    assert policy_label("sample", "none") == "sample"
