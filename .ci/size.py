"""Print how large the project is, and fail if a part is over its limit (`limits.toml`)."""

import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

HERE = Path(__file__).parent
DATA = (".json", ".jsonl", ".csv")  # what was recorded is no code


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=HERE.parent, stdout=-1, check=True)
    paths = [HERE.parent / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def text_of(path: Path) -> str:
    """The text of a file; empty for a binary one."""
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""


def lines(path: Path) -> int:
    return 0 if path.suffix in DATA else text_of(path).count("\n")


MEASURES = {
    "lines": lines,
    "words": lambda path: len(text_of(path).split()),
    "files": lambda path: 1,
    "kilobytes": lambda path: path.lstat().st_size / 1000,
}


def size(part: dict[str, object], paths: list[Path]) -> int:
    def matches(name: str, patterns: object) -> bool:
        return any(fnmatch(name, pattern) for pattern in patterns)

    names = {path: str(path.relative_to(HERE.parent)) for path in paths}
    measure = MEASURES[part["unit"]]
    return round(
        sum(
            measure(path)
            for path, name in names.items()
            if matches(name, part["files"]) and not matches(name, part.get("without", []))
        )
    )


def main() -> int:
    paths = tracked_files()
    over = []
    for part in tomllib.loads((HERE / "limits.toml").read_text())["part"]:
        now = size(part, paths)
        print(f"{part['name']:<45} {now:>7,} of {part['at_most']:>7,} {part['unit']}")
        if now > part["at_most"]:
            over.append(part["name"])
    if over:
        print(f"over the limit: {', '.join(over)}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
