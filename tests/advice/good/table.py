"""`python -m tests.advice.good.table FOLDER`: what the good kernels are advised, as Markdown.

Under the present rules.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.advice.good.claim import Claim
from tests.advice.good.label import Label
from tests.advice.good.own import KERNELS
from tests.advice.good.published import PUBLISHED
from tests.advice.good.told import claims
from tests.advice.replay import Replay
from tests.advice.result import Result, stored
from tools.advice.diagnosis import Diagnosis, diagnose
from tools.advice.remainder import remainder


@dataclass(frozen=True)
class Advised:
    """One good kernel, its label and what it is advised."""

    name: str
    label: Label
    source: str
    result: Result

    @cached_property
    def figures(self) -> dict[str, float]:
        """Of its profile."""
        return Replay(self.source, self.result).figures

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """Under the present rules."""
        return diagnose(self.figures)

    @property
    def claims(self) -> frozenset[Claim]:
        """All that it is told to do."""
        return frozenset[Claim]().union(*map(claims, self.diagnosis.advice))

    @property
    def misled(self) -> frozenset[Claim]:
        """What it is told and must not be."""
        return self.claims & self.label.must_not


def rows(found: list[Advised]) -> Iterator[str]:
    """A line a kernel, and how many are misled."""
    yield "| kernel | time (us) | of the bound | bottleneck | advice | misleads |"
    yield "|---|---|---|---|---|---|"
    for each in found:
        rules = ", ".join(f"`{advice.rule}`" for advice in each.diagnosis.advice)
        left = rules or remainder(each.diagnosis.bottleneck, each.figures)
        share = each.figures.get("sol_fraction")
        yield (
            f"| {each.name} | {each.result.latency_us or 0:.1f}"
            f" | {'' if share is None else f'{100 * share:.0f} %'} | {each.diagnosis.bottleneck}"
            f" | {left} | {', '.join(sorted(each.misled))} |"
        )
    misled = sum(bool(each.misled) for each in found)
    yield ""
    yield f"Of {len(found)} good kernels {misled} are told what their labels rule out."


def advised(folder: Path) -> list[Advised]:
    """The kernels that have been profiled. No published one has a kernel of its own."""
    kernels = [(k.name, k.label, k.source) for k in KERNELS]
    kernels += [(k.name, k.label, "") for k in PUBLISHED]
    results = stored(folder)
    return [
        Advised(name, label, source, result)
        for name, label, source in kernels
        if (result := results.get((name, "good"))) is not None and result.collected is not None
    ]


def table(folder: Path) -> str:
    """Of a folder of results, as Markdown."""
    return "\n".join(rows(advised(folder))) + "\n"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    print(table(parser.parse_args().folder), end="")


if __name__ == "__main__":
    main()
