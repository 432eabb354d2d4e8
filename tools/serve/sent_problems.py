"""Problems that clients send. Each has a judge of its own behind walls, kept by the text's hash."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field

from evaluator.builder.builder import Builder
from evaluator.hardware.device_lock import device_lock
from evaluator.hardware.devices import describe
from evaluator.ipc.switchboard import Switchboard
from evaluator.judge.workers.quiescence import tasks
from evaluator.settings import Settings
from evaluator.walls.survey import insist
from problems.cache_folder import cache_folder
from problems.errors import UsageError
from tools.serve.batch import one_line
from tools.serve.walled_judge import Asked

_MOST_ANSWER_BYTES = 4 * 2**20
_READ_S = 20.0
_STOP_S = 5.0
_LOOKS = 2
_FIELDS = ("evaluation", "diagnosis", "profile")


@dataclass(eq=False)
class _Kept:
    judge: Switchboard
    stopped: set[int] = field(default_factory=set)

    def let_go(self) -> None:
        for pid in self.stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.stopped.clear()

    def stop(self) -> None:
        """Nothing of it runs any more: what cannot be stopped is ended."""
        end, quiet, first = time.monotonic() + _STOP_S, 0, self.judge.pid
        while first is not None and quiet < _LOOKS:
            running = {t.process for t in tasks(first) if t.state not in "TtZX"} - {first}
            quiet = 0 if running else quiet + 1
            self.stopped |= running
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            if time.monotonic() > end:
                self.judge.hang_up()
                return


class SentProblems:
    """Their candidates are judged one at a time, on one device. Safe for several threads."""

    def __init__(self, settings: Settings, *, profiles: bool, most: int, limit_s: float) -> None:
        """At most `most` stay set up; a candidate may take `limit_s`, set-up included. Raises
        `UsageError` where this machine lacks a wall."""
        insist("--accept-problems")
        self._settings, self._profiles = settings, profiles
        self._most, self._limit_s = most, limit_s
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._changing, self._turn = threading.Lock(), threading.Lock()
        self._under_way = ""
        self._scratch = tempfile.TemporaryDirectory(prefix="refinery-")
        self._lent = cache_folder() / "lent"
        """What each judge would have to build and to measure first."""
        Builder(self._lent, cuda_arch=describe(settings.device).cuda_architecture).warm_up()
        with suppress(FileNotFoundError):
            shutil.copytree(
                cache_folder() / "ceilings", self._lent / "ceilings", dirs_exist_ok=True
            )

    def admit(self, name: str, problem: str) -> None:
        """Raises `UsageError` for a text that is no problem. Nothing of it is run."""
        with self._changing:
            if _hash(problem) in self._kept:
                return
        new = self._new()
        try:
            asked = Asked(name=name, problem=problem, settings=self._settings)
            if why := self._ask(new, asked, _READ_S).get("refused"):
                raise UsageError(str(why))
        except BaseException:
            new.judge.close()
            raise
        self._keep(problem, new)

    def verdict(self, name: str, problem: str, candidate: str) -> dict[str, object]:
        """The fields of an answer. Raises `InfrastructureError`. Between candidates nothing of the
        problem's runs."""
        asked = Asked(
            name=name,
            problem=problem,
            candidate=candidate,
            settings=self._settings,
            profiles=self._profiles,
        )
        with self._turn, device_lock(self._settings.device):
            self._under_way = _hash(problem)
            kept = self._keep(problem, self._new())
            kept.let_go()
            try:
                return self._ask(kept, asked, self._limit_s)
            finally:
                kept.stop()

    def _new(self) -> _Kept:
        settings = self._settings
        memory = settings.memory_limit_bytes if settings.device == "cpu" else 0
        return _Kept(
            Switchboard(
                "evaluator.walls.walled_service",
                self._scratch.name,
                str(self._lent),
                str(memory),
                "tools.serve.walled_judge",
                settings.device,
            )
        )

    def _keep(self, problem: str, new: _Kept) -> _Kept:
        """The judge that is kept for a problem: this one, or another that was there first."""
        with self._changing:
            kept = self._kept.setdefault(_hash(problem), new)
            self._kept.move_to_end(_hash(problem))
            idle = [name for name in self._kept if name != self._under_way]
            most = max(0, len(self._kept) - self._most)
            gone = [self._kept.pop(name) for name in idle[:most]]
        for each in (*gone, *([new] if new is not kept else [])):
            each.judge.close()
        return kept

    def _ask(self, kept: _Kept, asked: Asked, limit_s: float) -> dict[str, object]:
        """What it answers is a client's word: fields of an answer, but nothing else of them is
        known."""
        try:
            answer = kept.judge.ask(asked.model_dump_json().encode(), limit_s)
        except TimeoutError:
            return {"refused": one_line(f"problem {asked.name}: took longer than {limit_s:g} s")}
        if len(answer) <= _MOST_ANSWER_BYTES:
            with suppress(ValueError, RecursionError):
                found = json.loads(answer)
                if isinstance(found, dict) and "refused" in found:
                    return {"refused": one_line(str(found["refused"]))}
                if isinstance(found, dict):
                    return {name: found[name] for name in _FIELDS if name in found}
        return {"refused": one_line(f"problem {asked.name}: its judge gave no good answer")}

    def close(self) -> None:
        with self._changing:
            for kept in self._kept.values():
                kept.judge.close()
            self._kept.clear()
        self._scratch.cleanup()


def _hash(problem: str) -> str:
    return hashlib.sha256(problem.encode()).hexdigest()
