"""The templates that a prompt is made from: ours, each of which the user's own may replace."""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.settings_file import nearest
from problems.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent / "texts"
ENDING = ".md.j2"


@dataclass(frozen=True)
class Templates:
    """Read once a command, so that a file that is edited meanwhile changes nothing."""

    texts: Mapping[str, str]
    """By name, without the ending."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Of the templates that are the user's own."""

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits that change with the user's own templates; empty where none is."""
        if not self.files:
            return ""
        own = "\0".join(f"{name}\0{self.texts[name]}" for name in sorted(self.files))
        return hashlib.sha256(own.encode()).hexdigest()[:16]

    def render(self, name: str, **values: object) -> str:
        """The text of one template, without blank lines around it.

        Raises `UsageError` with file and line where a template of the user's can't be rendered.
        """
        try:
            return self._environment.get_template(name).render(values).strip("\n")
        except Exception as error:
            # A template may do anything that an expression can, and so fail in any way.
            if name not in self.files:
                raise
            raise UsageError(
                f"{self._where(name, error)}: the template can't be rendered: {error}"
            ) from error

    def _where(self, name: str, error: Exception) -> str:
        from jinja2 import TemplateSyntaxError

        file = str(self.files[name])
        if isinstance(error, TemplateSyntaxError):
            return f"{file} line {error.lineno}"
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == file]
        return f"{file} line {lines[-1]}" if lines else file

    @cached_property
    def _environment(self) -> Environment:
        from jinja2 import Environment, FunctionLoader, StrictUndefined

        def load(name: str) -> tuple[str, str, None]:
            return self.texts[name], str(self.files.get(name, FOLDER / f"{name}{ENDING}")), None

        return Environment(
            loader=FunctionLoader(load),
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )


@cache
def our_templates() -> Templates:
    """Those that come with this program."""
    return Templates({name: file.read_text(encoding="utf-8") for name, file in _in(FOLDER).items()})


def load_templates(folder: Path | None, expected: str | None = None) -> Templates:
    """Ours, with those found in `folder` in their place.

    Raises `UsageError` for a folder without any, a file whose name is none of ours, one that can't
    be read, and where the digest is not `expected`.
    """
    ours = our_templates()
    templates = ours if folder is None else _with_own(ours, folder)
    if expected is not None and templates.digest != expected:
        raise UsageError(
            f"--prompts {folder}: the templates have changed since this run was begun; restore"
            " them, choose another folder with -o, or start over with --redo"
        )
    return templates


def _with_own(ours: Templates, folder: Path) -> Templates:
    if not folder.is_dir():
        raise UsageError(f"--prompts {folder}: no such folder")
    known = [f"{name}{ENDING}" for name in ours.texts]
    for file in sorted(folder.iterdir()):
        if file.name not in known and not file.name.startswith("."):
            raise UsageError(
                f"--prompts: {file} is no template's name: {nearest(file.name, known)}"
            )
    own = _in(folder)
    if not own:
        raise UsageError(f"--prompts {folder}: no template is in it; known: {', '.join(known)}")
    try:
        texts = {name: file.read_text(encoding="utf-8") for name, file in own.items()}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--prompts {folder}: can't be read: {error}") from error
    return Templates({**ours.texts, **texts}, {name: file.resolve() for name, file in own.items()})


def _in(folder: Path) -> dict[str, Path]:
    return {
        file.name.removesuffix(ENDING): file
        for file in sorted(folder.iterdir())
        if file.name.endswith(ENDING) and not file.name.startswith(".")
    }
