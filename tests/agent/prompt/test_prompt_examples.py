"""The example kernels of `--examples` are right, and are files as our contract asks for."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch.utils.cpp_extension as cpp_extension

from agent.config.run_config import RunConfig
from agent.prompt.answer import extract
from agent.prompt.prompt import EXAMPLES, Frame, Hardware, first_prompt
from agent.prompt.templates import our_templates
from agent.tuner import answer
from agent.tuner.planning.prompt import read
from evaluator.builder.builder import Builder
from evaluator.evaluation import Backend, Status
from evaluator.executor.local import LocalExecutor
from evaluator.ipc.build_request import BuildRequest
from tests.agent.tuner.prompts import SOFTMAX
from tests.evaluator.made_requests import evaluation_request
from tests.nvcc import needs_nvcc
from tests.task import task

NAMES = EXAMPLES["few"]
# Odd sizes: the last tiles and blocks are partly empty.
REFERENCES = {
    "gelu": task(
        "return F.gelu(x + self.bias)",
        init="self.bias = nn.Parameter(torch.randn(columns))",
        sizes={"columns": "129"},
        x="torch.randn(37, 129)",
    ),
    "matmul": task("return a @ b", a="torch.randn(67, 261)", b="torch.randn(261, 301)"),
    "attention": task(
        """
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return torch.softmax(scores, dim=-1) @ v
        """,
        q="torch.randn(2, 3, 41, 32)",
        k="torch.randn(2, 3, 53, 32)",
        v="torch.randn(2, 3, 53, 32)",
    ),
}


def kernel(name: str, backend: Backend) -> str:
    found = extract(our_templates().render(f"{name}_{backend}"), "stop").source
    assert found is not None
    return found


def judged(executor: LocalExecutor, name: str, backend: Backend, device: str) -> None:
    request = evaluation_request(
        kernel(name, backend),
        REFERENCES[name],
        backend=backend,
        problem_id=name,
        device=device,
        timing_seconds=0.05,
        audit="never",
    )
    verdict = executor.evaluate(request)
    assert verdict.status is Status.CORRECT, verdict.message + verdict.detail


@pytest.mark.parametrize("backend", list(Backend))
@pytest.mark.parametrize("name", NAMES)
def test_each_is_an_answer_in_the_form_asked_for(name: str, backend: Backend) -> None:
    source = kernel(name, backend)
    assert source.startswith("# plan: ")
    ast.parse(source)
    assert max(map(len, source.splitlines())) <= 100
    wanted = "@triton.jit" if backend is Backend.TRITON else "load_inline("
    assert wanted in source and "class ModelNew(nn.Module)" in source


@pytest.fixture(scope="module")
def cpu() -> Iterator[LocalExecutor]:
    with LocalExecutor("cpu") as running:
        yield running


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n != NAMES[0] else ()) for n in NAMES]
)
def test_those_in_cpp_are_right(cpu: LocalExecutor, name: str) -> None:
    judged(cpu, name, Backend.CPP, "cpu")


@pytest.fixture(scope="module")
def builder(shared_cache: Path) -> Builder:
    return Builder(shared_cache, cuda_arch="9.0a")


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("name", NAMES)
def test_those_in_cuda_compile(
    builder: Builder, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(cpp_extension, "load_inline", lambda **options: asked.update(options))
    exec(compile(kernel(name, Backend.CUDA), name, "exec"), {"__name__": name})
    outcome = builder.build(
        BuildRequest(
            name=name,
            cpp_sources=(asked["cpp_sources"],),
            cuda_sources=(asked["cuda_sources"],),
            functions=tuple((each, each) for each in asked["functions"]),
            cuda_cflags=tuple(asked["extra_cuda_cflags"]),
            with_cuda=True,
        )
    )
    assert outcome.ok, outcome.log
    assert outcome.headers == "light"


@pytest.fixture(scope="module")
def gpu() -> Iterator[LocalExecutor]:
    with LocalExecutor("cuda:0") as running:
        yield running


@pytest.mark.gpu
@pytest.mark.parametrize("backend", [Backend.CUDA, Backend.TRITON])
@pytest.mark.parametrize("name", NAMES)
def test_those_for_a_gpu_are_right(gpu: LocalExecutor, name: str, backend: Backend) -> None:
    judged(gpu, name, backend, "cuda:0")


@pytest.mark.parametrize("backend", list(Backend))
@pytest.mark.parametrize("choice", EXAMPLES)
def test_the_prompt_shows_what_was_asked_for(choice: str, backend: Backend) -> None:
    run = RunConfig.model_validate({"output": "x", "backend": backend, "examples": choice})
    prompt = first_prompt(run, Frame(SOFTMAX, Hardware("a device")))
    shown = [name for name in NAMES if kernel(name, backend).strip() in prompt.text]
    assert shown == list(EXAMPLES[choice])
    assert (
        ("## Examples" in prompt.text) == (choice != "none") == ("examples" in prompt.ledger.tokens)
    )
    assert "\n\n\n\n" not in prompt.text.replace("\n\n\nclass", "").replace("\n\n\n@", "")


def test_the_tuner_is_not_led_astray_by_examples() -> None:
    frame = Frame(SOFTMAX, Hardware("a CPU"))
    asked = {}
    for choice in EXAMPLES:
        run = RunConfig.model_validate({"output": "x", "examples": choice})
        message = {"role": "user", "content": first_prompt(run, frame).text}
        asked[choice] = (
            read([message]).reference,
            read([message]).feedback,
            answer([message], 0.0, 0),
        )
    assert asked["few"] == asked["one"] == asked["none"]
    assert asked["none"][0].strip() == SOFTMAX.strip() and not asked["none"][1]
