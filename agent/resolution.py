"""From what a user asked for to a complete `RunConfig`: defaults, `auto`, problems, directory."""

from __future__ import annotations

import importlib.util
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from agent.config.feedback_spec import FeedbackSpec
from agent.config.identity import run_name
from agent.config.options import RunOptions
from agent.config.run_config import RunConfig, Strategy
from agent.config.schedule import schedule_of
from evaluator.baseline import baselines_on
from evaluator.builder.toolchain import cxx_compiler, find_tool
from evaluator.command.option import option_name
from evaluator.evaluation import Backend
from evaluator.hardware.device_choice import resolve_devices
from problems.errors import UsageError
from problems.loader import DEMO, load_problem, load_suite, select
from problems.problem import Problem

WORKERS_A_GPU = 8
"""Turns under way for each GPU: one is judged while others are built, profiled, or wait for their
model, which is what takes longest."""
MAX_CLUSTER_WORKERS = 16
RUNS = Path("runs")
"""Where runs without an -o of their own are kept."""


@dataclass(frozen=True)
class Resolution:
    """What will be run, with notes for the user on how it was resolved."""

    config: RunConfig
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()


def resolve(options: RunOptions) -> Resolution:
    """Fill in everything that is unset. Raises `UsageError` for what can't be, or contradicts."""
    notes: list[str] = []
    problems = choose_problems(options)
    if options.ray_address is not None and options.executor != "ray":
        raise UsageError("--ray-address is for --executor ray; add that, or leave the address out")
    devices, backend = choose_devices(options)
    settings = RunConfig.model_fields
    config = RunConfig.model_validate(
        {
            **{key: value for key, value in options.given().items() if key in settings},
            **_policy(options, notes, devices[0]),
            "problems": tuple(problem.id for problem in problems),
            "device": ",".join(devices),
            "backend": backend,
            "rival": _rival(options, devices[0]),
            "output": options.output or RUNS,
        }
    )
    if options.workers is None:
        config = config.model_copy(update={"workers": _default_workers(config)})
    if config.temperature == 0 and config.strategy is not Strategy.REFINE:
        raise UsageError(
            f"--strategy {config.strategy} at --temperature 0 would ask for the same answer each"
            " time; leave the temperature unset or give one above 0"
        )
    if options.output is None:
        config = config.model_copy(update={"output": RUNS / run_name(config)})
    return Resolution(config, tuple(problems), tuple(notes))


def choose_problems(options: RunOptions) -> list[Problem]:
    """The problems named, else the suite, else the demo; then narrowed. Never empty."""
    if options.problems is not None:
        chosen = [load_problem(ref, options.suite) for ref in options.problems]
    elif options.suite or options.levels or options.filter:
        chosen = load_suite(options.suite)
    else:
        chosen = [load_problem(ref) for ref in DEMO]
    if options.levels is not None:
        chosen = [problem for problem in chosen if problem.level in options.levels]
    chosen = select(chosen, filter=options.filter, limit=options.limit)
    if not chosen:
        raise UsageError("no problem is left after --level and --filter; loosen them")
    chosen = list({problem.path.resolve(): problem for problem in chosen}.values())
    twice = [id for id, count in Counter(problem.id for problem in chosen).items() if count > 1]
    if twice:
        raise UsageError(f"two problem files share the id {twice[0]!r}; rename one of them")
    return chosen


def choose_devices(options: RunOptions) -> tuple[tuple[str, ...], Backend]:
    """`cpu` or GPUs, and the backend that goes with them; checks that both can work where they are
    to, if that is this machine."""
    here = options.executor != "ray"
    asked = options.device
    if here or asked == "auto":
        # Kernels in C++ are for the CPU, whatever else is here.
        devices = resolve_devices(asked, prefer_gpu=options.backend != "cpp")
    else:
        devices = (_device_of_a_cluster(asked),)
    backend = _backend_for(devices[0], options.backend)
    if here and (missing := missing_for(backend)):
        raise UsageError(f"--backend {backend}: {missing}")
    if backend is Backend.TRITON and options.model == "offline/tuner":
        raise UsageError("offline/tuner writes cuda and cpp, not triton; name a model with -m")
    return devices, backend


def missing_for(backend: Backend) -> str | None:
    """What `backend` needs and this machine lacks, with the remedy; None where nothing is."""
    if backend is Backend.TRITON:
        if importlib.util.find_spec("triton") is None:
            return "no triton here: it comes with torch for CUDA (pip install triton)"
        return None
    if cxx_compiler() is None:
        return "no C++ compiler found: install g++ (apt install g++), or set CXX"
    if backend is Backend.CUDA and find_tool("nvcc") is None:
        return "no nvcc found: install the CUDA toolkit and set CUDA_HOME, or use --backend triton"
    return None


def _device_of_a_cluster(asked: str) -> str:
    """As a judge there sees it: Ray shows each of them one GPU."""
    if asked not in ("cpu", "cuda"):
        raise UsageError(f"--device {asked} with --executor ray: say cuda, and Ray picks the GPUs")
    return "cpu" if asked == "cpu" else "cuda:0"


def _backend_for(device: str, asked: str) -> Backend:
    on_gpu = device != "cpu"
    if asked == "auto":
        return Backend.CUDA if on_gpu else Backend.CPP
    backend = Backend(asked)
    if on_gpu and backend is Backend.CPP:
        raise UsageError("--backend cpp makes kernels for the CPU; add --device cpu")
    if not on_gpu and backend is not Backend.CPP:
        raise UsageError(
            f"--backend {asked} needs an NVIDIA GPU; use --backend cpp, or --device cuda on a"
            " machine that has one"
        )
    return backend


def _policy(options: RunOptions, notes: list[str], device: str) -> dict[str, object]:
    """What is remembered and measured, in the one form in which it is recorded."""
    unused: dict[str, object] = {}
    if options.strategy is Strategy.SAMPLE:
        unused |= {"feedback": FeedbackSpec(), "start_from": "best", "history": "all"}
    if options.strategy is not Strategy.HYBRID:
        unused |= {"drafts": None, "refine_best": None}
    given = [
        option_name(RunOptions, name)
        for name, value in unused.items()
        if name in options.model_fields_set and getattr(options, name) != value
    ]
    if given:
        notes.append(f"--strategy {options.strategy}: {', '.join(given)} not used")
    policy: dict[str, object] = {"baselines": baselines_on(device, options.baselines), **unused}
    if options.strategy is Strategy.HYBRID:
        policy |= _drafts(options, notes)
    return policy


def _drafts(options: RunOptions, notes: list[str]) -> dict[str, object]:
    """How many of a hybrid's calls are drafts, and how many of those are refined."""
    drafts = options.drafts or (options.budget + 1) // 2
    refine_best = options.refine_best or min(2, drafts)
    for name, value, most, limit in (
        ("--drafts", drafts, "--budget", options.budget),
        ("--refine-best", refine_best, "--drafts", drafts),
    ):
        if value > limit:
            raise UsageError(f"{name} {value} is more than {most} {limit}; lower it, or raise that")
    if options.drafts is None:
        notes.append(
            f"half of --budget {options.budget} are drafts; a larger budget for this run needs"
            f" --drafts {drafts}"
        )
    return {"drafts": drafts, "refine_best": refine_best}


def _rival(options: RunOptions, device: str) -> str:
    """On a CPU nothing: compiling takes longer than most kernels are worth there."""
    if options.rival != "auto":
        return options.rival
    return "none" if device == "cpu" else "compile"


def _default_workers(config: RunConfig) -> int:
    """On a CPU one: a compiler beside a measurement disturbs it. On GPUs builds may overlap. On a
    cluster the judges build, and how many they are is not known yet."""
    samples = len(config.problems) * schedule_of(config).drafts
    if config.executor == "ray":
        return min(MAX_CLUSTER_WORKERS, samples)
    if config.first_device == "cpu":
        return 1
    return min(WORKERS_A_GPU * len(config.devices), samples)
