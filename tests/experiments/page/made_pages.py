"""Pages, and an evaluation whose log is given."""

from pathlib import Path

from experiments.page.collection import collect
from experiments.page.page import static_page
from experiments.page.sources import Sources


def page_of(target: Path, *sources: Path) -> Path:
    target.write_text(static_page(collect(Sources.at(sources))), encoding="utf-8")
    return target
