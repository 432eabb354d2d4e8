"""Failures of our machine. A candidate's failures are never exceptions: they are `Status`."""


class InfrastructureError(Exception):
    """Something on our side broke; the kernel is not to blame and the work may be retried."""


class JudgeDiedError(InfrastructureError):
    """The judge's process ended or stopped answering."""


class BugError(InfrastructureError):
    """One of our processes met an error that it does not know; it has ended, or begins anew."""


class UnknownFailureError(InfrastructureError):
    """An unknown error of the judge ended one evaluation; the process goes on."""


class ClusterError(InfrastructureError):
    """The Ray cluster can't be reached, has no judge left, or can't be used as it is."""


class DeviceError(InfrastructureError):
    """The device is missing, unhealthy, out of memory on our side, or held by another process."""


class AuditEndedError(InfrastructureError):
    """A turn came during the audit of a second verdict. What it had found is kept for the next."""


class UnusableReferenceError(InfrastructureError):
    """The problem's own reference cannot be run here (out of memory, unsupported operator)."""


class BuilderError(InfrastructureError):
    """The compiler could not be started, or the cache could not be written."""


class ProfilerError(InfrastructureError):
    """A profiler failed: this costs the turn its profile and nothing else."""


class KernelEndedError(ProfilerError):
    """The process of the kernel broke off under the profiler, which may be the kernel's doing."""


class IsolationError(InfrastructureError):
    """Strict isolation was asked for, and this machine lacks some of its walls."""


def named(name: str, message: str) -> InfrastructureError:
    """The failure that another of our processes reported by its class name."""
    kind = globals().get(name, InfrastructureError)
    if not (isinstance(kind, type) and issubclass(kind, InfrastructureError)):
        kind = InfrastructureError
    return kind(message)
