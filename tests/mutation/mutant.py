"""Wrong versions of right kernels, drawn so that every rule meets every kernel that it fits."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.mutation import cpp_rules, output_rules, python_rules
from tests.mutation.edit import Edit, Kind, Rule
from tests.mutation.subject import Subject

RULES: tuple[Rule, ...] = (*cpp_rules.RULES, *python_rules.RULES, *output_rules.RULES)
_TURNS: tuple[Kind, ...] = ("cpp", "output", "cpp", "python")
"""Half of the mutants are C++: that is what candidates are written in."""


@dataclass(frozen=True)
class Mutant:
    """One subject with one edit."""

    subject: Subject
    rule: Rule
    edit: Edit

    @property
    def source(self) -> str:
        return self.edit.apply(self.subject.source)

    @property
    def shown(self) -> str:
        """What was changed, in one line."""
        return self.edit.shown(self.subject.source)

    @property
    def id(self) -> str:
        """Names the mutant for good: 12 hex digits of its problem and source."""
        text = f"{self.subject.reference}\0{self.source}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def of(subject: Subject, rule: Rule) -> list[Mutant]:
    """All mutants of one subject by one rule."""
    mutants = [Mutant(subject, rule, edit) for edit in rule.edits(subject)]
    return [m for m in mutants if m.source != subject.source]


def draw(subjects: Sequence[Subject], seed: int, limit: int) -> list[Mutant]:
    """`limit` mutants, or as many as there are, by turns of the kinds of rules.

    First one for every pair of a rule and a subject, in random order, then a second one, and so on.
    """
    lots = {kind: _lot(subjects, kind, seed) for kind in dict.fromkeys(_TURNS)}
    drawn: list[Mutant] = []
    known: set[str] = set()
    open_kinds = list(_TURNS)
    while open_kinds and len(drawn) < limit:
        for kind in list(open_kinds):
            mutant = next((m for m in lots[kind] if m.id not in known), None)
            if mutant is None:
                open_kinds = [k for k in open_kinds if k != kind]
            elif len(drawn) < limit:
                known.add(mutant.id)
                drawn.append(mutant)
    return drawn


def _lot(subjects: Sequence[Subject], kind: Kind, seed: int) -> Iterator[Mutant]:
    dice = random.Random(f"{seed} {kind}")
    pairs = [(s, r) for s in subjects for r in RULES if r.kind == kind]
    dice.shuffle(pairs)
    left: list[list[Mutant]] = []
    for subject, rule in pairs:
        mutants = of(subject, rule)
        random.Random(f"{seed} {subject.name} {rule.name}").shuffle(mutants)
        if mutants:
            left.append(mutants)
            yield mutants.pop()
    while left:
        left = [mutants for mutants in left if mutants]
        for mutants in left:
            yield mutants.pop()
