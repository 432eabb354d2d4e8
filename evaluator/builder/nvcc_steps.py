"""nvcc's steps, two at a time: what it does for the device beside what it does for the host.

nvcc preprocesses a file for the device and for the host, compiles it for the device (cicc, ptxas,
fatbinary), splits off the host's part (cudafe++) and compiles that, one step after the other. The
halves need nothing of each other until the last step, but for an identifier of the module, which
cudafe++ writes and cicc reads; here it is written ahead. The steps are those that nvcc itself names
(`--dryrun`), so flags mean what they mean to it, and the object is the same.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

HALVES = (".d", ".device.d")
"""What comes behind a source's name where its halves list the files that they read."""
_ASSIGNMENT = re.compile(r"(\w+)=(.*)")
_IDENTIFIED = "--gen_module_id_file"
_IDENTIFIER = "--module_id_file_name"
_EXPORTED = ("PATH", "LD_LIBRARY_PATH", "NVVMIR_LIBRARY_DIR")
_CICC_FOLDER = "$CICC_PATH"
_REDIRECTS = re.compile(r"\d?[<>]|[|;&]")
_DEVICE_LOG = "tmp/device.log"
_SCRIPT = """printf %s {identifier} > {file}
{{ {device}; }} > {log} 2>&1 &
{host}
host=$?
wait $!
device=$?
[ $host -eq 0 ] || exit $host
cat {log}
[ $device -eq 0 ] || exit $device
{last}
"""


def side_by_side(said: str, source: str, key: str) -> tuple[str, ...] | None:
    """A command that does in the build folder what nvcc would do to compile `source` to an object.

    `said`: what it printed with `--dryrun`, its files in the folder's `tmp`. `key`: hexadecimal
    digits of the source's own. The halves leave lists of what they read in files named `HALVES`, as
    `-MD` does. None where the steps are not the usual ones: then nvcc must do them itself.
    """
    by_tool: dict[str, list[list[str]]] = {}
    try:
        variables, steps = _read(said)
        for step in steps:
            by_tool.setdefault(Path(step[0]).name, []).append(step)
        (split,), (compiled,) = by_tool.pop("cudafe++"), by_tool.pop("cicc")
        (assembled,), (bundled,) = by_tool.pop("ptxas"), by_tool.pop("fatbinary")
        ((first, second, last),) = by_tool.values()
        file = split[split.index(_IDENTIFIER) + 1]
        read = {step[step.index("-o") + 1]: step for step in (first, second)}
        (for_device,), (for_host,) = (read.keys() & set(step) for step in (compiled, split))
        split.remove(_IDENTIFIED)
    except (KeyError, ValueError):
        return None
    if for_device == for_host or any(_REDIRECTS.match(word) for step in steps for word in step):
        return None
    host_list, device_list = (source + ending for ending in HALVES)
    device = ([*read[for_device], "-MD", "-MF", device_list], compiled, assembled, bundled)
    host = ([*read[for_host], "-MD", "-MF", host_list], split)
    name = re.sub(r"\W", "_", source)
    script = _SCRIPT.format(
        # As cudafe++ would make it.
        identifier=f"_{key[:8]}_{len(source)}_{name}_{key[8:16]}",
        file=shlex.quote(file),
        device=" && ".join(map(shlex.join, device)),
        host=" && ".join(map(shlex.join, host)),
        last=shlex.join(last),
        log=_DEVICE_LOG,
    )
    exported = "".join(
        f"export {name}={shlex.quote(value)}\n"
        for name, value in variables.items()
        if name in _EXPORTED
    )
    return ("/bin/sh", "-c", exported + script)


def _read(said: str) -> tuple[dict[str, str], list[list[str]]]:
    variables: dict[str, str] = {}
    steps = []
    for line in said.splitlines():
        text = line.removeprefix("#$ ")
        if text == line or not text.strip() or text.startswith(("-- ", "rm ")):
            continue
        if assigned := _ASSIGNMENT.match(text):
            variables[assigned[1]] = assigned[2]
            continue
        words = shlex.split(text)
        words[0] = words[0].replace(_CICC_FOLDER, variables.get(_CICC_FOLDER[1:], ""))
        steps.append(words)
    return variables, steps
