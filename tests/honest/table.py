"""`python -m tests.honest.table`: writes the table of the corpus into `docs/honest.md`."""

from __future__ import annotations

from pathlib import Path

from tests.honest.corpus import corpus

DOCUMENT = Path(__file__).parents[2] / "docs" / "honest.md"
_BEGIN, _END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def document_with_table() -> str:
    """The document with the corpus's present table in its place."""
    before, _, rest = DOCUMENT.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    rows = ["| kernel | what looks risky |", "| --- | --- |"]
    for kernel in [*corpus("cpu"), *corpus("gpu")]:
        rows.append(f"| `{kernel.place}/{kernel.name}` | {kernel.risk} |")
    return before + _BEGIN + "\n".join(rows) + "\n" + _END + after


def main() -> None:
    """Write it."""
    DOCUMENT.write_text(document_with_table())


if __name__ == "__main__":
    main()
