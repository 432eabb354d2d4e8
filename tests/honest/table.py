"""`python -m tests.honest.table`: writes the table of the corpus into `docs/honest.md`."""

from __future__ import annotations

from pathlib import Path

from tests.honest.corpus import HonestKernel, corpus

DOCUMENT = Path(__file__).parents[2] / "docs" / "honest.md"
_BEGIN, _END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def document_with_table() -> str:
    """The document with the corpus's present table in its place."""
    before, _, rest = DOCUMENT.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    rows = ["| kernel | written in | problem | what looks risky |", "| --- | --- | --- | --- |"]
    for kernel in [*corpus("cpu"), *corpus("gpu")]:
        rows.append(
            f"| `{kernel.place}/{kernel.name}` | {_language(kernel)} | {kernel.problem}"
            f" | {kernel.risk} |"
        )
    return before + _BEGIN + "\n".join(rows) + "\n" + _END + after


def _language(kernel: HonestKernel) -> str:
    if "import triton" in kernel.source:
        return "Triton"
    if "__global__" in kernel.source:
        return "CUDA"
    return "C++" if "cpp_extension" in kernel.source else "PyTorch"


def main() -> None:
    """Write it."""
    DOCUMENT.write_text(document_with_table())


if __name__ == "__main__":
    main()
