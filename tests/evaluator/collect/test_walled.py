"""What a candidate can do that `ncu` profiles, which a script plays: build, and little else."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evaluator.collect.ncu import collect_ncu
from evaluator.collect.nsight.read_report import REPORT
from evaluator.collect.target import walled
from evaluator.judge.bounds import ceilings
from evaluator.judge.bounds.ceilings import measure_ceilings
from evaluator.walls.privileges import may_watch
from tests.evaluator.collect.stand_in_ncu import GPU, stand_in_ncu
from tests.evaluator.collect.target_requests import REFERENCE, request

ATTEMPTS = """
import json, os, socket
from pathlib import Path

CACHE, PRIVATE, OWNER, PORT = {given!r}

def outcome(act):
    try:
        act()
    except OSError as error:
        return "refused"
    return "done"

told = {{
    "write the cache": outcome(lambda: (CACHE / "libraries" / "planted").write_text("x")),
    "remove from the cache": outcome(lambda: (CACHE / "victim").unlink()),
    "read a file": outcome(PRIVATE.read_text),
    "signal the owner": outcome(lambda: os.kill(OWNER, 0)),
    "connect": outcome(lambda: socket.create_connection(("127.0.0.1", PORT)).close()),
    "write the system": outcome(lambda: Path("/etc/refinery-was-here").write_text("x")),
}}
Path("told").write_text(json.dumps(told))
"""
BUILDS = """
from torch.utils.cpp_extension import load_inline
kernels = load_inline("k", "#include <cmath>\\nint one() { return 1; }", functions=["one"])
assert kernels.one() == 1
"""


@pytest.mark.thorough
def test_it_builds_and_reaches_nothing_of_its_owner(
    place: Path, tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    area = place / "area"
    cache = area / "cache"
    (cache / "libraries").mkdir(parents=True)
    # What every build is linked with takes long to make.
    (shared_cache / "objects").mkdir(exist_ok=True)
    (cache / "objects").symlink_to(shared_cache / "objects")
    monkeypatch.setenv("KERNEL_REFINERY_CACHE", str(cache))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setattr(ceilings, "_SECONDS", 0.0)
    measure_ceilings("cpu", threads=1)
    stand_in_ncu(tmp_path / "bin", tmp_path / "log")
    (cache / "victim").touch()
    private = area / "private"
    private.write_text("mine")
    # So that it is the walls that refuse, not the rights of a file.
    for path in (area, cache, cache / "libraries"):
        path.chmod(0o777)
    with socket.create_server(("127.0.0.1", 0)) as server:
        given = (cache, private, os.getpid(), server.getsockname()[1])
        attempts = ATTEMPTS.format(given=given).replace("PosixPath", "Path")
        module = REFERENCE.replace("class Model(", "class ModelNew(")
        with tempfile.TemporaryDirectory() as name:
            request(attempts + BUILDS + module, Path(name))
            found = collect_ncu(Path(name), GPU, timeout_s=120)
            told = json.loads((Path(name) / REPORT).read_text())
        # They are no attempts if they fail anyway.
        subprocess.run([sys.executable, "-c", attempts], cwd=tmp_path, check=True)
    Path("/etc/refinery-was-here").unlink()
    assert set(json.loads((tmp_path / "told").read_text()).values()) == {"done"}
    assert set(told.values()) == {"refused"}, told
    assert {"own_uid", "no_capabilities", "landlock", "seccomp", "separate_builder"} <= set(
        found.isolation
    )
    # Its owner has built for it.
    (built,) = (cache / "libraries").glob("*/outcome.json")
    assert json.loads(built.read_text())["ok"]
    shutil.rmtree(area)


KEPT = ["only_cap_perfmon"]
# SECBIT_NO_CAP_AMBIENT_RAISE and SECBIT_KEEP_CAPS_LOCKED: some containers have them.
LOCKED = "from evaluator.walls.kernel import prctl\nprctl(28, {})\n"
UNFILTERED = (
    "from evaluator.walls import seccomp\n"
    "def refused(**_): raise OSError\n"
    "seccomp.install = refused\n"
)


@pytest.mark.skipif(not may_watch(), reason="only the machine's root has CAP_PERFMON")
@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ("", KEPT),
        (LOCKED.format(1 << 6), ["no_capabilities"]),
        (LOCKED.format(1 << 5), ["no_capabilities"]),
        (UNFILTERED, ["no_capabilities"]),
    ],
)
def test_one_right_of_roots_is_kept_where_counters_are_for_administrators(
    place: Path, before: str, kept: list[str]
) -> None:
    folder = place / "folder"
    folder.mkdir()
    code = before + (
        "import sys\nfrom pathlib import Path\nfrom evaluator.collect.target import walled\n"
        "walled.counters_ask_for_a_right = lambda: True\n"
        "walled.main(Path(sys.argv[1]), int(sys.argv[2]), 'ncu', sys.argv[3:])\n"
    )
    tries = f"echo ${walled.LAYERS}\n"
    tries += "grep -E '^(Uid|Cap(Prm|Eff|Bnd)|NoNewPrivs|Seccomp):' /proc/self/status\n"
    tries += "mount -t tmpfs none . || echo no mount\ntouch /etc/x || echo no file\ntouch own\n"
    # Landlock lets all of /etc be read: it is the user who may not.
    tries += "cat /etc/shadow || echo no secret\n"
    # What it finds there is what it would write.
    tries += "was=$(cat /proc/sys/kernel/core_pattern)\n"
    tries += '(printf %s "$was" > /proc/sys/kernel/core_pattern) || echo no setting\n'
    tries += "(exec 3> /proc/self/comm) && echo a name"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), str(os.getpid()), "sh", "-c", tries],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    said = dict(line.split(":\t") for line in done.stdout.splitlines() if ":\t" in line)
    (uid,) = set(said["Uid"].split())
    assert int(uid) > 60_000
    assert said["CapEff"] == said["CapPrm"] == f"{(kept == KEPT) << 38:016x}"
    assert (said["NoNewPrivs"], said["Seccomp"]) == ("1", "0" if before == UNFILTERED else "2")
    layers = done.stdout.partition("\n")[0].split(",")
    assert [name for name in layers if "cap" in name] == kept
    answers = ["no mount", "no file", "no secret", "no setting", "a name"]
    assert done.stdout.splitlines()[-5:] == answers
    assert (folder / "own").exists()
    (folder / "own").unlink()
    folder.rmdir()
