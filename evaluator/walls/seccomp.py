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

_SAME_EVERYWHERE = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "process_mrelease": 448,
    "open_tree_attr": 467,
}

_X86_64 = {
    "acct": 163, "add_key": 248, "adjtimex": 159, "bpf": 321, "chroot": 161, "clock_adjtime": 305,
    "clock_settime": 227, "clone": 56, "delete_module": 176, "fanotify_init": 300,
    "finit_module": 313, "init_module": 175, "ioperm": 173, "iopl": 172, "kcmp": 312,
    "kexec_file_load": 320, "kexec_load": 246, "keyctl": 250, "lookup_dcookie": 212,
    "modify_ldt": 154, "mount": 165, "open_by_handle_at": 304, "perf_event_open": 298,
    "pivot_root": 155, "process_vm_readv": 310, "process_vm_writev": 311, "ptrace": 101,
    "quotactl": 179, "reboot": 169, "request_key": 249, "sendmmsg": 307, "sendmsg": 46,
    "setdomainname": 171, "sethostname": 170, "setns": 308, "setpgid": 109, "setsid": 112,
    "settimeofday": 164, "socket": 41, "swapoff": 168, "swapon": 167, "syslog": 103,
    "umount2": 166, "unshare": 272, "uselib": 134, "userfaultfd": 323,
    "vhangup": 153, "timer_create": 222, "mq_notify": 244, "fcntl": 72, "prctl": 157,
}  # fmt: skip

_AARCH64 = {
    "acct": 89, "add_key": 217, "adjtimex": 171, "bpf": 280, "chroot": 51, "clock_adjtime": 266,
    "clock_settime": 112, "clone": 220, "delete_module": 106, "fanotify_init": 262,
    "finit_module": 273, "init_module": 105, "kcmp": 272, "kexec_file_load": 294,
    "kexec_load": 104, "keyctl": 219, "lookup_dcookie": 18, "mount": 40,
    "open_by_handle_at": 265, "perf_event_open": 241, "pivot_root": 41, "process_vm_readv": 270,
    "process_vm_writev": 271, "ptrace": 117, "quotactl": 60, "reboot": 142, "request_key": 218,
    "sendmmsg": 269, "sendmsg": 211, "setdomainname": 162, "sethostname": 161, "setns": 268,
    "setpgid": 154, "setsid": 157, "settimeofday": 170, "socket": 198, "swapoff": 225,
    "swapon": 224, "syslog": 116, "umount2": 39, "unshare": 97, "userfaultfd": 282,
    "vhangup": 58, "timer_create": 107, "mq_notify": 184, "fcntl": 25, "prctl": 167,
}  # fmt: skip

NUMBERS = {"x86_64": _X86_64 | _SAME_EVERYWHERE, "aarch64": _AARCH64 | _SAME_EVERYWHERE}
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

F_SETSIG of fcntl and PR_SET_PDEATHSIG of prctl are refused with them, and a clone whose end sends
its parent another signal than SIGCHLD. (setitimer and alarm send other signals.) So is it to say
who gets orphans, which must be seen.
"""

FAKED = ("setsid", "setpgid")
"""These do nothing and say that all went well.

A child that left the group would not stand still when the judge stops the group, and honest
programs (subprocess with start_new_session) must not fail.
"""


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


def filter_code(machine: str, *, stays_stopped: bool = False) -> bytes:
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
    # The C library falls back to clone, whose flags can be seen from here.
    answers["clone3"] = errno.ENOSYS
    for name, number in answers.items():
        if name in numbers:
            program += [_Instruction(_EQUAL, numbers[name], if_false=1), _answer(number)]
    if stays_stopped:
        program += [
            *_refused(numbers["fcntl"], _SECOND_ARGUMENT, _EQUAL, _F_SETSIG),
            *_refused(numbers["prctl"], _FIRST_ARGUMENT, _EQUAL, PR_SET_PDEATHSIG),
            *_refused(numbers["prctl"], _FIRST_ARGUMENT, _EQUAL, PR_SET_CHILD_SUBREAPER),
            _Instruction(_EQUAL, numbers["clone"], if_false=6),
            _Instruction(_LOAD, _FIRST_ARGUMENT),
            _Instruction(_AND, _EXIT_SIGNAL),
            _Instruction(_EQUAL, 0, if_true=2),
            _Instruction(_EQUAL, signal.SIGCHLD, if_true=1),
            _answer(errno.EPERM),
            _Instruction(_LOAD, _NUMBER),
        ]
    program += [
        *_refused(numbers["clone"], _FIRST_ARGUMENT, _ANY_BIT, CLONE_ANYTHING_NEW | _CLONE_PARENT),
        _Instruction(_EQUAL, numbers["socket"], if_false=3),
        _Instruction(_LOAD, _FIRST_ARGUMENT),
        _Instruction(_EQUAL, socket.AF_UNIX, if_true=1),
        _answer(errno.EPERM),
        _Instruction(_RETURN, _ALLOW),
    ]
    return b"".join(instruction.packed() for instruction in program)


def install(*, all_threads: bool = False, stays_stopped: bool = False) -> None:
    """Put the filter on this thread and all that it will start, for good. Needs no_new_privs.

    `all_threads`: on those as well that run already. `stays_stopped`: nothing that was set up
    before may wake it from SIGSTOP. Raises `OSError` where the kernel has no
    seccomp, or the architecture isn't known here.
    """
    machine = platform.machine()
    if machine not in NUMBERS:
        raise OSError(errno.ENOSYS, f"no system call table for {machine}")
    code = filter_code(machine, stays_stopped=stays_stopped)
    program = _Program(len(code) // 8, code)
    if all_threads:
        system_call(_SECCOMP[machine], _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(program))
    else:
        prctl(PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program))
