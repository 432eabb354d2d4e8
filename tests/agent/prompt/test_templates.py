"""Templates of the user's own, in place of ours."""

from pathlib import Path

import pytest

from agent.config.identity import first_difference
from agent.config.options import check_options
from agent.config.run_config import RunConfig
from agent.dry_run import plan
from agent.job import check_prompts
from agent.prompt.prompt import Frame, Hardware, first_prompt
from agent.prompt.templates import FOLDER, load_templates, our_templates
from agent.resolution import Resolution, resolve
from problems.errors import UsageError
from tests.agent.world import World

FRAME = Frame("import torch", Hardware("a device"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "prompts"
    place.mkdir()
    (place / "introduction.md.j2").write_text("Be quick.\n")
    return place


def resolved(folder: Path | None, **options: object) -> Resolution:
    output = folder.parent / "run" if folder else Path("run")
    given = {"problems": ["level1_1_swish"], "device": "cpu", "output": output, **options}
    return resolve(check_options({**given, "prompts": folder}))


def test_ours_are_the_files_in_the_folder() -> None:
    assert set(our_templates().texts) == {file.name[:-6] for file in FOLDER.glob("*.md.j2")}
    assert our_templates().digest == ""
    assert load_templates(None) is our_templates()


def test_a_file_replaces_ours_and_the_others_stay(folder: Path) -> None:
    run = RunConfig(output=folder)
    ours = first_prompt(run, FRAME).text
    own = first_prompt(
        run, Frame(FRAME.reference, FRAME.hardware, templates=load_templates(folder))
    )
    assert own.text == "Be quick.\n\n" + ours[ours.index("## Task") :]


def test_a_template_that_is_empty_leaves_its_part_out(folder: Path) -> None:
    (folder / "contract.md.j2").write_text("\n")
    frame = Frame(FRAME.reference, FRAME.hardware, templates=load_templates(folder))
    found = first_prompt(RunConfig(output=folder), frame)
    assert "What counts" not in found.text and "contract" not in found.ledger.tokens
    assert "\n\n\n## How" not in found.text


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("introdction.md.j2", "did you mean 'introduction.md.j2'"),
        ("task.md", "did you mean 'task.md.j2'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(folder: Path, name: str, told: str) -> None:
    (folder / name).write_text("x")
    with pytest.raises(UsageError, match=f"{name} is no template's name: {told}"):
        load_templates(folder)


def test_hidden_files_are_passed_over(folder: Path) -> None:
    (folder / ".DS_Store").write_bytes(b"\xff")
    assert load_templates(folder).digest


def test_a_folder_must_be_there_and_hold_something(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        load_templates(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"no template is in it; known: .*task\.md\.j2"):
        load_templates(tmp_path)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\ntwo {{ budgt_note }}\n", 2),
        ("one\n\n{% if %}\n", 3),
        ("{{ 1 / 0 }}", 1),
        ("one\n{{ hardware.name.nothing() }}", 2),
        ("{% include 'task_2' %}", 1),
    ],
)
def test_a_template_that_fails_is_named_with_its_line(folder: Path, text: str, line: int) -> None:
    (folder / "task.md.j2").write_text(text)
    found = resolved(folder)
    for check in (check_prompts, plan):
        with pytest.raises(UsageError) as caught:
            check(found)
        assert str(caught.value).startswith(f"{folder / 'task.md.j2'} line {line}: ")
    assert not (folder.parent / "run").exists()


def test_a_section_template_that_fails_is_found_before_anything_is_asked(folder: Path) -> None:
    (folder / "section.md.j2").write_text("## {{ title }}\n{{ txt }}")
    with pytest.raises(UsageError, match=r"section\.md\.j2 line 2"):
        check_prompts(resolved(folder))


def test_the_dry_run_renders_them(folder: Path) -> None:
    assert plan(resolved(folder)).prompt.text.startswith("Be quick.\n\n## Task\n")


def test_other_templates_make_another_run(folder: Path) -> None:
    plain, own = resolved(None).config, resolved(folder).config
    assert plain.prompts_hash == "" and len(own.prompts_hash) == 16
    difference = first_difference(plain, own)
    assert difference is not None and difference[0] == "prompts_hash"
    (folder / "introduction.md.j2").write_text("Be quicker.\n")
    assert resolved(folder).config.prompts_hash != own.prompts_hash


def test_where_they_lie_makes_none(folder: Path) -> None:
    before = resolved(folder).config
    moved = folder.rename(folder.parent / "elsewhere")
    assert first_difference(before, resolved(moved).config) is None


def test_a_saved_configuration_holds_only_with_its_templates(folder: Path) -> None:
    saved = resolved(folder).config
    given = {"prompts_hash": saved.prompts_hash}
    assert resolved(folder, **given).config == saved
    (folder / "introduction.md.j2").write_text("Be quicker.\n")
    with pytest.raises(UsageError, match="the templates have changed since this run was begun"):
        resolved(folder, **given)


def test_a_run_asks_with_them_and_never_mixes_them(folder: Path, tmp_path: Path) -> None:
    world = World(tmp_path)
    settings = {"prompts": folder, "prompts_hash": load_templates(folder).digest}
    (folder / "section.md.j2").write_text("<< {{ title }} >>\n{{ text }}")
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match="have changed"):
        World(tmp_path / "other").run(**settings)
    settings["prompts_hash"] = load_templates(folder).digest
    world.run(budget=3, **settings)
    prompts = [world.files.prompt(turn.prompt) for turn in world.files.turns()]
    assert all(prompt.startswith("Be quick.\n") for prompt in prompts)
    assert any("<< What execution said >>" in prompt for prompt in prompts)
    with pytest.raises(UsageError, match="prompts_hash"):
        world.run(budget=3)
