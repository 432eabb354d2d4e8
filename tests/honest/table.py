"""`python -m tests.honest.table`: writes the list of the corpus into `docs/honest.md`."""

from __future__ import annotations

from pathlib import Path

from tests.honest.corpus import corpus

DOCUMENT = Path(__file__).parents[2] / "docs" / "honest.md"
_BEGIN, _END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def document_with_table() -> str:
    """The document with the corpus's present list in its place."""
    before, _, rest = DOCUMENT.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    kernels = [*corpus("cpu"), *corpus("gpu")]
    rows = [f"* `{kernel.place}/{kernel.name}`: {kernel.risk}" for kernel in kernels]
    return before + _BEGIN + "\n".join(rows) + "\n" + _END + after


def main() -> None:
    """Write it."""
    DOCUMENT.write_text(document_with_table())


if __name__ == "__main__":
    main()
