"""The `-c` layers: YAML files and `key=value` items, merged into one mapping of settings.

Files come first, in their order, then the items, whatever their order on the command line; giving
one key leaves every other one alone. Keys are those of a run's `config.yaml`, so that file can be
given again; an option's own name (`level`, `baseline`, `model-args.top_p`) is understood too.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from problems.errors import UsageError

Scalar = str | int | float | bool | None


def read_settings(
    items: Iterable[str], names: Mapping[str, str], before: Mapping[str, object] = {}
) -> dict[str, object]:
    """Merge `-c` items into one mapping, over the settings `before`.

    `names`: all that may be given, each with its key: keys themselves, and options' own names.

    Raises `UsageError` for a file that can't be read, an item that is neither, an unknown key.
    """
    files: list[Path] = []
    assignments: list[tuple[str, str]] = []
    for item in items:
        key, equals, value = item.partition("=")
        if equals and not Path(item).is_file():
            assignments.append((key.strip(), value))
        else:
            files.append(Path(item).expanduser())
    merged = dict(before)

    def add(layer: Mapping[str, object], where: str) -> None:
        merge(merged, layer, names, where)

    for file in files:
        add(_read_file(file), str(file))
    for key, value in assignments:
        head, dot, tail = key.partition(".")
        where = f"-c {key}={value}"
        if dot:
            add({head: {tail: scalar(value)}}, where)
        else:
            add({head: _yaml(value, where)}, where)
    return merged


def scalar(text: str) -> Scalar:
    """A typed value from a command line: `0.9`, `4096`, `true` and `null` as in JSON, else text.

    Not as in YAML 1.1, where `off` and `no` are booleans: `reasoning_effort=off` is a word.
    """
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    return value if value is None or isinstance(value, str | int | float | bool) else text


def parse_assignments(items: Iterable[str], option: str) -> dict[str, Scalar]:
    """`key=value` items of `option` as a mapping of typed values; raises `UsageError`."""
    values: dict[str, Scalar] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{option} {item!r} is not of the form key=value")
        values[key.strip()] = scalar(value)
    return values


def nearest(name: str, known: Collection[str]) -> str:
    """`did you mean 'budget'?`, or all that is known where nothing is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"


def merge(
    merged: dict[str, object],
    layer: Mapping[str, object],
    names: Mapping[str, str],
    where: str,
) -> None:
    """Add the settings of `layer` to `merged`, under their keys; null takes one out.

    Raises `UsageError` for an unknown key, which `where` says the place of.
    """
    for key, value in layer.items():
        name = names.get(dashless := key.replace("-", "_"))
        if name is None:
            raise UsageError(f"unknown key {key!r} in {where}: {nearest(dashless, names)}")
        before = merged.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[name] = {**before, **value}
        elif value is None:
            merged.pop(name, None)
        else:
            merged[name] = value


def _read_file(path: Path) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"-c {path}: no such file (for a single setting: -c key=value)") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"-c {path}: can't be read: {error}") from error
    content = _yaml(text, f"-c {path}")
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise UsageError(f"-c {path}: a settings file is a YAML mapping of keys to values")
    return content


def _yaml(text: str, where: str) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UsageError(f"{where}: not valid YAML{line}: {problem}") from error
