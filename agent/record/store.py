"""The run directory as its one writer sees it: what is known is kept, and nothing is done twice."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TextIO

from agent.config.run_config import RunConfig
from agent.record.claim import claim
from agent.record.completion import Completion, CompletionRequest, Usage
from agent.record.confirmation import Confirmation
from agent.record.durable import (
    append_durably,
    append_whole,
    disk_errors_told,
    sweep,
    write_durably,
    write_once,
    write_whole,
)
from agent.record.progress import contenders_of
from agent.record.proof import Proof
from agent.record.result import RunResult
from agent.record.run_files import RunFiles, StoredCompletion, reading
from agent.record.turn import PendingTurn, TurnRecord, Work, read_pending_turn
from agent.record.turn_log import TurnKey, TurnLog, key_of
from evaluator.evaluation import Candidate
from evaluator.rival import Rival
from tools.profiling.profile_report import Profile


def text_hash(text: str) -> str:
    """SHA-256, first 16 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def request_hash(request: CompletionRequest) -> str:
    """Hash of everything that decides an answer; where it belongs is part of it."""
    return text_hash(json.dumps(request.model_dump(mode="json"), sort_keys=True))


class RunStore(RunFiles, AbstractContextManager["RunStore"]):
    """Writes a run directory. Safe to call from several threads, one thread a turn; made by
    `open_store`, which holds the lock until `close`."""

    def __init__(self, path: Path, lock: TextIO) -> None:
        super().__init__(path)
        self._lock = lock
        self._best_lock = threading.Lock()
        self._kept: dict[str, str] = {}
        self._confirmations: dict[str, list[Confirmation]] = {}
        # Of turns in progress, as they lie on the disk: each is asked for several times.
        self._pending: dict[TurnKey, PendingTurn] = {}
        self._answers: dict[str, StoredCompletion] = {}
        self.log = TurnLog(path)
        sweep(path)

    def close(self) -> None:
        self._lock.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_environment(self, facts: Mapping[str, object]) -> None:
        merged = {**self.environment(), **facts}
        text = json.dumps(merged, indent=2, sort_keys=True, default=str) + "\n"
        write_durably(self.path / "environment.json", text)

    def save_result(self, result: RunResult) -> None:
        text = result.model_dump_json(indent=2)
        write_durably(self.path / "result.json", text + "\n")

    # The turn in progress.

    def _pending_path(self, key: TurnKey) -> Path:
        return self.path / "pending" / f"{key}.json"

    def pending_turn(self, key: TurnKey) -> PendingTurn | None:
        """What is known of a turn that is not recorded yet; None where nothing is."""
        known = self._pending.get(key)
        # The record is there before the pending turn goes: another thread finds one of them.
        if known is None and key not in self.log:
            known = self._pending_on_disk(key)
            if known is not None:
                self._pending[key] = known
        return known

    def _pending_on_disk(self, key: TurnKey) -> PendingTurn | None:
        """What an earlier command left; what tore is taken out, so that lines can follow."""
        path = self._pending_path(key)
        if not path.exists():
            return None
        lines = path.read_bytes()
        turn = read_pending_turn(lines)
        if turn is None:
            path.unlink()
        elif not lines.endswith(b"\n"):
            write_whole(path, turn.model_dump_json() + "\n")
        return turn

    def pending_turns(self) -> Iterator[tuple[TurnKey, PendingTurn]]:
        """All turns in progress; what is left of turns that are recorded by now is removed."""
        for path in sorted((self.path / "pending").glob("*.json")):
            with reading(path, "remove it"):
                problem, sample, number = path.stem.rsplit(".", 2)
                key = TurnKey(problem, int(sample), int(number))
            if key in self.log:
                path.unlink()
            elif (turn := self.pending_turn(key)) is not None:
                yield key, turn

    def journal(self, key: TurnKey, turn: PendingTurn) -> PendingTurn:
        """Write down how far a turn has come; returns `turn`."""
        # What a power cut takes of it can be done again; a bill can't be asked for again.
        append = append_durably if turn.wasted != Usage(cost_usd=0.0) else append_whole
        append(self._pending_path(key), turn.model_dump_json())
        self._pending[key] = turn
        return turn

    @contextmanager
    def in_flight(self, key: TurnKey, turn: PendingTurn, work: Work) -> Iterator[PendingTurn]:
        """Mark that `work` has begun, for as long as the block lasts.

        Yields the turn to build on: it counts one repetition more if a kill had interrupted this
        work before. The block ends by journaling its outcome; an exception takes the mark away.
        """
        again = turn.in_flight is work
        marked = turn.updated(in_flight=work, repeated=turn.repeated + int(again))
        self.journal(key, marked)
        unmarked = marked.updated(in_flight=None)
        try:
            yield unmarked
        except BaseException:
            self.journal(key, unmarked)
            raise

    def forget(self, key: TurnKey) -> None:
        """As if the turn in progress had never been answered."""
        turn = self._pending.pop(key, None)
        with disk_errors_told(self.path):
            if turn is not None:
                self.completion_path(turn.completion).unlink(missing_ok=True)
                self._answers.pop(turn.completion, None)
            self._pending_path(key).unlink(missing_ok=True)

    # What a turn leaves behind.

    def save_prompt(self, text: str) -> str:
        prompt = text_hash(text)
        write_once(self.prompt_path(prompt), text)
        return prompt

    def save_completion(self, request: CompletionRequest, prompt: str, answer: Completion) -> str:
        """Keep an answer before anything is done with it; returns its hash."""
        completion = request_hash(request)
        stored = StoredCompletion(
            problem=request.problem,
            sample=request.sample,
            turn=request.turn,
            prompt=prompt,
            temperature=request.temperature,
            seed=request.seed,
            arguments=request.arguments,
            completion=answer,
        )
        write_durably(self.completion_path(completion), stored.model_dump_json(indent=2) + "\n")
        self._answers[completion] = stored
        return completion

    def completion(self, completion: str) -> StoredCompletion:
        return self._answers.get(completion) or super().completion(completion)

    def has_completion(self, completion: str) -> bool:
        """That answer has been paid for and is here."""
        return completion in self._answers or self.completion_path(completion).exists()

    def save_kernel(self, candidate: Candidate) -> str:
        write_once(self.kernel_path(candidate.hash), candidate.source)
        return candidate.hash

    def save_profile(self, candidate: str, profile: Profile) -> None:
        path = self.profile_folder(candidate) / "profile.json"
        write_whole(path, profile.model_dump_json(indent=2) + "\n")

    def record(self, record: TurnRecord) -> None:
        """Write a turn down, once; it is no longer pending."""
        self.log.append(record)
        with disk_errors_told(self.path):
            self._pending_path(key_of(record)).unlink(missing_ok=True)
        self._pending.pop(key_of(record), None)
        self._answers.pop(record.completion, None)

    def save_rival(self, problem: str, rival: Rival) -> None:
        write_durably(self.rival_path(problem), rival.model_dump_json(indent=2) + "\n")

    def confirmations(self, problem: str) -> list[Confirmation]:
        if problem not in self._confirmations:
            found = super().confirmations(problem)
            path = self.confirmations_path(problem)
            if path.exists() and not path.read_bytes().endswith(b"\n"):
                write_whole(path, "".join(f"{each.model_dump_json()}\n" for each in found))
            self._confirmations[problem] = found
        return self._confirmations[problem]

    def save_confirmation(self, confirmation: Confirmation) -> None:
        known = self.confirmations(confirmation.problem)
        append_durably(
            self.confirmations_path(confirmation.problem),
            confirmation.model_dump_json(),
        )
        known.append(confirmation)

    def best(self, problem: str) -> TurnRecord | None:
        """The turn with the best kernel: the one chosen of those that were judged again; before,
        that of the search which has not failed a second verdict."""
        # What a kernel's last verdict states has no part in the choice.
        judged = {each.candidate: each for each in reversed(self.confirmations(problem))}
        if not judged:
            return self.log.progress(problem).best
        found = self.contenders(problem)
        if not all(turn.candidate in judged for turn in found):
            return found[0]

        def choice(turn: TurnRecord) -> float:
            timing = judged[turn.candidate or ""].evaluation.timing
            return timing.speedup if timing else 0.0

        return max(found, key=choice, default=None)

    def contenders(self, problem: str) -> list[TurnRecord]:
        """Those that are to be judged again, or were, and have not failed."""
        struck = {each.candidate for each in self.confirmations(problem) if not each.holds}
        return contenders_of(t for t in self.log.of(problem) if t.candidate not in struck)

    def keep_best(self, problem: str) -> TurnRecord | None:
        """Write a problem's best kernel to `best/`; returns its turn."""
        with self._best_lock:
            best = self.best(problem)
            candidate = best.candidate if best is not None else None
            if candidate is not None and candidate != self._kept.get(problem):
                path, source = self.best_path(problem), self.kernel(candidate)
                if not path.exists() or path.read_text(encoding="utf-8") != source:
                    self.save_proof(problem, None)
                    write_whole(path, source)
                self._kept[problem] = candidate
            return best

    def save_proof(self, problem: str, proof: Proof | None) -> None:
        """Write down what is proven of the kernel in `best/`; None: nothing is any more."""
        path = self.proof_path(problem)
        if proof is not None:
            write_whole(path, proof.model_dump_json(indent=2) + "\n")
            return
        with disk_errors_told(self.path):
            path.unlink(missing_ok=True)


def open_store(config: RunConfig, *, redo: bool = False) -> RunStore:
    """Open `config.output` for writing, made if need be; `redo` empties it of an earlier run first.

    A run found there goes on; its `config.yaml` takes over what may change (budget, workers).
    Raises `UsageError` where the folder is in use, holds something else, or a run made with other
    settings, or can't be written: nothing has been written over then.
    """
    lock = claim(config, redo=redo)
    try:
        return RunStore(config.output, lock)
    except BaseException:
        lock.close()
        raise
