"""The notebook runs from top to bottom, on what is committed, through public names alone."""

import ast
import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "trajectories.ipynb"
SMALL_BYTES = 1_500_000


@pytest.fixture(scope="module")
def committed() -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def pictures(notebook: nbformat.NotebookNode) -> int:
    return sum(
        "image/png" in output.get("data", {})
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, caches and connection files of Jupyter go where nobody else's are."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.mark.thorough
@pytest.mark.usefixtures("at_home")
def test_it_runs_from_top_to_bottom(committed: nbformat.NotebookNode):
    expected = pictures(committed)
    client = NotebookClient(
        committed.copy(),
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(NOTEBOOK.parent)}},
    )
    # In a thread of its own: asyncio.run would drop the main thread's loop.
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: asyncio.run(client.async_execute())).result()
    assert pictures(done) == expected > 5
    warned = [
        output["text"]
        for cell in done.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    ]
    assert warned == []


def test_it_was_committed_as_it_ran_and_small(committed: nbformat.NotebookNode):
    counts = [cell["execution_count"] for cell in committed.cells if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert NOTEBOOK.stat().st_size < SMALL_BYTES
    assert str(Path.home()) not in NOTEBOOK.read_text(encoding="utf-8")


def test_it_uses_public_names_of_ours_only(committed: nbformat.NotebookNode):
    source = "\n".join(
        line
        for cell in committed.cells
        if cell["cell_type"] == "code"
        for line in cell["source"].splitlines()
        if not line.startswith("%")
    )
    tree = ast.parse(source)
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    ours = {name for name in modules if (ROOT / name.partition(".")[0]).is_dir()}
    assert ours and all(name.partition(".")[0] == "experiments" for name in ours)
    private = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_")
    ]
    assert private == []
