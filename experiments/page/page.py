"""The page as one HTML file, which opens without a network and runs no script but its own."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from itertools import groupby

from agent.record.run_files import RunFiles
from experiments.page.collection import Collected
from experiments.page.sources import read_trajectories
from experiments.page.turn_details import turn_block
from problems.errors import UsageError

SCRIPTS = (
    "dom.js",
    "source.js",
    "words.js",
    "virtual_table.js",
    "charts.js",
    "code.js",
    "overview.js",
    "turn_list.js",
    "trajectory.js",
    "page.js",
)
"""In this order they make one script."""


def static_page(collected: Collected) -> str:
    return _rendered(
        collected.page.title, [packed(collected.page.model_dump_json()), *_blocks(collected)]
    )


def live_page(title: str) -> tuple[str, str]:
    """The page that asks for its contents as they come, and its policy."""
    return _rendered(title, []), _policy(live=True)


def packed(text: str) -> str:
    """Gzip and base64: small, and nothing in it can end a script element."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode()


def plotly() -> str:
    """The text of plotly.js. Raises `UsageError` where the package is missing."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise UsageError(
            "the page's charts need plotly; install it with: pip install plotly"
        ) from error
    return str(get_plotlyjs())


def _rendered(title: str, contents: Iterable[str]) -> str:
    from jinja2 import Environment

    live = not contents
    template = Environment(autoescape=True).from_string(_asset("page.html.j2"))
    return template.render(
        title=title,
        policy=_policy(live=live),
        style=_asset("page.css"),
        script=_script(),
        plotly=packed(plotly()),
        live=live,
        contents=contents,
    )


def _policy(*, live: bool) -> str:
    """What a browser may do with the page: run its scripts by their hashes, and load nothing."""
    parts = [
        "default-src 'none'",
        f"script-src {_hash(_script())} {_hash(plotly())}",
        # Plotly makes an empty style element and fills it by rules.
        f"style-src {_hash(_asset('page.css'))} {_hash('')}",
        # Plotly saves a chart as a picture through these.
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join([*parts, *["connect-src 'self'"] * live])


def _blocks(collected: Collected) -> Iterator[str]:
    """The details, in the order of the page's trajectories, which are sorted by run."""
    homes: dict[str, int] = {}
    of_page = enumerate(collected.page.trajectories)
    for run, trajectories in groupby(of_page, key=lambda entry: entry[1].run):
        folder = collected.folders[run]
        records = read_trajectories(folder)
        for place, trajectory in trajectories:
            turns = records[trajectory.problem]
            yield packed(turn_block(place, turns, RunFiles(folder), homes).model_dump_json())


def _script() -> str:
    return "\n".join(["'use strict';", *map(_asset, SCRIPTS)])


@cache
def _asset(name: str) -> str:
    return (files("experiments.page") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
