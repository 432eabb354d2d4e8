"""`kernel-refinery COMMAND ...`: one command for all that a user runs."""

from __future__ import annotations

import difflib
import importlib.metadata
import sys
from typing import NamedTuple

from kernel_refinery import own_module


class Command(NamedTuple):
    module: str
    help: str


COMMANDS = {
    "run": Command("agent.run", "a model writes kernels, and refines them within a budget"),
    "apply": Command("agent.apply", "put a kernel into a model, and time the model"),
    "check": Command("evaluator.check", "judge one kernel, or a folder of kernels"),
    "profile": Command("tools.profile", "show where the time of a correct kernel goes"),
    "show": Command("agent.show", "print a recorded run, turn by turn"),
    "compare": Command("experiments.compare", "compare runs, with intervals"),
    "report": Command("experiments.report", "write a report of runs or of a study"),
    "study": Command("experiments.matrix", "run a planned study"),
    "mcp": Command("agent.mcp", "open a session, in which a coding agent is the loop"),
    "tool": Command("agent.tool", "use the tools of an open session"),
    "desk": Command("agent.desk", "share a relay's prompts out, and take the answers back"),
    "problems": Command("problems.list", "list the problems"),
    "serve": Command("tools.serve.__main__", "give verdicts to other programs, over HTTP"),
    "doctor": Command("agent.doctor", "show what this machine has, and what is missing"),
}


def main() -> int:
    name, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("--help", [])
    if name in ("--help", "-h"):
        print("Usage: kernel-refinery COMMAND [OPTIONS]\n")
        print("\n".join(f"  {command:<10}{what.help}" for command, what in COMMANDS.items()))
        print("\nkernel-refinery COMMAND --help lists the options of a command.")
        return 0
    if name == "--version":
        print(importlib.metadata.version("kernel-refinery"))
        return 0
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else "kernel-refinery --help lists the commands"
        print(f"error: no command {name!r}: {hint}", file=sys.stderr)
        return 2
    command = own_module(COMMANDS[name].module).command
    code: int = own_module("evaluator.command.command_line").serve(
        command, f"kernel-refinery {name}", arguments
    )
    return code
