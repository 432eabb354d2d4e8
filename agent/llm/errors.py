"""Why no completion came. None of these is the kernel's fault."""

from __future__ import annotations

from agent.record.completion import Usage
from evaluator.errors import InfrastructureError
from problems.errors import UsageError


class ModelError(InfrastructureError):
    """No answer came from the model. Its text is one line, without any key."""

    usage: Usage | None = None
    """What unusable answers were billed before it came to this; None where nothing was."""


class ModelUnavailableError(ModelError):
    """The provider kept failing, or asked to wait longer than we do. Trying later may help."""

    def __init__(self, message: str, *, attempts: int = 1) -> None:
        super().__init__(message)
        self.attempts = attempts
        """Requests that were sent."""


class ModelRefusedError(ModelError, UsageError):
    """The provider refused the request for good, and will refuse the next one too.

    A wrong key, a model that isn't there, a parameter that it doesn't take: the user can fix it,
    so command lines show it as they show any `UsageError`.
    """


class PromptRefusedError(ModelError):
    """The provider refuses this prompt (too long, or against its content policy), not others."""


class ModelInterruptedError(ModelError):
    """The run is stopping: the wait for an answer was given up."""
