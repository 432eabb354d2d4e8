"""Hardware counters of all kernels of one forward call, by Nsight Compute."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO

from evaluator.builder.toolchain import find_tool, printed_by
from evaluator.collect.collected import Collected, KernelTrace
from evaluator.collect.counted_launches import COUNTED
from evaluator.collect.nsight import read_report
from evaluator.collect.nsight.ncu_metrics import SAMPLES, SOURCE, names
from evaluator.collect.nsight.read_report import REPORT
from evaluator.collect.target.broker import Broker
from evaluator.collect.target.program import Program
from evaluator.collect.target.target import Target, read_request
from evaluator.errors import ProfilerError
from evaluator.hardware.device_lock import device_lock_if_free, ncu_lock
from evaluator.hardware.devices import DeviceInfo
from evaluator.walls.environment import clean_environment, python_module
from problems.cache_folder import cache_folder, keep

_LOOK_S = 0.1
_MOST_KERNELS = 200
"""A forward call with more launches to be counted is cut there."""


class _Ahead:
    """A target for one device that waits, with a context as soon as the device is free for one."""

    def __init__(self, prefix: Sequence[str], device: str) -> None:
        self._device = device
        self._taken = threading.Event()
        self.target = Target("ncu", prefix)
        self._making = threading.Thread(target=self._make_context, daemon=True)
        self._making.start()

    def _make_context(self) -> None:
        made = False
        while not made and self.target.waits and not self._taken.wait(_LOOK_S):
            if self.target.is_asleep:
                with device_lock_if_free(self._device) as made:
                    if made:
                        self.target.make_context(self._device)

    def take(self) -> Target:
        self._taken.set()
        self._making.join()
        return self.target


class NcuSession:
    """Many profiles, one after the other: holds a target for each device that is started ahead.

    Several threads may use it. A process that profiles several candidates uses it; for a single
    profile it would start one in vain. A target that waits needs memory of the host and of its
    device, but no processor time and no lock. It ends with its owner, whatever ends that one.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Ahead] = {}
        self._lock = threading.Lock()

    def take(self, prefix: Sequence[str], device: str) -> Target | None:
        """A target that was started for this device with these very options, which is the caller's
        from now on. None where there is none, or it died or has others."""
        with self._lock:
            ahead = self._waiting.pop(device, None)
        if ahead is None:
            return None
        target = ahead.take()
        if target.waits and target.prefix == tuple(prefix):
            return target
        target.close()
        return None

    def prepare(self, prefix: Sequence[str], device: str) -> None:
        """Start one more, unless there is one.

        Not while its candidate runs: what that one started is killed with its session first.
        """
        with self._lock:
            if device not in self._waiting:
                self._waiting[device] = _Ahead(prefix, device)

    def close(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for ahead in waiting.values():
            ahead.take().close()


def collect_ncu(
    folder: Path,
    device: DeviceInfo,
    *,
    timeout_s: float,
    session: NcuSession | None = None,
) -> Collected:
    """Profile the request in `folder`, which names `device`; the report stays there as `REPORT`.

    In a session its waiting target is used, and the next is started once the candidate has ended.
    `timeout_s` counts from when the device could be asked for. Raises `ProfilerError` where `ncu`
    is not installed, may not read counters, or fails.
    """
    command, unknown = ncu_command(device.name)
    name = read_request(folder).settings.device
    waiting = session.take(command, name) if session is not None else None
    with _reader(command[0], folder) as (reader, begin_reading):
        # Started before the lock is held: while it waits for that one, it imports.
        with closing(waiting or Target("ncu", command)) as target:
            asked = time.monotonic()
            with ncu_lock(device), Broker(name) as broker:
                turn_s = time.monotonic() - asked
                collected = target.run(folder, broker, report=REPORT, timeout_s=timeout_s)
        if session is not None:
            # No candidate runs any more, and reading the report takes a second.
            with suppress(OSError):
                session.prepare(command, name)
        if not (folder / REPORT).is_file():
            raise ProfilerError("ncu profiled no kernel")
        begin = time.monotonic()
        begin_reading.close()
        text = reader.finish(timeout_s, whole=True)
    trace = KernelTrace.model_validate_json(text)
    missing = tuple(dict.fromkeys((*unknown, *trace.missing)))
    collected = collected.after({"turn": turn_s, "import": time.monotonic() - begin})
    return collected.model_copy(update={"gpu": trace.model_copy(update={"missing": missing})})


@contextmanager
def _reader(ncu: str, folder: Path) -> Iterator[tuple[Program, IO[bytes]]]:
    """A process that imports what it needs, and reads the report once the pipe is closed."""
    command = python_module(read_report.__name__, ncu, str(folder))
    reads, writes = os.pipe()
    with os.fdopen(writes, "wb") as pipe:
        try:
            reader = Program(
                command,
                folder,
                clean_environment(folder),
                apart=True,
                name="reading ncu's report",
                stdin=reads,
            )
        finally:
            os.close(reads)
        try:
            yield reader, pipe
        finally:
            reader.end()


def ncu_command(device_name: str) -> tuple[list[str], list[str]]:
    """What the target is started under, and quantities that this `ncu` can't count.

    The same for all requests on one kind of device. Raises `ProfilerError` without `ncu`.
    """
    ncu = find_tool("ncu")
    if ncu is None:
        raise ProfilerError("ncu is not installed")
    wanted, unknown = names(known_metrics(Path(ncu), device_name))
    options = ["--export", REPORT, "--force-overwrite", "--section", SOURCE]
    # Compilers and the like that it starts run faster without ncu's libraries in them.
    options += ["--target-processes", "application-only"]
    options += ["--profile-from-start", "off", "--clock-control", "none", "--apply-rules", "no"]
    options += ["--kernel-id", f":::^({'|'.join(map(str, COUNTED))})$"]
    options += ["--launch-count", str(_MOST_KERNELS), "--metrics", ",".join((*wanted, SAMPLES))]
    return [ncu, *options], unknown


def known_metrics(ncu: Path, device_name: str) -> frozenset[str] | None:
    """Base names of the metrics that this `ncu` knows for the devices here, asked once and cached.

    None where the question fails: then everything is asked for, and what is missing shows later.
    """
    stamp = f"{ncu.resolve()} {ncu.stat().st_mtime_ns} {device_name}"
    cache = cache_folder() / "ncu_metrics.json"
    try:
        stored = json.loads(cache.read_text())
        if stored["stamp"] == stamp:
            return frozenset(stored["names"])
    except (OSError, ValueError, KeyError):
        pass  # never asked, or by another version: ask again
    found = parse_query(printed_by(str(ncu), "--query-metrics") or "")
    if not found:
        return None
    keep(cache, json.dumps({"stamp": stamp, "names": sorted(found)}))
    return found


def parse_query(text: str) -> frozenset[str]:
    """Metric names from what `ncu --query-metrics` prints: the first word of each row."""
    return frozenset(re.findall(r"^([a-z0-9]+__[a-z0-9_]+)\s", text, re.MULTILINE))
