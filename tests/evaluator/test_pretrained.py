"""Tasks in the shape of KernelBench's level 4, on small configurations in a local folder."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from evaluator.errors import InfrastructureError, UnusableReferenceError
from evaluator.evaluation import (
    Backend,
    Evaluation,
    ProblemRequest,
    Status,
)
from evaluator.executor.local import LocalExecutor
from evaluator.judge.builds.rehearsal import Rehearsal
from evaluator.judge.workers.zygote import Zygote
from evaluator.settings import Settings
from tests.evaluator.judge.builds.test_rehearsal import H200, HEAD, LIMITS, Notebook
from tests.evaluator.made_requests import evaluation_request
from tests.task import as_candidate
from tools.profile import profile

Evaluate = Callable[..., Evaluation]

TASK = """
import torch
from transformers import AutoConfig, AutoModelForCausalLM


class Model(torch.nn.Module):
    def __init__(self, name, config):
        super().__init__()
        self.language_model = AutoModelForCausalLM.from_pretrained(name, config=config)

    def forward(self, tokens):
        return self.language_model(tokens).logits


NAME = {name!r}
CONFIG = AutoConfig.from_pretrained(NAME)


def get_inputs():
    return [torch.randint(0, CONFIG.vocab_size, (2, 32))]


def get_init_inputs():
    return [NAME, CONFIG]
"""
SMALL: dict[str, dict[str, object]] = {
    "gpt2": {"n_layer": 2, "n_head": 2, "n_embd": 32, "bos_token_id": 1, "eos_token_id": 2},
    "opt": {
        "num_hidden_layers": 2,
        "hidden_size": 32,
        "word_embed_proj_dim": 32,
        "ffn_dim": 64,
        "num_attention_heads": 2,
        # As the published one says: the run's precision decides all the same.
        "torch_dtype": "float16",
    },
    "big_bird": {
        "num_hidden_layers": 2,
        "hidden_size": 32,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "block_size": 4,
        "num_random_blocks": 1,
        "sep_token_id": 3,
    },
    # Without a seed for its hashes it gives other outputs at each call.
    "reformer": {
        "attn_layers": ["local", "lsh"],
        "hidden_size": 32,
        "num_attention_heads": 2,
        "attention_head_size": 16,
        "feed_forward_size": 64,
        "axial_pos_shape": [4, 8],
        "axial_pos_embds_dim": [16, 16],
        "num_buckets": 2,
        "lsh_attn_chunk_length": 8,
        "local_attn_chunk_length": 8,
        "is_decoder": True,
        "hash_seed": 7,
    },
}

TELLING = ("gpt2",)
"""What the ordinary tests judge; random hashes have a test of their own."""


def task(folder: Path, kind: str, **changes: object) -> str:
    """The source of a task on a small model, whose configuration is written to `folder`."""
    values = {"model_type": kind, "vocab_size": 64, "max_position_embeddings": 64}
    (folder / "config.json").write_text(json.dumps({**values, **SMALL[kind], **changes}))
    return TASK.format(name=str(folder))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kind",
    [kind if kind in TELLING else pytest.param(kind, marks=pytest.mark.slow) for kind in SMALL],
)
def test_its_own_module_is_a_correct_candidate(
    evaluate: Evaluate, tmp_path: Path, kind: str
) -> None:
    reference = task(tmp_path, kind)
    found = evaluate(as_candidate(reference), reference, import_timeout_s=60.0)
    assert found.status is Status.CORRECT, f"{found.reason}: {found.message} {found.detail}"
    assert found.weights == "named"
    assert found.timing is not None
    assert found.timing.baselines
    assert "clean_environment" in found.isolation


@pytest.mark.thorough
def test_a_wrong_one_is_refused(evaluate: Evaluate, tmp_path: Path) -> None:
    reference = task(tmp_path, "gpt2")
    wrong = as_candidate(reference).replace(".logits", ".logits * 1.01")
    found = evaluate(wrong, reference, import_timeout_s=60.0)
    assert (found.status, found.reason) == (Status.INCORRECT, "wrong_values")


@pytest.mark.slow
def test_a_candidate_knows_no_other_model(evaluate: Evaluate, tmp_path: Path) -> None:
    reference = task(tmp_path, "gpt2")
    other = as_candidate(reference).replace(str(tmp_path), "gpt2-xl")
    found = evaluate(other, reference, import_timeout_s=60.0)
    assert found.status is Status.RUNTIME_ERROR
    assert f"no configuration of gpt2-xl here; the problem's own: {tmp_path}" in found.message


def check(executor: LocalExecutor, reference: str, device: str = "cpu") -> None:
    settings = Settings(device=device)
    executor.check(ProblemRequest(problem_id="test", reference=reference, settings=settings))


@pytest.mark.slow
def test_random_hashes_are_drawn_alike_on_both_sides(evaluate: Evaluate, tmp_path: Path) -> None:
    reference = task(tmp_path, "reformer", hash_seed=None, initializer_range=1.0)
    evaluation = evaluate(as_candidate(reference), reference, import_timeout_s=60.0)
    assert evaluation.status is Status.CORRECT, evaluation.message
    assert evaluation.correctness is not None
    assert evaluation.correctness.reference == "task_precision"


@pytest.mark.thorough
def test_a_missing_configuration_is_one_line_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with LocalExecutor("cpu") as executor, pytest.raises(UnusableReferenceError) as told:
        check(executor, TASK.format(name="nobody/no-such-model"))
    assert "run `hf download nobody/no-such-model config.json`" in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.thorough
def test_no_adapter_is_looked_for_where_peft_is_installed() -> None:
    script = (
        "import transformers\n"
        "from transformers.models.auto import auto_factory\n"
        "from evaluator.pretrained import know_configurations\n"
        "auto_factory.is_peft_available = lambda: True\n"
        "values = {'model_type': 'gpt2', 'n_layer': 1, 'n_head': 1, 'n_embd': 8, 'vocab_size': 8}\n"
        "know_configurations({'/not/there': values})\n"
        "model = transformers.AutoModelForCausalLM.from_pretrained('/not/there')\n"
        "assert model.config.n_embd == 8\n"
    )
    subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "HF_HUB_OFFLINE": "1"},
        check=True,
        timeout=120,
    )


def test_without_transformers_the_remedy_is_to_install_it() -> None:
    script = (
        "import sys; sys.modules['transformers'] = None\n"
        "from evaluator.judge.problem.problem_file import ProblemFile\n"
        "ProblemFile('import torch\\nfrom transformers import AutoConfig\\n')"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    last = result.stderr.splitlines()[-1]
    assert last.startswith("evaluator.errors.UnusableReferenceError: the problem needs transfor")
    assert last.endswith("pip install transformers")
    assert issubclass(UnusableReferenceError, InfrastructureError)


@pytest.mark.slow
def test_it_is_audited_and_profiled_behind_the_walls(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    reference = task(tmp_path, "gpt2")
    request = evaluation_request(
        as_candidate(reference), reference, timing_seconds=0.2, audit="always"
    )
    found = executor.evaluate(request)
    assert found.status is Status.CORRECT, f"{found.reason}: {found.message} {found.detail}"
    assert found.provenance is not None, found.notes
    # The folder is beyond the target's reach by then, as the hub is.
    (tmp_path / "config.json").unlink()
    assert profile(request, found).summary


@pytest.mark.slow
def test_a_candidate_that_is_built_ahead_finds_its_configuration(tmp_path: Path) -> None:
    reference = task(tmp_path, "gpt2")
    builder = Notebook(tmp_path)
    source = f"{HEAD}\n{as_candidate(reference)}\nAutoConfig.from_pretrained({str(tmp_path)!r})\n"
    request = evaluation_request(
        source + "build('after')\n", reference, backend=Backend.CUDA, device="cuda:0"
    )
    with closing(Zygote()) as zygote:
        Rehearsal(request, builder, H200, zygote.fork(LIMITS)).run()
    assert builder.names == ["after"]


@pytest.mark.gpu
def test_its_own_module_is_a_correct_candidate_on_a_gpu(tmp_path: Path) -> None:
    reference = task(tmp_path, "gpt2")
    request = evaluation_request(
        as_candidate(reference),
        reference,
        backend=Backend.CUDA,
        device="cuda:0",
        timing_seconds=0.2,
        audit="always",
    )
    with LocalExecutor("cuda:0") as executor:
        check(executor, reference, device="cuda:0")
        found = executor.evaluate(request)
    assert found.status is Status.CORRECT, f"{found.reason}: {found.message} {found.detail}"
    assert found.provenance is not None, found.notes
