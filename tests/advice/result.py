"""What one kernel of the set came to on a GPU, as it is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from agent.record.archive import unpacked
from evaluator.record import Record

Side = Literal["planted", "mended"]
Role = Side | Literal["good"]


class Result(Record):
    """One kernel, judged and profiled."""

    case: str
    side: Role
    candidate: str
    """Hash of the source that ran."""
    evaluation: dict[str, Any] | None = None
    """As the judge gave it, without what compiling said."""
    profile: dict[str, Any] | None = None
    """As `tools.profile` gave it then, with the advice of that day's rules."""
    collected: dict[str, Any] | None = None
    """The raw figures."""
    error: str = ""
    """Why there is no profile; of ours, not the kernel's."""
    seconds: dict[str, float]
    """`build`, `judge` and `profile`."""

    @property
    def status(self) -> str:
        """The judge's, or `error`."""
        return str(self.evaluation["status"]) if self.evaluation else "error"

    @property
    def latency_us(self) -> float | None:
        """As the judge measured it."""
        timing = (self.evaluation or {}).get("timing")
        return float(timing["latency_us"]) if timing else None


def stored(folder: Path) -> dict[tuple[str, Role], Result]:
    """All results in a folder, or in an archive of it, by case and side."""
    folder = unpacked(folder)
    found = [Result.model_validate_json(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return {(result.case, result.side): result for result in found}
