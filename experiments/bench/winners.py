"""`python -m experiments.bench.winners`: do the confirmed figures of runs hold another day?

`take RUN FILE` writes the confirmed best kernels of a run to a file, with all that judging them
takes. `again FILE OUT` judges each once more, on another machine or day with the same model of CPU
or GPU. `report FILE OUT` sets the figures side by side.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, hypot, log, sqrt
from pathlib import Path
from statistics import NormalDist, fmean, median
from typing import Annotated, TypeVar

import typer
from pydantic import ValidationError

from agent.loop.deps import settings_of
from agent.record.confirmation import confirming
from agent.record.run_files import RunFiles
from evaluator.command.command_line import serve
from evaluator.evaluation import Candidate, EvaluationRequest, Timing
from evaluator.executor.local import LocalExecutor
from evaluator.hardware.devices import describe
from evaluator.record import Record
from experiments.bench.suites.attempt import attempt
from problems.errors import UsageError
from problems.loader import load_problem, load_suite

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_NORMAL_95 = NormalDist().inv_cdf(0.975)
"""Standard errors in half of a 95 % interval."""

_Line = TypeVar("_Line", "Winner", "Again")


class Winner(Record):
    """A run's best kernel for a problem, as it was confirmed."""

    run: str
    request: EvaluationRequest
    """As it was judged for the confirmation."""
    found: float | None
    """Its speedup over eager in the search."""
    confirmed: Timing
    device: str
    """The model of the CPU or GPU."""

    @property
    def name(self) -> str:
        """Of the kernel, among those of several runs."""
        return f"{self.run} {self.request.problem_id} {self.request.candidate.hash}"

    def on(self, device: str) -> Winner:
        """The same kernel, to be judged on that device."""
        return self.model_copy(update={"request": self.request.on(device)})


class Again(Record):
    """The same kernel, judged once more."""

    name: str
    timing: Timing | None
    """None: it was not judged correct."""
    message: str
    device: str


@dataclass(frozen=True)
class Pair:
    """Both measurements of one kernel."""

    winner: Winner
    again: Timing

    @property
    def ratio(self) -> float:
        """The second speedup over the confirmed one."""
        return self.again.speedup / self.winner.confirmed.speedup

    @property
    def half_width(self) -> float:
        """Of the ratio's 95 % interval, as a logarithm: those of two independent measurements add
        in quadrature, as standard errors do."""
        return hypot(*(_half_width(timing) for timing in (self.winner.confirmed, self.again)))

    @property
    def holds(self) -> bool:
        """Whether that interval holds 1."""
        return abs(log(self.ratio)) <= self.half_width


def _half_width(timing: Timing) -> float:
    return log(timing.speedup_high / timing.speedup_low) / 2


@app.command()
def take(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    file: Annotated[Path, typer.Argument(help="JSON lines that are added to.")],
) -> None:
    """Add a run's confirmed best kernels to FILE."""
    files = RunFiles(run)
    result = files.result()
    if result is None:
        raise UsageError(f"{run} has not ended: give its command again")
    config = files.config()
    own = {} if config.suite is None else {p.id: p for p in load_suite(config.suite)}
    with file.open("a") as out:
        for entry in result.problems:
            second = entry.confirmation
            if second is None or not second.holds or second.evaluation.timing is None:
                continue
            problem = own.get(entry.problem) or load_problem(entry.problem)
            source = files.kernel(second.candidate)
            candidate = Candidate(source=source, backend=config.backend)
            settings = confirming(settings_of(config))
            request = EvaluationRequest.of(problem, settings, candidate=candidate)
            winner = Winner(
                run=run.name,
                request=request,
                found=second.found,
                confirmed=second.evaluation.timing,
                device=second.evaluation.device,
            )
            out.write(winner.model_dump_json(exclude_defaults=True) + "\n")


@app.command()
def again(
    file: Annotated[Path, typer.Argument(help="What `take` wrote.")],
    out: Annotated[Path, typer.Argument(help="JSON lines; what is there is not judged again.")],
    device: Annotated[
        str | None, typer.Option(help="cpu or cuda:N. [default: as it was confirmed on]")
    ] = None,
) -> None:
    """Judge each kernel of FILE once more."""
    winners = list(_read(file, Winner))
    if device is not None:
        winners = [winner.on(device) for winner in winners]
    done = {each.name for each in _read(out, Again)} if out.exists() else set()
    devices = {winner.request.settings.device for winner in winners}
    confirmed_on = {winner.device for winner in winners}
    if confirmed_on != (here := {describe(device).name for device in devices}):
        raise UsageError(
            f"{file} was confirmed on {', '.join(sorted(confirmed_on))}; this is"
            f" {', '.join(sorted(here))}: use a machine with the same model"
        )
    with LocalExecutor(*sorted(devices)) as executor, out.open("a") as lines:
        for winner in winners:
            if winner.name in done:
                continue
            tried = attempt(executor, winner.request)
            found = tried.evaluation
            line = Again(
                name=winner.name,
                timing=found.timing if found else None,
                message=found.message if found else tried.failure,
                device=found.device if found else "",
            )
            lines.write(line.model_dump_json(exclude_defaults=True) + "\n")
            lines.flush()
            typer.echo(f"{winner.name}: {line.message}")


@app.command()
def report(
    file: Annotated[Path, typer.Argument(help="What `take` wrote.")],
    out: Annotated[Path, typer.Argument(help="What `again` wrote.")],
) -> None:
    """Print both figures of each kernel as Markdown, and how often they agree."""
    for line in lines(list(_read(file, Winner)), list(_read(out, Again))):
        typer.echo(line)


def lines(winners: Sequence[Winner], agains: Sequence[Again]) -> Iterator[str]:
    """The report."""
    timings = {each.name: each.timing for each in agains}
    yield "| kernel | search | confirmed | again | ratio | its interval holds 1 |"
    yield "|---|---|---|---|---|---|"
    pairs = []
    for winner in winners:
        if (timing := timings.get(winner.name)) is None:
            state = "not correct" if winner.name in timings else "not measured"
            first = f"{_x(winner.found)} | {_told(winner.confirmed)}"
            yield f"| {winner.name} | {first} | {state} | | |"
            continue
        pair = Pair(winner, timing)
        pairs.append(pair)
        yield (
            f"| {winner.name} | {_x(winner.found)} | {_told(winner.confirmed)} | {_told(timing)} "
            f"| {pair.ratio:.3f} | {'yes' if pair.holds else 'no'} |"
        )
    if not pairs:
        return
    holding = sum(pair.holds for pair in pairs)
    differing = _root_mean_square(log(pair.ratio) for pair in pairs)
    explained = _root_mean_square(pair.half_width / _NORMAL_95 for pair in pairs)
    searched = [log(w.found / w.confirmed.speedup) for w in winners if w.found]
    yield ""
    yield (
        f"The interval of the ratio holds 1 for {holding} of {len(pairs)} kernels "
        f"({100 * holding / len(pairs):.0f} %). Geometric mean of again over confirmed: "
        f"{exp(fmean(log(pair.ratio) for pair in pairs)):.3f}; of search over confirmed: "
        f"{exp(fmean(searched)):.3f}. Median half width of the interval: "
        f"{100 * median(pair.half_width for pair in pairs):.2g} %. Again differs from confirmed "
        f"by {100 * differing:.2g} % (root mean square), of which the intervals explain "
        f"{100 * explained:.2g} %."
    )


def _root_mean_square(values: Iterable[float]) -> float:
    return sqrt(fmean(value**2 for value in values))


def _told(timing: Timing) -> str:
    return f"{timing.speedup:.3g}x [{timing.speedup_low:.3g}, {timing.speedup_high:.3g}]"


def _x(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}x"


def _read(path: Path, kind: type[_Line]) -> Iterator[_Line]:
    try:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            try:
                yield kind.model_validate_json(line)
            except ValidationError as error:
                where = f"{path}: line {number} is none of {kind.__name__.lower()}'s"
                raise UsageError(f"{where}: {str(error).splitlines()[0]}") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench.winners"))
