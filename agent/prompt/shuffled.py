"""The other kernel that `shuffled:` shows, as if it were the one to refine.

Preferred is a kernel of another problem of this run, then another kernel of the same problem; where
none was measured yet, a recorded one that comes with this program. The run's seed and the turn
decide which. With several workers it also depends on which turns are recorded by then; the record
names the kernel, and a resumed turn keeps its prompt.
"""

from __future__ import annotations

import random
from pathlib import Path

from agent.config.feedback_spec import Component, Control
from agent.config.run_config import RunConfig
from agent.prompt.measured import Subject
from agent.record.turn import ShuffledKernel, TurnRecord
from agent.record.turn_log import TurnKey, TurnLog, key_of
from evaluator.evaluation import Timing
from evaluator.record import Record
from tools.profiling.profile_report import Profile

FOLDER = Path(__file__).parent / "fixtures"


class Fixture(Record):
    """A kernel that was measured when these files were made: `fixtures/<tier>.yaml`."""

    source: str
    """The recorded run that it is from."""
    problem: str
    kernel: str
    """Hash."""
    timing: Timing
    profile: Profile


def choose(
    config: RunConfig, log: TurnLog, key: TurnKey, base: TurnRecord
) -> tuple[ShuffledKernel, Subject] | None:
    """The kernel that shuffled components of the turn `key` show, in place of `base`; None where
    nothing is shuffled, or nothing is known of `base` that could be shown."""
    shuffled = config.shown_feedback.only(Control.SHUFFLED)
    profiled = shuffled.needs_profile
    timed = Component.DISTANCE in shuffled
    if not (profiled and base.profile is not None) and not (timed and base.evaluation.timing):
        return None
    draw = random.Random(f"{config.seed} {key}")
    tier = base.profile.rung if profiled and base.profile is not None else None
    others = sorted(set(config.problems) - {key.problem})
    draw.shuffle(others)
    for problem in [*others, key.problem]:
        fit = [
            turn
            for turn in log.of(problem)
            # Of this problem only turns before that one, so that the choice can be made again.
            if (problem != key.problem or turn.turn < key.turn)
            and turn.candidate not in (None, base.candidate)
            and turn.evaluation.timing is not None
            and turn.evaluation.timing.sol_fraction is not None
            and (tier is None or (turn.profile is not None and turn.profile.rung is tier))
        ]
        if fit:
            return _of_turn(draw.choice(fit))
    return _of_fixture(base)


def _of_turn(turn: TurnRecord) -> tuple[ShuffledKernel, Subject]:
    assert turn.candidate is not None
    tier = turn.profile.rung if turn.profile else None
    shuffled = ShuffledKernel(kernel=turn.candidate, turn=str(key_of(turn)), rung=tier)
    return shuffled, Subject(turn.profile, turn.evaluation.timing)


def _of_fixture(base: TurnRecord) -> tuple[ShuffledKernel, Subject]:
    """Of the profiler tier of `base`, where there is one."""
    import yaml

    files = sorted(FOLDER.glob("*.yaml"))
    found = [Fixture.model_validate(yaml.safe_load(file.read_text())) for file in files]
    tier = base.profile.rung if base.profile else None
    chosen = next((each for each in found if each.profile.rung is tier), found[0])
    shuffled = ShuffledKernel(
        kernel=chosen.kernel, specimen=chosen.problem, rung=chosen.profile.rung
    )
    return shuffled, Subject(chosen.profile, chosen.timing)
