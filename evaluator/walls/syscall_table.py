"""Numbers of the system calls that the filter names, by architecture."""

from __future__ import annotations

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
SECCOMP = {"x86_64": 317, "aarch64": 277}
