"""`replay/RUN`: answers from a recorded run, by problem, sample and turn."""

from __future__ import annotations

import threading
from pathlib import Path

from agent.llm.errors import ModelRefusedError
from agent.llm.recording import Recording, load_recording
from agent.record.completion import Completion, CompletionRequest, ModelClient, Tell, unheard


def replay_client(name: str, stop: threading.Event) -> ModelClient:
    """The client for the recording at `name`. Raises `UsageError` where there is none."""
    return ReplayClient(load_recording(Path(name)))


class ReplayClient:
    """Gives recorded answers, whatever the prompt says now. Tokens are as recorded; the cost is
    what giving them again costs: nothing."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def complete(
        self, request: CompletionRequest, tell: Tell = unheard, so_far: Tell = unheard
    ) -> Completion:
        """The answer of that place. Raises `ModelRefusedError` where none was recorded."""
        place = (request.problem, request.sample, request.turn)
        found = self._recording.answers.get(place)
        if found is None:
            raise ModelRefusedError(self._recording.missing(*place))
        return Completion(
            text=found.text,
            reasoning=found.reasoning,
            finish_reason=found.finish_reason,
            model_asked=request.model,
            model_answered=found.model or "unnamed",
            usage=found.usage.model_copy(update={"cost_usd": 0.0}),
            seconds=0.0,
        )
