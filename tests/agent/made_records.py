"""Records made by hand, for tests that read or show what a run has written."""

from collections.abc import Iterable
from pathlib import Path

from agent.config.run_config import RunConfig
from agent.record.completion import Completion, Usage
from agent.record.events import Evaluated, Event, ModelAnswered, TurnRecorded, TurnStarted
from agent.record.result import ProblemResult, Spent, Stop
from agent.record.run_files import RunFiles, StoredCompletion
from agent.record.turn import TurnRecord, TurnSeconds
from evaluator.evaluation import (
    Correctness,
    Evaluation,
    Mismatch,
    Status,
)
from tests.evaluator.made_evaluations import correct as correct
from tests.evaluator.made_evaluations import timing as timing
from tools.profiling.profile_report import (
    Advice,
    Bottleneck,
    Direction,
    KernelShare,
    Profile,
    ProfilerTier,
)

A, B = "level1_1_square", "level2_1_bias_swish_gate_residual"


def config(*problems: str, **settings: object) -> RunConfig:
    return RunConfig.model_validate(
        {"problems": problems or (A, B), "output": Path("runs/x"), **settings}
    )


def incorrect() -> Evaluation:
    mismatch = Mismatch(output=0, kind="values", wrong=3, total=8)
    return Evaluation(
        status=Status.INCORRECT,
        reason="wrong_values",
        message="3 of 8 elements differ\nsecond line",
        correctness=Correctness(calls_judged=1, calls_made=1, mismatch=mismatch),
    )


def profile() -> Profile:
    return Profile(
        rung=ProfilerTier.CPU,
        device="cpu",
        bottleneck=Bottleneck.MEMORY_BANDWIDTH,
        headline="It moves 3.2 GB/s.",
        kernels=(),
        summary="It moves 3.2 GB/s.\nThat is half of what this machine can.",
    )


def advice() -> Advice:
    return Advice(
        rule="uncoalesced_loads",
        evidence="EVIDENCE of 31 sectors.",
        change="CHANGE the order of the loads.",
        figure="dram_pct",
        direction=Direction.UP,
        before=41.0,
        gain=0.5,
    )


def kernel_share() -> KernelShare:
    metrics = {"METRIC_known": 12.5, "METRIC_unknown": None}
    return KernelShare(
        name="a_kernel", own=True, launches=2, time_us=7.25, share=0.9, metrics=metrics
    )


def turn(
    number: int,
    evaluation: Evaluation | None = None,
    *,
    problem: str = "level1_1_square",
    candidate: str | None = "c0ffee",
    **fields: object,
) -> TurnRecord:
    return TurnRecord.model_validate(
        {
            "suite": "refinery",
            "problem": problem,
            "problem_hash": "0123456789abcdef",
            "sample": 0,
            "turn": number,
            "call": number,
            "strategy": "refine",
            "feedback": "G+E+P",
            "model": "offline/tuner",
            "model_answered": "tuner",
            "temperature": None,
            "run_seed": 0,
            "protocol": "refinery",
            "precision": "fp32",
            "size_class": "cpu",
            "backend": "cpp",
            "device": "a CPU",
            "prompt": "aa",
            "completion": "bb",
            "candidate": candidate,
            "plan": "two rows a thread",
            "finish_reason": "stop",
            "evaluation": (evaluation or correct()).model_dump(),
            "usage": Usage(prompt_tokens=900, completion_tokens=400, cost_usd=0.0).model_dump(),
            "seconds": TurnSeconds(model=1.0, build=2.0, judge=3.0).model_dump(),
            "created": "2026-01-02T03:04:05Z",
            **fields,
        }
    )


def write_turns(folder: Path, records: Iterable[TurnRecord]) -> Path:
    """Turns of a run, or more of them, as it writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "turns.jsonl").open("a") as file:
        file.writelines(record.model_dump_json() + "\n" for record in records)
    return folder


def keep(
    folder: Path, record: TurnRecord, *, kernel: str = "", prompt: str = "", answer: str = ""
) -> None:
    """Put the texts of a turn where a run keeps them."""
    files = RunFiles(folder)
    for name in ("kernels", "prompts", "completions"):
        (folder / name).mkdir(exist_ok=True)
    if kernel and record.candidate:
        files.kernel_path(record.candidate).write_text(kernel)
    if prompt:
        (folder / "prompts" / f"{record.prompt}.txt").write_text(prompt)
    if answer:
        stored = StoredCompletion(
            problem=record.problem,
            sample=record.sample,
            turn=record.turn,
            prompt=record.prompt,
            temperature=None,
            seed=None,
            arguments={},
            completion=Completion(
                text=answer,
                reasoning=f"thinking of {answer}",
                model_asked="m",
                model_answered="m",
                usage=Usage(),
                seconds=1.0,
            ),
        )
        files.completion_path(record.completion).write_text(stored.model_dump_json())


def problem_result(
    best: TurnRecord | None,
    last: TurnRecord,
    turns: int,
    stop: Stop = Stop.CALLS,
    error: str = "",
    *,
    correct_turns: int = 0,
) -> ProblemResult:
    return ProblemResult(
        problem=last.problem,
        best=best,
        last=last,
        best_path=None,
        turns=turns,
        correct=correct_turns,
        spent=Spent(calls=turns),
        stop=stop,
        error=error,
    )


def turn_events(problem: str, number: int, evaluation: Evaluation, best: bool) -> list[Event]:
    record = turn(number, evaluation, problem=problem)
    return [
        TurnStarted(problem, 0, number, number),
        ModelAnswered(problem, 0, number),
        Evaluated(problem, 0, number, evaluation),
        TurnRecorded(problem, record, best, Spent(cost_usd=0.0123 * (number + 1))),
    ]
