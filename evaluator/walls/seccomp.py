"""A filter of system calls, written as classic BPF: what no kernel of a candidate's ever needs.

A deny list, because compilers, CUDA and OpenMP run behind it and need nearly everything else.
Refused calls fail with EPERM, so that a library with another way takes it.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import signal
import socket
import struct
from dataclasses import dataclass

from evaluator.walls.kernel import (
    CLONE_ANYTHING_NEW,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    PR_SET_SECCOMP,
    prctl,
    system_call,
)

_CLONE_PARENT = 0x8000  # what is made so is a child of the zygote's, where no look at a worker goes
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_NUMBER, _ARCH, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_F_SETSIG = 10
_EXIT_SIGNAL = 0xFF
"""The bits of clone's flags that say which signal a child's end sends."""
_MODE_FILTER, _SET_MODE_FILTER, _ALL_THREADS = 2, 1, 1

_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280),
    "chroot": (161, 51), "clock_adjtime": (305, 266), "clock_settime": (227, 112),
    "clone": (56, 220), "clone3": (435, 435), "delete_module": (176, 106),
    "fanotify_init": (300, 262), "fcntl": (72, 25), "finit_module": (313, 273),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433),
    "init_module": (175, 105), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425), "ioperm": (173, None), "iopl": (172, None), "kcmp": (312, 272),
    "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219),
    "lookup_dcookie": (212, 18), "modify_ldt": (154, None), "mount": (165, 40),
    "mount_setattr": (442, 442), "move_mount": (429, 429), "mq_notify": (244, 184),
    "open_by_handle_at": (304, 265), "open_tree": (428, 428), "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241), "pidfd_getfd": (438, 438), "pivot_root": (155, 41),
    "prctl": (157, 167), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "reboot": (169, 142),
    "request_key": (249, 218), "sendmmsg": (307, 269), "sendmsg": (46, 211),
    "setdomainname": (171, 162), "sethostname": (170, 161), "setns": (308, 268),
    "setpgid": (109, 154), "setsid": (112, 157), "settimeofday": (164, 170), "socket": (41, 198),
    "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116), "timer_create": (222, 107),
    "umount2": (166, 39), "unshare": (272, 97), "uselib": (134, None), "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}  # fmt: skip
"""On x86_64, which has some calls alone, and on aarch64."""
NUMBERS = {
    machine: {name: number for name, both in _NUMBERS.items() if (number := both[at]) is not None}
    for at, machine in enumerate(_AUDIT_ARCH)
}
"""Of the system calls that the filter names, by architecture."""
_SECCOMP = {"x86_64": 317, "aarch64": 277}

DENIED = (
    # other processes' memory and files
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease",
    "pidfd_getfd", "kcmp",
    # descriptors in unread messages: Linux counts them by user, so that the judge could send none
    "sendmsg", "sendmmsg",
    # large or rarely looked at parts of the kernel
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "add_key", "request_key", "keyctl", "fanotify_init", "lookup_dcookie",
    "modify_ldt", "uselib",
    # new namespaces and file systems
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr",
    "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "open_by_handle_at",
    "quotactl", "quotactl_fd",
    # the machine
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot",
    "swapon", "swapoff", "acct", "syslog", "settimeofday", "clock_settime", "clock_adjtime",
    "adjtimex", "sethostname", "setdomainname", "iopl", "ioperm", "vhangup",
)  # fmt: skip
"""Refused whatever their arguments are."""

WAKING = ("timer_create", "mq_notify")
"""Refused to processes that must stay stopped: they can be made to send SIGCONT to one's own group.

F_SETSIG of fcntl is refused with them, PR_SET_PDEATHSIG of prctl but for SIGKILL, and a clone
whose end sends its parent another signal than SIGCHLD. (setitimer and alarm send other signals.)
So is it, but for a judge, to say who gets orphans, which must be seen.
"""

FAKED = ("setsid", "setpgid")
"""These do nothing and say that all went well.

A child that left the group would not stand still when the judge stops the group, and honest
programs (subprocess with start_new_session) must not fail.
"""


JUDGING = {"sendmsg", "sendmmsg", "unshare"}
"""What a judge needs for its own workers, where it is behind walls itself; and it needs `FAKED`."""


@dataclass(frozen=True)
class _Instruction:
    code: int
    value: int
    if_true: int = 0
    if_false: int = 0

    def packed(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.value)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def _answer(number: int) -> _Instruction:
    return _Instruction(_RETURN, _ERRNO | number)


def _refused(call: int, argument: int, test: int, value: int) -> tuple[_Instruction, ...]:
    """EPERM for a system call one of whose arguments passes a test."""
    return (
        _Instruction(_EQUAL, call, if_false=4),
        _Instruction(_LOAD, argument),
        _Instruction(test, value, if_false=1),
        _answer(errno.EPERM),
        _Instruction(_LOAD, _NUMBER),
    )


def filter_code(machine: str, *, stays_stopped: bool = False, judges: bool = False) -> bytes:
    """The filter for one architecture; raises `KeyError` for one that isn't known here."""
    numbers = NUMBERS[machine]
    program = [
        _Instruction(_LOAD, _ARCH),
        # A 32-bit call would have other numbers: there is no honest reason for one.
        _Instruction(_EQUAL, _AUDIT_ARCH[machine], if_true=1),
        _Instruction(_RETURN, _KILL_PROCESS),
        _Instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        program += [
            _Instruction(_AT_LEAST, _X32_BIT, if_false=1),
            _Instruction(_RETURN, _KILL_PROCESS),
        ]
    denied = DENIED + WAKING if stays_stopped else DENIED
    answers = dict.fromkeys(denied, errno.EPERM) | dict.fromkeys(FAKED, 0)
    if judges:
        answers = {name: answers[name] for name in answers.keys() - {*JUDGING, *FAKED}}
    # The C library falls back to clone, whose flags can be seen from here.
    answers["clone3"] = errno.ENOSYS
    for name, number in answers.items():
        if name in numbers:
            program += [_Instruction(_EQUAL, numbers[name], if_false=1), _answer(number)]
    if stays_stopped:
        program += [
            *_refused(numbers["fcntl"], _SECOND_ARGUMENT, _EQUAL, _F_SETSIG),
            _Instruction(_EQUAL, numbers["prctl"], if_false=6),
            _Instruction(_LOAD, _FIRST_ARGUMENT),
            _Instruction(_EQUAL, PR_SET_PDEATHSIG, if_false=3),
            _Instruction(_LOAD, _SECOND_ARGUMENT),
            _Instruction(_EQUAL, signal.SIGKILL, if_true=1),
            _answer(errno.EPERM),
            _Instruction(_LOAD, _NUMBER),
            _Instruction(_EQUAL, numbers["clone"], if_false=6),
            _Instruction(_LOAD, _FIRST_ARGUMENT),
            _Instruction(_AND, _EXIT_SIGNAL),
            _Instruction(_EQUAL, 0, if_true=2),
            _Instruction(_EQUAL, signal.SIGCHLD, if_true=1),
            _answer(errno.EPERM),
            _Instruction(_LOAD, _NUMBER),
        ]
    if stays_stopped and not judges:
        program += _refused(numbers["prctl"], _FIRST_ARGUMENT, _EQUAL, PR_SET_CHILD_SUBREAPER)
    program += [
        *_refused(numbers["clone"], _FIRST_ARGUMENT, _ANY_BIT, CLONE_ANYTHING_NEW | _CLONE_PARENT),
        _Instruction(_EQUAL, numbers["socket"], if_false=3),
        _Instruction(_LOAD, _FIRST_ARGUMENT),
        _Instruction(_EQUAL, socket.AF_UNIX, if_true=1),
        _answer(errno.EPERM),
        _Instruction(_RETURN, _ALLOW),
    ]
    return b"".join(instruction.packed() for instruction in program)


def install(
    *, all_threads: bool = False, stays_stopped: bool = False, judges: bool = False
) -> None:
    """Put the filter on this thread and all that it will start, for good. Needs no_new_privs.

    `all_threads`: on those as well that run already. `stays_stopped`: nothing that was set up
    before may wake it from SIGSTOP. `judges`: it puts up walls itself. Raises `OSError` where the
    kernel has no seccomp, or the architecture isn't known here.
    """
    machine = platform.machine()
    if machine not in NUMBERS:
        raise OSError(errno.ENOSYS, f"no system call table for {machine}")
    code = filter_code(machine, stays_stopped=stays_stopped, judges=judges)
    program = _Program(len(code) // 8, code)
    if all_threads:
        system_call(_SECCOMP[machine], _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(program))
    else:
        prctl(PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program))
