"""Problems that clients send. Each has a judge of its own behind walls, kept by client and text."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from evaluator.builder.builder import Builder
from evaluator.errors import InfrastructureError
from evaluator.hardware.device_lock import device_lock
from evaluator.hardware.devices import describe
from evaluator.ipc.switchboard import Switchboard
from evaluator.judge.workers.quiescence import tasks
from evaluator.settings import Settings
from evaluator.walls.survey import insist
from problems.cache_folder import cache_folder
from tools.serve.batch import one_line
from tools.serve.walled_judge import Asked

_MOST_ANSWER_BYTES = 2**18
"""It may wait for its client to read it."""
_STOP_S, _OURS = 5.0, 2
_FIELDS = ("evaluation", "diagnosis", "profile")


@dataclass(eq=False)
class _Kept:
    judge: Switchboard
    stopped: bool = False

    def let_go(self) -> None:
        if self.stopped and (first := self.judge.pid) is not None:
            os.kill(first, signal.SIGUSR2)
        self.stopped = False

    def stop(self) -> None:
        """Nothing of it runs any more: what cannot be stopped is ended."""
        if (first := self.judge.pid) is None:
            return
        os.kill(first, signal.SIGUSR1)
        end, self.stopped = time.monotonic() + _STOP_S, True
        # Two are ours, outside and inside its namespace.
        while len({t.process for t in tasks(first) if t.state not in "TtZX"}) > _OURS:
            if time.monotonic() > end:
                self.judge.hang_up()
                return


class SentProblems:
    """Their candidates are judged one at a time, on one device. Safe for several threads."""

    def __init__(self, settings: Settings, *, profiles: bool, most: int, limit_s: float) -> None:
        """At most `most` stay set up; a candidate may take `limit_s`, set-up included. Raises
        `UsageError` where this machine lacks a wall. Nothing of a problem is run or read here."""
        insist("--accept-problems")
        self._settings, self._profiles = settings, profiles
        # Of one user, all would share what may be under way in messages.
        self._most, self._limit_s = most if os.geteuid() == 0 else 1, limit_s
        self._kept: dict[str, _Kept] = {}
        """The one that was used last comes last."""
        self._turn = threading.Lock()
        self.scratch = tempfile.TemporaryDirectory(prefix="refinery-")
        self._lent = cache_folder() / "lent"
        """What each judge would have to build and to measure first."""
        Builder(self._lent, cuda_arch=describe(settings.device).cuda_architecture).warm_up()
        with suppress(FileNotFoundError):
            shutil.copytree(
                cache_folder() / "ceilings", self._lent / "ceilings", dirs_exist_ok=True
            )

    def verdict(self, client: str, name: str, problem: str, candidate: str) -> dict[str, object]:
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
            kept = self._keep(client, problem)
            kept.let_go()
            try:
                return self._ask(kept, asked)
            except InfrastructureError as error:
                said = f"the judge of a client's problem: {type(error).__name__}: {error}"
                raise InfrastructureError(said) from None
            finally:
                kept.stop()

    def _new(self) -> _Kept:
        settings = self._settings
        memory = settings.memory_limit_bytes if settings.device == "cpu" else 0
        return _Kept(
            Switchboard(
                "evaluator.walls.walled_service",
                self.scratch.name,
                str(self._lent),
                str(memory),
                "tools.serve.walled_judge",
                settings.device,
            )
        )

    def _keep(self, client: str, problem: str) -> _Kept:
        """The judge of a client's problem, as the last one of those that are kept."""
        key = hashlib.sha256(json.dumps([client, problem]).encode()).hexdigest()
        kept = self._kept.pop(key) if key in self._kept else self._new()
        self._kept[key] = kept
        while len(self._kept) > self._most:
            self._kept.pop(next(iter(self._kept))).judge.close()
        return kept

    def _ask(self, kept: _Kept, asked: Asked) -> dict[str, object]:
        """What it answers is a client's word: fields of an answer, but nothing else of them is
        known."""
        try:
            answer = kept.judge.ask(
                asked.model_dump_json().encode(), self._limit_s, _MOST_ANSWER_BYTES
            )
        except TimeoutError:
            said = f"problem {asked.name}: took longer than {self._limit_s:g} s"
            return {"refused": one_line(said)}
        with suppress(ValueError, RecursionError):
            found = json.loads(answer)
            if isinstance(found, dict) and "refused" in found:
                return {"refused": one_line(str(found["refused"]))}
            if isinstance(found, dict):
                return {name: found[name] for name in _FIELDS if name in found}
        return {"refused": one_line(f"problem {asked.name}: its judge gave no good answer")}

    def close(self) -> None:
        for kept in self._kept.values():
            kept.judge.close()
        self._kept.clear()
        self.scratch.cleanup()
