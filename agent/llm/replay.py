"""`replay/RUN`: answers from a recorded run, by problem, sample and turn."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from agent.llm.errors import ModelRefusedError
from agent.llm.provider import Place, ProviderAnswer
from agent.llm.recording import Recording, load_recording
from agent.record.completion import Message


class ReplayProvider:
    """Gives recorded answers, whatever the prompt says now. Tokens are as recorded; the cost is
    what giving them again costs: nothing."""

    arguments: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._recordings: dict[str, Recording] = {}
        self._lock = threading.Lock()

    def check(self, name: str) -> None:
        """Raise `UsageError` where there is no recording at `name`."""
        with self._lock:
            self._recordings[name] = load_recording(Path(name))

    def answer(
        self,
        name: str,
        messages: Sequence[Message],
        temperature: float | None,
        seed: int | None,
        place: Place,
    ) -> ProviderAnswer:
        """The answer of that place. Raises `ModelRefusedError` where none was recorded."""
        if name not in self._recordings:
            self.check(name)
        recording = self._recordings[name]
        found = recording.answers.get((place.problem, place.sample, place.turn))
        if found is None:
            missing = recording.missing(place.problem, place.sample, place.turn)
            raise ModelRefusedError(missing)
        return ProviderAnswer(
            text=found.text,
            model=found.model or "unnamed",
            usage=found.usage.model_copy(update={"cost_usd": 0.0}),
            reasoning=found.reasoning,
            finish_reason=found.finish_reason,
        )
