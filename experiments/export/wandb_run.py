"""`wandb`: runs as runs of Weights & Biases, a step a turn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from experiments.analysis.run_facts import LoadedRun, facts_of
from experiments.analysis.run_report import report_on
from experiments.export.recorded_run import RecordedRun
from problems.errors import UsageError

if TYPE_CHECKING:
    import wandb


class WandbSink:
    """Logs turns as they come, and the figures of `experiments.report` as the summary."""

    def __init__(self, project: str, folder: Path) -> None:
        """`folder`: where W&B makes its folder `wandb`. Raises `UsageError`."""
        self._project = project
        self._folder = folder
        self._open: dict[str, wandb.Run] = {}
        self._sent: dict[str, set[tuple[str, int, int]]] = {}
        self._latest: dict[str, RecordedRun] = {}
        self.turns = 0

    def update(self, run: RecordedRun) -> None:
        if run.id not in self._open:
            self._open[run.id], self._sent[run.id] = self._begin(run), set()
        self._latest[run.id] = run
        for turn in run.turns:
            key = (turn.record.problem, turn.record.sample, turn.record.turn)
            if key not in self._sent[run.id]:
                self._sent[run.id].add(key)
                # W&B has the run's name, the path is one of this machine, and a chart would show
                # NaN as a point.
                known = {k: v for k, v in turn.row.items() if k not in ("run", "path") and v == v}
                self._open[run.id].log({**known, "reward": turn.reward})
                self.turns += 1

    def close(self) -> None:
        for key, logged in self._open.items():
            table = self._latest[key].table
            figures = report_on(LoadedRun(table, facts_of(table))).figures
            logged.summary.update({f.figure: f.estimate.value for f in figures if f.estimate})
            logged.finish()
        self._open.clear()

    def _begin(self, run: RecordedRun) -> wandb.Run:
        import wandb

        facts = facts_of(run.table)
        skipped = {"run", "path", "hashes", "turns", "unbegun"}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            return wandb.init(
                project=self._project,
                dir=self._folder,
                id=run.id,
                name=run.name,
                config=facts.model_dump(exclude=skipped),
                reinit="create_new",
                save_code=False,
                # This machine is not the one that the run was made on.
                settings=wandb.Settings(
                    console="off",
                    silent=True,
                    host="",
                    disable_git=True,
                    x_disable_meta=True,
                    x_disable_stats=True,
                    x_disable_machine_info=True,
                    x_save_requirements=False,
                ),
            )
        except (wandb.Error, OSError) as error:
            raise UsageError(
                f"W&B can't begin a run ({' '.join(str(error).split())}); log in with"
                " `wandb login`, or set WANDB_MODE=offline"
            ) from error
