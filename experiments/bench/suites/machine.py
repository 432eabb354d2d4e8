"""The machine and the code that figures of the bench were taken with."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Sequence

from evaluator.hardware.cores import usable_cores
from evaluator.record import Record

_PACKAGES = ("torch", "triton", "pydantic")


class Machine(Record):
    """What a reader of a figure will want to know of where it was taken."""

    devices: tuple[str, ...]
    """Their names, one each."""
    cores: int
    load_average: float
    """Over the minute before the measurement began."""
    commit: str | None
    """Of the checkout; `+changes` behind it where tracked files differed."""
    versions: dict[str, str]

    def __str__(self) -> str:
        devices = self.devices[0]
        if len(self.devices) > 1:
            devices = f"{len(self.devices)} of {devices}"
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return (
            f"{devices}, {self.cores} cores, load average {self.load_average:.2f}; {versions};"
            f" commit {self.commit or 'unknown'}"
        )


def machine(devices: Sequence[str]) -> Machine:
    """The present one with these devices, `cpu` or `cuda:N`; raises `UsageError` for others."""
    from agent.loop.environment import revision
    from evaluator.hardware.devices import describe

    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return Machine(
        devices=tuple(describe(device).name for device in devices),
        cores=usable_cores(),
        load_average=round(os.getloadavg()[0], 2),
        commit=revision(),
        versions=versions,
    )
