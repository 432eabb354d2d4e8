"""`docs/usage.md` holds the options as they are; run this module to write them anew."""

from pathlib import Path

from typer.main import get_command

from agent.run import app

PAGE = Path(__file__).parents[2] / "docs" / "usage.md"
BEGIN, END = "<!-- options: begin", "<!-- options: end -->"


def table() -> str:
    rows = ["| option | |", "| --- | --- |"]
    for parameter in get_command(app).params:
        names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
        value = "" if parameter.is_flag else f" `{parameter.metavar}`"  # type: ignore[attr-defined]
        # A bar inside a cell has to be escaped, in code as well.
        name = f"{names}{value}".replace("|", r"\|")
        rows.append(f"| {name} | {parameter.help} |")  # type: ignore[attr-defined]
    return "\n".join(rows)


def test_the_page_lists_the_options_as_they_are() -> None:
    assert table() in PAGE.read_text()


if __name__ == "__main__":
    text = PAGE.read_text()
    start, end = text.index("\n", text.index(BEGIN)) + 1, text.index(END)
    PAGE.write_text(f"{text[:start]}\n{table()}\n\n{text[end:]}")
