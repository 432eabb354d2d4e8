"""A session: a coding agent is the loop, and asks for each step by a tool.

It is a run of strategy `agent`. A source that the agent sends takes the place of a model's answer:
it goes through the same graph as one turn. What a tool answers is what the next prompt would say.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pydantic import ValidationError

from agent.config.feedback_spec import MEASURED, Component, FeedbackSpec
from agent.config.settings_file import nearest
from agent.loop.deps import Deps
from agent.loop.graph import Machine
from agent.loop.next_prompt import check_problem, feedback_on, memory_before, prompt_with
from agent.loop.nodes import kernel_in, profile_of, scores_of, with_retries
from agent.loop.problem_run import ProblemRun
from agent.loop.problem_turns import Ledger, ProblemTurns, exhausted
from agent.prompt.feedback import KERNEL_TITLES, execution_words
from agent.prompt.measured import ADVICE_TITLE
from agent.prompt.prompt import limits_left, render
from agent.prompt.section import Section
from agent.record import events, figures
from agent.record.completion import Completion, CompletionRequest, Tell, Usage, unheard
from agent.record.progress import best_of
from agent.record.result import RunResult, Spent, Stop
from agent.record.turn import TurnRecord, TurnSeconds
from agent.record.turn_log import TurnKey, key_of
from agent.session import tools
from agent.session.tools import MOST_CALLS, TOOLS, Answer
from evaluator.errors import InfrastructureError, KernelEndedError
from problems.errors import UsageError
from tools.profiling.profile_facts import count_words

_SPENT = {
    Stop.CALLS: "all evaluations are used",
    Stop.SECONDS: "the wall time is over",
    Stop.DEVICE_SECONDS: "the device time is used",
}
_PROGRESS = {
    events.ModelAnswered: "the kernel is built and judged",
    events.Evaluated: "the kernel is judged",
    events.JudgingAgain: "the best kernel is judged again",
    events.Waiting: "our side failed, and tries again",
}


@dataclass(frozen=True)
class Submission:
    """The agent as a model client: its answer is there already."""

    source: str
    usage: Usage
    seconds: float
    agent: str

    def complete(
        self, request: CompletionRequest, tell: Tell = unheard, so_far: Tell = unheard
    ) -> Completion:
        return Completion(
            text=self.source,
            model_asked=request.model,
            model_answered=self.agent,
            usage=self.usage,
            seconds=self.seconds,
        )


NOTHING_SENT = Submission("", Usage(), 0.0, "")


@dataclass(frozen=True)
class _Progress(events.Display):
    view: events.Display
    tell: Tell

    def notice(self, event: events.Event) -> None:
        if words := _PROGRESS.get(type(event)):
            self.tell(words)
        if not isinstance(event, events.ProblemStarted):  # it comes when a problem is finished
            self.view.notice(event)


class Session:
    """Answers the tools. Safe to use from several threads: calls on one problem wait for each
    other."""

    def __init__(self, problems: Sequence[Deps]) -> None:
        self._problems = {deps.problem.id: deps for deps in problems}
        self._locks = {name: threading.Lock() for name in self._problems}
        self._writing = threading.Lock()
        self._free = {tool: threading.Semaphore(MOST_CALLS) for tool in TOOLS}
        any_of_them = problems[0]
        self._config, self._store = any_of_them.config, any_of_them.store
        self._clock, self._stop = any_of_them.clock, any_of_them.stop
        self._machine = Machine(1.0, profiles=False)
        self._since = {name: self._clock() for name in self._problems if self._next(name).turn}
        """Since then the agent has had what it needs for its next kernel of a problem."""
        before = self._store.result()
        self._finished = {each.problem: each for each in (before.problems if before else ())}

    def call(
        self, tool: str, arguments: Mapping[str, object], tell: Tell = unheard, agent: str = ""
    ) -> Answer:
        """What a tool answers. `tell` hears how far it is; `agent` is what the client calls itself.
        Raises nothing."""
        if tool not in TOOLS:
            return Answer(f"There is no such tool; {nearest(tool, TOOLS)}", "refused")
        if not self._free[tool].acquire(blocking=False):
            return Answer("Too many calls are under way; wait.", "refused")
        try:
            given = TOOLS[tool].model_validate(dict(arguments))
            return Answer(self._answer(given, tell, agent))
        except ValidationError as error:
            first = error.errors()[0]
            where = "".join(filter(str.isprintable, ".".join(map(str, first["loc"]))))[:100]
            return Answer(f"{tool} can't take this: {where}: {first['msg']}.", "refused")
        except UsageError as mistake:
            return Answer(str(mistake), "refused")
        except InfrastructureError as error:
            said = str(error) or type(error).__name__
        except Exception as error:  # noqa: BLE001  (our own bug: shown in full where we run)
            if not self._stop.is_set():
                traceback.print_exc()
            said = f"an error of its own ({type(error).__name__})"
        finally:
            self._free[tool].release()
        words = f"Kernel Refinery failed, not you: {said}. Nothing was charged; try the same again."
        return Answer(words, "failed")

    def _answer(self, given: tools.Tool, tell: Tell, agent: str) -> str:
        wanted = given.problem if isinstance(given, tools.OfProblem) else ""
        named = [wanted] if wanted else list(self._problems)
        if wanted not in ("", *self._problems):
            raise UsageError(f"There is no such problem; {nearest(wanted, self._problems)}")
        if isinstance(given, tools.ListTool | tools.StatusTool):
            details = isinstance(given, tools.StatusTool)
            return "\n".join(line for each in named for line in self._status(each, details))
        if len(named) > 1:
            raise UsageError(f"Name the problem: {', '.join(named)}.")
        (problem,) = named
        if isinstance(given, tools.ReadTool):
            return self._read(problem, tell)
        with self._alone(problem, tell) as began:
            match given:
                case tools.EvaluateTool():
                    return self._evaluate(problem, given, began, tell, agent)
                case tools.ProfileTool():
                    return self._profile(problem, given.turn, tell)
                case _:
                    return self._finish(problem, tell)

    @contextmanager
    def _alone(self, problem: str, tell: Tell) -> Iterator[float]:
        """While no other call works on it; what an earlier command began is done first. Yields when
        this call's time came."""
        if self._locks[problem].locked():
            tell("another call works on this problem")
        with self._locks[problem]:
            began = self._clock()
            self._since.setdefault(problem, began)
            pending = self._store.pending_turn(self._next(problem))
            if pending is not None and self._store.has_completion(pending.completion):
                self._take_turn(self._begun(problem, tell))
            yield began

    def _begun(self, problem: str, tell: Tell, sent: Submission = NOTHING_SENT) -> Deps:
        """What one call works with."""
        deps, ledger = self._problems[problem], Ledger()
        ledger.charge(problem, self._store.log.progress(problem).spent)
        turns = ProblemTurns(
            self._config, problem, self._store, ledger, deps.stop, deps.turns.changed
        )
        watch = _Progress(deps.watch, tell)
        return replace(deps, ledger=ledger, turns=turns, watch=watch, client=sent)

    def _take_turn(self, deps: Deps) -> None:
        """Take the next turn through the graph. Where our side breaks, it was never sent; where
        this command ends, the next one takes it."""
        key = deps.turns.claim()
        if key is None:
            raise InfrastructureError("the session takes no turn now")
        deps.turns.close()
        try:
            self._machine.walk(deps, key)
        except Exception:
            if not deps.stop.is_set():
                self._store.forget(key)
            raise

    def _next(self, problem: str) -> TurnKey:
        return TurnKey(problem, 0, len(self._store.log.places(problem)))

    def _thought(self, problem: str, until: float) -> float:
        return max(0.0, until - self._since.get(problem, until))

    def _spent(self, problem: str, until: float) -> Spent:
        known = self._store.log.progress(problem).spent
        return known + Spent(seconds=TurnSeconds(model=self._thought(problem, until)))

    def _why_closed(self, problem: str, until: float, **instead: int) -> str:
        """Why nothing more is evaluated; empty: it is. `instead`: of what was spent."""
        if problem in self._finished:
            return "it is finished"
        spent = self._spent(problem, until).model_copy(update=instead)
        limit = exhausted(self._config, spent)
        return _SPENT[limit] if limit else ""

    def _left(self, problem: str) -> str:
        """`left: 3 evaluations, 1 profile, 120 s`."""
        if problem in self._finished:
            return "finished"
        config, spent = self._config, self._spent(problem, self._clock())
        left = [count_words(max(0, config.budget - spent.calls), "evaluation")]
        if config.shown_feedback.needs_profile:
            profiles = config.budget_profiles - self._profiles_made(problem)
            left.append(count_words(max(0, profiles), "profile"))
        return f"left: {', '.join([*left, *limits_left(config, spent)])}"

    def _profiles_made(self, problem: str) -> int:
        return sum(turn.is_profiled for turn in self._store.log.of(problem))

    def _status(self, problem: str, details: bool) -> Iterator[str]:
        turns, ended = self._store.log.of(problem), self._finished.get(problem)
        yield f"{problem}: {count_words(len(turns), 'turn')}; {self._left(problem)}"
        best = ended.best if ended else best_of(turns)
        if details and best is not None and Component.EXECUTION in self._config.shown_feedback:
            verdict = (ended and ended.verdict) or best.evaluation
            yield f"  best: {figures.place(best)}, {figures.outcome(verdict)}"

    def _read(self, problem: str, tell: Tell) -> str:
        deps, key = self._problems[problem], self._next(problem)
        tell("the problem is checked")
        with_retries(lambda: check_problem(deps))
        self._since.setdefault(problem, self._clock())
        memory = memory_before(deps, key)
        shown, _ = feedback_on(deps, key, memory)
        last = key._replace(turn=min(key.turn, self._config.budget - 1))
        text = prompt_with(deps, last, memory, shown).text
        why = self._why_closed(problem, self._clock())
        how = (
            f"Nothing more is evaluated: {why}."
            if why
            else "Send the file itself; it needs no fence."
        )
        return f"{problem}; {self._left(problem)}. {how}\n\n{text}"

    def _evaluate(
        self, problem: str, given: tools.EvaluateTool, began: float, tell: Tell, agent: str
    ) -> str:
        turn, head = self._sent_before(problem, given.source), "Sent before, so it costs nothing. "
        if turn is None:
            if why := self._why_closed(problem, began):
                raise UsageError(f"{problem} is not evaluated any more: {why}.")
            usage = Usage(
                prompt_tokens=given.prompt_tokens,
                completion_tokens=given.completion_tokens,
                reasoning_tokens=None,
                cached_tokens=None,
            )
            sent = Submission(given.source, usage, self._thought(problem, began), agent[:100])
            turn, head = self._next(problem).turn, ""
            self._take_turn(self._begun(problem, tell, sent))
            self._since[problem] = self._clock()
        deps, key = self._problems[problem], TurnKey(problem, 0, turn + 1)
        shown, _ = feedback_on(deps, key, memory_before(deps, key))
        # The agent has what it has sent; read shows it.
        shown = tuple(each for each in shown if each.title not in KERNEL_TITLES)
        return _text(f"{head}Turn {turn} of {problem} is judged; {self._left(problem)}.", shown)

    def _sent_before(self, problem: str, source: str) -> int | None:
        """The turn of the same kernel; of a text that holds none, of the same text."""
        _, kernel = kernel_in(self._problems[problem], source)
        wanted = kernel.hash if kernel else None
        for turn in self._store.log.of(problem):
            said = None if wanted else self._store.completion(turn.completion).completion.text
            if turn.candidate == wanted and said in (None, source):
                return turn.turn
        return None

    def _profile(self, problem: str, wanted: int | None, tell: Tell) -> str:
        deps, key = self._problems[problem], self._next(problem)
        memory, feedback = memory_before(deps, key), self._config.shown_feedback
        if not feedback.needs_profile:
            raise UsageError(f"This session gives no profiles: its feedback is {feedback}.")
        turns = {turn.turn: turn for turn in self._store.log.of(problem)}
        record = memory.base if wanted is None else turns.get(wanted)
        if record is None or not record.is_correct:
            raise UsageError("Only a correct kernel is profiled, and this turn has none.")
        if not record.is_profiled:
            record = self._profiled(deps, record, tell)
        if record.profile is None:
            left = self._left(problem)
            return f"Turn {record.turn}: its process broke off under the profiler; {left}."
        measured = FeedbackSpec(tuple(i for i in feedback.items if i.component in MEASURED))
        shown, _ = feedback_on(deps, key, replace(memory, base=record, last=record), measured)
        return _text(f"Turn {record.turn} of {problem} is profiled; {self._left(problem)}.", shown)

    def _profiled(self, deps: Deps, record: TurnRecord, tell: Tell) -> TurnRecord:
        problem = record.problem
        why = self._why_closed(problem, self._clock(), calls=0)
        if self._profiles_made(problem) >= self._config.budget_profiles:
            why = "all profiles are used"
        if why:
            raise UsageError(f"{problem} is not profiled any more: {why}.")
        assert record.candidate is not None
        tell("the kernel is profiled")
        began, profile, ended = self._clock(), None, ""
        try:
            profile = profile_of(deps, record.candidate, record.evaluation)
        except KernelEndedError as error:
            ended = str(error)
        took = self._clock() - began
        self._since[problem] = min(self._clock(), self._since[problem] + took)  # the agent waited
        advised = record.prompt_ledger and ADVICE_TITLE in record.prompt_ledger.tokens
        profiled = record.updated(
            profile=profile,
            profile_error=ended,
            advice_scores=scores_of(deps, key_of(record), profile) if advised and profile else (),
            seconds=record.seconds.model_copy(
                update={"profile": profile.seconds if profile and profile.seconds else took}
            ),
        )
        self._store.log.add_profile(profiled)
        if profile is not None:
            self._store.save_profile(record.candidate, profile)
        return profiled

    def _finish(self, problem: str, tell: Tell) -> str:
        if problem not in self._finished:
            run = ProblemRun(self._begun(problem, tell), self._machine)
            run.finish()
            result = run.result()
            if result.error:
                raise InfrastructureError(result.error)
            with self._writing:
                self._finished[problem] = result.model_copy(update={"stop": Stop.FINISHED})
                known = tuple(self._finished.values())
                self._store.save_result(RunResult(run=self._store.path, problems=known))
        found = self._finished[problem]
        tells = Component.EXECUTION in self._config.shown_feedback
        lines = [
            f"Turn {each.turn}, {each.what}: {figures.judged_again(each)}"
            for each in self._store.confirmations(problem)
            if tells and (each.chooses or not each.holds)
        ]
        if found.best is None or found.verdict is None:
            return "\n".join([*lines, f"{problem} is finished without a correct kernel."])
        lines.append(f"{problem} is finished. The kernel of turn {found.best.turn} is the best.")
        lines.append(f"file: {self._store.best_path(problem).resolve()}")
        if tells:
            which = "second verdict" if found.confirmation else "verdict"
            words = execution_words(found.verdict, "", self._store.rival(problem))
            lines += [f"Its {which}:", words]
        return "\n".join(lines)


def _text(words: str, shown: Sequence[Section]) -> str:
    parts = [render("section", title=each.title, text=each.text) for each in shown]
    return "\n\n".join([words, *parts])
