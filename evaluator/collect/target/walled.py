"""Puts walls up around a target: `python -m evaluator.collect.target.walled FOLDER OWNER MODE ...`.

What follows is `ncu` or a sanitizer with its options: this process becomes that program, which
starts the target (`run.py`). They are a worker's walls, with two exceptions. The driver's threads
get their names through /proc, in a process whose number is not known yet, so a user that owns
nothing there may write to all of /proc. And where performance counters are for administrators,
root's right to watch performance is kept for `ncu`; everything else of root's is gone, and so is
root.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
from pathlib import Path
from typing import NoReturn

from evaluator.hardware.counter_rights import for_administrators
from evaluator.walls.environment import python_module
from evaluator.walls.layers import confine, enclose
from evaluator.walls.namespaces import can_fork_apart, fork_apart
from evaluator.walls.privileges import may_watch
from evaluator.walls.scratch import remove

LAYERS = "KERNEL_REFINERY_WALLS"
"""The names of the active walls, separated by commas."""
_CPU_SECONDS = 3600


def main(folder: Path, owner: int, mode: str, watcher: list[str]) -> NoReturn:
    """Ends as the `watcher` does. `owner`: the process that started this one, and owns `folder`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # An owner may ignore it, and then a child could not be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    environment = dict(os.environ)
    program = Path(shutil.which(watcher[0]) or watcher[0])
    needed = (folder, program.parent.absolute(), program.resolve().parent)
    enclosed = enclose(*needed)
    apart = "mount_namespace" in enclosed and can_fork_apart()
    if apart:
        born = fork_apart()
        if born.pid:
            assert born.init is not None
            if not _stand_by(born.pid, owner):
                os.kill(born.init, signal.SIGKILL)
            status = os.waitstatus_to_exitcode(os.waitpid(born.pid, 0)[1])
            os.kill(born.init, signal.SIGKILL)
            os.waitpid(born.init, 0)
            if os.getppid() != owner:
                # Gone without a word. From inside its walls the target can't remove its folder.
                remove(folder)
            os._exit(status if status >= 0 else 128 - status)
        enclosed.append("pid_namespace")
    held = confine(
        folder,
        memory_bytes=None,
        cpu_seconds=_CPU_SECONDS,
        enclosed=enclosed,
        keep_scratch=True,
        needed=needed,
        writes_proc=True,
        watches=mode == "ncu" and counters_ask_for_a_right(),
    )
    environment[LAYERS] = ",".join((*enclosed, *held))
    if not os.access(sys.executable, os.X_OK):
        print(f"{sys.executable} lies where another user can't come, as in /root", flush=True)
        os._exit(126)
    try:
        target = python_module("evaluator.collect.target.run", str(folder), mode)
        os.execve(program, [*watcher, *target], environment)
    except OSError as error:
        print(f"{program}: {error.strerror}", flush=True)
        os._exit(127)


def _stand_by(child: int, owner: int) -> bool:
    """Until `child` has ended (True), or the `owner` is gone or wants an end (SIGTERM).

    True at once where the kernel can't tell.
    """
    # A signal at the end of the parent would come at the end of the thread that started this.
    with contextlib.suppress(OSError):
        ends = [os.pidfd_open(child), os.pidfd_open(owner)]
        asked, asks = os.pipe()
        os.set_blocking(asks, False)
        signal.set_wakeup_fd(asks)
        signal.signal(signal.SIGTERM, lambda *_: None)
        poll = select.poll()
        for descriptor in (asked, *ends):
            poll.register(descriptor, select.POLLIN)
        if os.getppid() != owner:
            return False
        ready = [descriptor for descriptor, _ in poll.poll()]
        return asked not in ready and ends[1] not in ready
    return os.getppid() == owner


def counters_ask_for_a_right() -> bool:
    """Whether counters are for administrators, or may be, and this process has what opens them."""
    try:
        asked = for_administrators()
    except OSError:
        asked = True
    return bool(asked) and may_watch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
