"""Failures of our machine. A candidate's failures are never exceptions: they are `Status`."""


class InfrastructureError(Exception):
    """Something on our side broke; the kernel is not to blame and the work may be retried."""


class JudgeDiedError(InfrastructureError):
    """The judge's process ended or stopped answering."""


class DeviceError(InfrastructureError):
    """The device is missing, unhealthy, out of memory on our side, or held by somebody else."""


class UnusableReferenceError(InfrastructureError):
    """The problem's own reference cannot be run here (out of memory, unsupported operator)."""


class BuilderError(InfrastructureError):
    """The compiler could not be started, or the cache could not be written."""


class ProfilerError(InfrastructureError):
    """A profiler failed: this costs the turn its profile and nothing else."""


class IsolationError(InfrastructureError):
    """Strict isolation was asked for, and this machine lacks some of its walls."""
