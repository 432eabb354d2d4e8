"""`python -m experiments.bench.bound_check`: is a bound ever beaten, and how near come libraries?

Times every problem of a suite as PyTorch runs it, and plain large copies and matrix products,
against floor and bound. Rows are appended to a file as they are made, and what the file holds
already is not measured again, so that a long measurement can be made in parts.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evaluator.command.command_line import serve
from evaluator.record import Record

if TYPE_CHECKING:
    import torch

    from evaluator.judge.bounds.work import Work
    from problems.problem import Problem

_CALLS = 9
_LEAD_CYCLES = 100_000
_SLOW_S = 20.0
"""No further call of something that has taken so long."""
_COPY_BYTES = {"cpu": 2**28, "cuda": 2**32}
_PRODUCTS = {"cpu": 1024, "cuda": 8192}
Kind = Literal["problem", "copy", "matmul"]
REACHED: dict[Kind, float] = {"copy": 0.85, "matmul": 0.6}
"""What large copies and products should reach of their bound. Power keeps the clock of products
below the one that published rates are for."""
Side = Literal["eager", "compile"]


class Row(Record):
    """One thing timed, caches flushed before each call. Times in microseconds, of one call."""

    device: str
    kind: Kind
    name: str
    """Of a problem, else the arithmetic."""
    side: Side = "eager"
    least_us: float = 0.0
    median_us: float = 0.0
    floor_us: float | None = None
    bound_us: float | None = None
    bytes_us: float | None = None
    """The part of the bound that is about bytes."""
    error: str = ""
    """Why there are no times."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Two rows of the same key would measure the same."""
        return self.device, self.kind, self.name, self.side

    @property
    def share(self) -> float | None:
        """Of the bound that the fastest call reached; above 1 it was beaten."""
        return self.bound_us / self.least_us if self.bound_us and self.least_us else None


def table(rows: Sequence[Row]) -> str:
    """Markdown: every row, the nearest to its bound first, and below it what does not hold."""
    timed = sorted((row for row in rows if row.share is not None), key=lambda row: -_share(row))
    lines = ["| what | side | least us | bound us | floor us | of the bound |"]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: |"]
    for row in timed:
        floor = "-" if row.floor_us is None else f"{row.floor_us:.1f}"
        lines.append(
            f"| {row.kind} {row.name} | {row.side} | {row.least_us:.1f} | {row.bound_us:.1f} "
            f"| {floor} | {100 * _share(row):.0f} % |"
        )
    lines += ["", *(f"- {fault}" for fault in faults(rows))]
    return "\n".join(lines).rstrip()


def faults(rows: Sequence[Row]) -> Iterator[str]:
    """A sentence for each promise about the bounds that these rows break, or could not test."""
    for row in rows:
        what = f"{row.kind} {row.name} ({row.side})"
        if row.error:
            yield f"{what} was not timed: {row.error}"
        elif row.floor_us is not None and row.least_us < row.floor_us:
            yield f"{what} is below the floor"
        elif _share(row) > 1.0:
            yield f"{what} beats the bound: {100 * _share(row):.1f} %"
        elif _share(row) < REACHED.get(row.kind, 0.0):
            yield f"{what} reaches {100 * _share(row):.1f} % of the bound"


def _share(row: Row) -> float:
    return row.share or 0.0


class Bounded:
    """One device, on which modules are timed against their bounds."""

    def __init__(self, device: str) -> None:
        import torch

        from evaluator.hardware.devices import cache_bytes, describe, peaks
        from evaluator.judge.bounds.ceilings import measure_ceilings

        self.device = torch.device(device)
        self.name = describe(device).name
        self._cache_bytes = cache_bytes(device)
        self._peaks = peaks(self.name)
        self._ceilings = measure_ceilings(device)
        size = max(2 * self._cache_bytes, 16 * 2**20)
        self._flush = torch.zeros(size, dtype=torch.uint8, device=device)

    def rows(self, problems: Sequence[Problem], *, compiled: bool) -> Iterator[tuple[Row, Any]]:
        """What there is to measure: a row without times, and what times it."""
        for dtype in ("float32", "float16"):
            yield self._row("copy", dtype), lambda row, dtype=dtype: self._copy(row, dtype)
        kinds = ("float32", "tfloat32", "float16", "bfloat16")
        for kind in kinds if self.device.type == "cuda" else kinds[:1]:
            yield self._row("matmul", kind), lambda row, kind=kind: self._product(row, kind)
        sides: tuple[Side, ...] = ("eager", "compile") if compiled else ("eager",)
        for side in sides:
            for problem in problems:
                row = self._row("problem", problem.id, side)
                yield row, lambda row, problem=problem: self._problem(row, problem)

    def _row(self, kind: Kind, name: str, side: Side = "eager") -> Row:
        return Row(device=self.name, kind=kind, name=name, side=side)

    def _copy(self, row: Row, dtype: str) -> Row:
        import torch

        from evaluator.judge.bounds.work import Work

        count = _COPY_BYTES[self.device.type] // getattr(torch, dtype).itemsize
        source = torch.ones(count, dtype=getattr(torch, dtype), device=self.device)
        target = torch.empty_like(source)
        size = source.nbytes
        work = Work(2 * size, size, size, bytes_out=size)
        return self._timed(row, work, lambda: target.copy_(source))

    def _product(self, row: Row, kind: str) -> Row:
        import torch

        from evaluator.judge.bounds.work import Work

        dtype = getattr(torch, kind.replace("tfloat32", "float32"))
        size = _PRODUCTS[self.device.type]
        a, b = (torch.randn(size, size, device=self.device).to(dtype) for _ in range(2))
        out = torch.empty_like(a)
        work = Work(3 * a.nbytes, 2 * a.nbytes, a.nbytes, {kind: 2.0 * size**3}, bytes_out=a.nbytes)
        usual = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = kind == "tfloat32"
        try:
            return self._timed(row, work, lambda: torch.mm(a, b, out=out))
        finally:
            torch.backends.cuda.matmul.allow_tf32 = usual

    def _problem(self, row: Row, problem: Problem) -> Row:
        import torch

        from evaluator.judge.bounds.work import count_work
        from evaluator.judge.problem.reference import Reference
        from evaluator.settings import Precision
        from problems.sizes import SizeClass

        size = SizeClass.CPU if self.device.type == "cpu" else SizeClass.GPU
        reference = Reference(problem.reference(size), self.device, Precision.FP32)
        values = reference.fresh_inputs(1)
        work = count_work(reference.model, values)
        model = torch.compile(reference.model) if row.side == "compile" else reference.model

        def call() -> object:
            with torch.no_grad():
                return model(*values)

        return self._timed(row, work, call)

    def _timed(self, row: Row, work: Work, call: Callable[[], object]) -> Row:
        from evaluator.judge.bounds.speed_of_light import bounds

        found = bounds(work, self._peaks, self._ceilings, self._cache_bytes)
        begin = time.monotonic()
        call()
        times: list[float] = []
        while len(times) < _CALLS and (not times or time.monotonic() < begin + _SLOW_S):
            times.append(self._one_us(call))
        return row.model_copy(
            update={
                "least_us": min(times),
                "median_us": median(times),
                "floor_us": found.floor_us,
                "bound_us": found.bound_us,
                "bytes_us": found.bytes_us,
            }
        )

    def _one_us(self, call: Callable[[], object]) -> float:
        import torch

        self._flush.add_(1)
        if self.device.type == "cpu":
            begin = time.perf_counter()
            call()
            return 1e6 * (time.perf_counter() - begin)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        # Launching runs ahead of the device, which is the most favourable that can happen.
        torch.cuda._sleep(_LEAD_CYCLES)
        start.record()
        call()
        stop.record()
        stop.synchronize()
        return 1e3 * float(start.elapsed_time(stop))


def measure(
    device: str, problems: Sequence[Problem], out: Path, *, compiled: bool, limit_s: float
) -> None:
    """Append a row to `out` for all that it does not hold, until the time is up."""
    import torch

    from evaluator.hardware.device_lock import device_lock

    torch.backends.cudnn.allow_tf32 = False
    known = {row.key for row in read(out)}
    deadline = time.monotonic() + limit_s
    with device_lock(device), out.open("a") as file:
        context = Bounded(device)
        for row, timed in context.rows(problems, compiled=compiled):
            if row.key in known:
                continue
            if time.monotonic() > deadline:
                print("the time is up; the same command goes on from here", file=sys.stderr)
                return
            try:
                done = timed(row)
            except Exception as error:  # noqa: BLE001  (a problem that can't be timed is reported)
                done = row.model_copy(update={"error": f"{type(error).__name__}: {error}"[:200]})
            file.write(done.model_dump_json() + "\n")
            file.flush()
            share = "-" if done.share is None else f"{100 * done.share:.1f} % of the bound"
            print(f"{done.kind} {done.name} {done.side}: {done.error or share}", file=sys.stderr)
            _release(done, context.device)


def _release(row: Row, device: torch.device) -> None:
    """Let go of the memory that a row took."""
    import torch

    if row.side == "compile":
        torch.compiler.reset()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def read(path: Path) -> list[Row]:
    """The rows of a file; none where there is no file yet."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [Row.model_validate_json(line) for line in lines]


app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def main(
    out: Annotated[Path, typer.Option(help="File of rows; what it lacks is appended to it.")],
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    suite: Annotated[
        Path | None, typer.Option(help="A folder of problems in KernelBench's format.")
    ] = None,
    compiled: Annotated[
        bool, typer.Option("--compile", help="torch.compile as well, after all the others.")
    ] = False,
    limit_s: Annotated[
        float, typer.Option("--limit-s", help="Begin nothing after so many seconds; 0: table only.")
    ] = 3600.0,
) -> None:
    """Time a suite against its bounds; a Markdown table on stdout. Exit code 1: one was beaten."""
    from evaluator.hardware.device_choice import resolve_device
    from evaluator.hardware.sole_device import see_only
    from problems.loader import load_suite

    chosen = see_only(resolve_device(device))
    if limit_s > 0:
        measure(chosen, load_suite(suite), out, compiled=compiled, limit_s=limit_s)
    rows = read(out)
    print(table(rows))
    raise typer.Exit(1 if any(_share(row) > 1.0 for row in rows) else 0)


if __name__ == "__main__":
    sys.exit(serve(app, "python -m experiments.bench.bound_check"))
