"""What a load carries along, and where it puts it."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
import torch

from evaluator.worker.own_files import gather, split_folders


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_what_is_only_included_is_no_source(tmp_path: Path) -> None:
    write(tmp_path, a_cu='#include "impl.cu"\n  #  include "h.cuh"\n', impl_cu="int x;", h_cuh="")
    own = gather([tmp_path / "a.cu"], [])
    assert [name for name, _ in own.sources] == ["a.cu"]
    assert dict(own.included) == {"impl.cu": "int x;", "h.cuh": ""}
    assert own.folders == ()


def test_a_source_that_another_includes_is_both(tmp_path: Path) -> None:
    write(tmp_path, a_cu='#include "b.cu"\n', b_cu="int x;")
    own = gather([tmp_path / "a.cu", tmp_path / "b.cu", tmp_path / "a.cu"], [])
    assert [name for name, _ in own.sources] == ["a.cu", "b.cu"]
    assert own.included == ()


def test_files_keep_their_places(tmp_path: Path) -> None:
    write(
        tmp_path,
        src__a_cpp='#include "../x.h"\n#include <lib/y.h>\n#include <vector>\n#include "gone.h"\n',
        x_h='#include "a.h"\n',
        inc__a_h="",
        inc__lib__y_h='#include "z.h"\n',
        inc__lib__z_h="",
        other__unused_h="",
    )
    own = gather([tmp_path / "src" / "a.cpp"], [tmp_path / "inc", tmp_path / "other"])
    assert [name for name, _ in own.sources] == ["src/a.cpp"]
    assert {name for name, _ in own.included} == {
        "x.h",
        "inc/a.h",
        "inc/lib/y.h",
        "inc/lib/z.h",
    }
    assert own.folders == ("inc",)


def test_angles_search_the_given_folders_alone(tmp_path: Path) -> None:
    write(tmp_path, a_cpp="#include <b.h>\n#include </etc/passwd>\n", b_h="")
    assert gather([tmp_path / "a.cpp"], []).included == ()
    own = gather([tmp_path / "a.cpp"], [tmp_path])
    assert own.included == (("b.h", ""),) and own.folders == (".",)


def test_what_inline_sources_include_lies_apart(tmp_path: Path) -> None:
    write(tmp_path, main_cpp="", more__b_h='#include "c.h"\n', more__c_h="")
    texts = ['#include "main.cpp"\n', "#include <b.h>\n"]
    own = gather((), [tmp_path, tmp_path / "more"], texts)
    assert own.sources == ()
    assert {name for name, _ in own.included} == {
        "files/main.cpp",
        "files/more/b.h",
        "files/more/c.h",
    }
    assert own.folders == ("files", "files/more")
    assert gather((), [], texts).included == ()


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    write(tmp_path, a_cpp='#include "a.cpp"\n#include "b.h"\n', b_h='#include "b.h"\n')
    assert [name for name, _ in gather([tmp_path / "a.cpp"], []).included] == ["b.h"]


def test_a_source_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"cannot read .*gone\.cpp"):
        gather([tmp_path / "gone.cpp"], [])


def test_folders_of_the_machine_are_left_to_the_compiler(tmp_path: Path) -> None:
    machines = [
        "/usr/include",
        sysconfig.get_paths()["include"],
        str(Path(torch.__file__).parent / "include"),
    ]
    own, elsewhere = split_folders([*machines, str(tmp_path)])
    assert own == [tmp_path]
    assert elsewhere == [Path(each) for each in machines]
