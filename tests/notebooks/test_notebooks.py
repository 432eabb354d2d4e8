"""The notebooks run from top to bottom, on what is committed, through public names alone."""

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SMALL_BYTES = 800_000
CAPTIONS = """
import json
from matplotlib.figure import Figure
print(json.dumps([each.get_supxlabel() for each in Out.values() if isinstance(each, Figure)]))
"""
"""A cell that tells the captions of all figures that the cells before it returned."""


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def committed(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def pictures(notebook: nbformat.NotebookNode) -> int:
    return sum(
        "image/png" in output.get("data", {})
        for cell in notebook.cells
        for output in cell.get("outputs", [])
    )


def printed(notebook: nbformat.NotebookNode, stream: str) -> list[str]:
    return [
        output["text"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.get("name") == stream
    ]


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, caches and connection files of Jupyter go into a folder of the test's own."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    # Of these packages, not of others that may be installed.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.thorough
@pytest.mark.usefixtures("at_home")
def test_it_runs_from_top_to_bottom(path: Path, committed: nbformat.NotebookNode):
    notebook = committed.copy()
    notebook.cells = [*committed.cells, nbformat.v4.new_code_cell(CAPTIONS)]
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    )
    expected = pictures(committed)
    # In a thread of its own: asyncio.run would drop the main thread's loop.
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: asyncio.run(client.async_execute())).result()
    assert pictures(done) == expected >= 3
    assert printed(done, "stderr") == []
    captions = [" ".join(text.split()) for text in json.loads(printed(done, "stdout")[-1])]
    assert len(captions) == expected
    for caption in captions:
        assert "n = " in caption
        assert "Kernels by " in caption
        assert any(word in caption for word in ("interval", "no intervals"))


def test_it_was_committed_as_it_ran_and_small(path: Path, committed: nbformat.NotebookNode):
    counts = [cell["execution_count"] for cell in committed.cells if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert printed(committed, "stderr") == []
    assert path.stat().st_size < SMALL_BYTES
    text = path.read_text(encoding="utf-8")
    assert str(Path.home()) not in text and str(ROOT) not in text


def test_it_uses_public_names_of_ours_only(committed: nbformat.NotebookNode):
    source = "\n".join(cell["source"] for cell in committed.cells if cell["cell_type"] == "code")
    ours = set(re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE))
    assert {name for name in ours if (ROOT / name).is_dir()} == {"experiments"}
    assert not re.search(r"\b_\w|import .*\b_", source)


def test_a_link_leads_somewhere(path: Path, committed: nbformat.NotebookNode):
    links = [
        part.partition(")")[0].partition("#")[0]
        for cell in committed.cells
        if cell["cell_type"] == "markdown"
        for part in cell["source"].split("](")[1:]
    ]
    assert all((path.parent / link).exists() for link in links)
