"""Pages, and runs made by hand whose prompts, answers, kernels and logs are given."""

from collections.abc import Iterable
from pathlib import Path

from agent.record.completion import Completion, Usage
from agent.record.run_files import RunFiles, StoredCompletion
from agent.record.turn import TurnRecord
from evaluator.evaluation import BuildReport, Evaluation, Status
from experiments.page.collection import collect
from experiments.page.page import static_page
from experiments.page.sources import Sources


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


def unbuilt(log: str) -> Evaluation:
    return Evaluation(
        status=Status.BUILD_ERROR,
        reason="compile_failed",
        message=f"it does not build\n{log}",
        detail=log,
        build=BuildReport(ok=False, log=log),
    )


def append(folder: Path, records: Iterable[TurnRecord]) -> None:
    """More turns of a run, as it writes them."""
    with (folder / "turns.jsonl").open("a") as file:
        file.writelines(record.model_dump_json(by_alias=True) + "\n" for record in records)


def page_of(target: Path, *sources: Path) -> Path:
    target.write_text(static_page(collect(Sources.at(sources))), encoding="utf-8")
    return target
