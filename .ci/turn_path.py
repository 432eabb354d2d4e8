"""Trace one turn of a run: which of our modules it enters, in all processes, and how often.

`python .ci/turn_path.py` runs two turns of the offline tuner on a CPU, and traces the second one. A
call from one of our modules into another is an *entry*; an entry into a module that the turn has
been in before is a *return*.
"""

import inspect
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
OURS = tuple(f"{ROOT / name}/" for name in ("problems", "evaluator", "tools", "agent"))
TUNER = "agent/tuner/"  # it stands for the model
BEGIN = ("agent/loop/nodes.py", "propose")
END = ("agent/loop/nodes.py", "decide")


class Entry(NamedTuple):
    process: str
    when: float
    module: str
    function: str

    @property
    def place(self):
        return self.module, self.function


def trace(folder: str) -> None:
    """Write a line for each entry in this process, and in those that it forks."""
    log = os.open(f"{folder}/{os.getpid()}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def profile(frame, event, argument):
        name = frame.f_code.co_filename
        optimized = frame.f_code.co_flags & inspect.CO_OPTIMIZED  # a function, no import
        if event != "call" or not optimized or not name.startswith(OURS):
            return
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(OURS):
            caller = caller.f_back
        if caller is None or caller.f_code.co_filename != name:
            entered = f"{name.removeprefix(f'{ROOT}/')}:{frame.f_code.co_name}"
            try:
                os.write(log, f"{time.monotonic()} {entered}\n".encode())
            except OSError:  # a confined process has closed what it inherited
                sys.setprofile(None)

    threading.setprofile(profile)
    sys.setprofile(profile)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        hook, logs = Path(folder) / "hook", Path(folder) / "logs"
        hook.mkdir()
        logs.mkdir()
        (hook / "sitecustomize.py").write_text(
            f"import sys\nsys.path.append({str(ROOT / '.ci')!r})\n"
            f"import turn_path\nturn_path.trace({str(logs)!r})\n"
        )
        run = "agent.run --problem level1_7_rms_norm --device cpu --budget 2 --timing-seconds 0.5"
        subprocess.run(
            [sys.executable, "-m", *run.split(), "--display", "none", "-o", f"{folder}/run"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{hook}:{ROOT}"},
            check=True,
            stderr=subprocess.DEVNULL,
        )
        entries = [
            Entry(file.name, float(when), *name.split(":"))
            for file in logs.iterdir()
            for when, name in map(str.split, file.read_text().splitlines())
        ]
    begin = sorted(each.when for each in entries if each.place == BEGIN)[1]
    end = sorted(each.when for each in entries if each.place == END)[1]
    turn = [each for each in entries if begin <= each.when <= end and TUNER not in each.module]
    modules = Counter(each.module for each in turn)
    for module, times in modules.most_common():
        print(f"{times:>6}  {module}")
    for process in sorted({each.process for each in turn}, key=int):
        of_process = Counter(each.module for each in turn if each.process == process)
        print(f"process {process}: {len(of_process)} modules, {of_process.total()} entries")
    print(f"{len(modules)} modules, {modules.total()} entries")


if __name__ == "__main__":
    main()
