"""One toolchain at work: sources to objects, objects to a library, objects kept by content."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluator.builder import headers
from evaluator.builder.cache import Cache
from evaluator.builder.diagnosis import is_pytorchs, linker_names, needs_full_headers, readable
from evaluator.builder.enclosure import Enclosure, Finished
from evaluator.builder.flags import SANITIZED, SANITIZED_LINK
from evaluator.builder.nvcc_steps import HALVES, side_by_side
from evaluator.builder.sources import Source, Sources
from evaluator.builder.toolchain import STUBS, Toolchain
from evaluator.builder.unneeded_headers import lean_flags, may_lack
from evaluator.builder.work_folder import work_folder
from evaluator.hardware.device_lock import host_lock

REVISION = "12"
"""Changes whenever the command lines do, so that old entries of the cache are not used."""
_RUNTIME_TIMEOUT_S = 900.0
_RUNTIME_TURN_S = 60.0
"""Several times what making it takes."""
_LINK_TIMEOUT_S = 120.0
_MOST_TIMES = 2
"""All sources of a request together may take this many times as long as one."""
_MOST_UNITS = 16
"""Of one request at a time: each has a build folder of its own."""


@dataclass(frozen=True)
class Flags:
    host: tuple[str, ...]
    device: tuple[str, ...]
    link: tuple[str, ...]

    def sanitized(self) -> Flags:
        return replace(self, host=self.host + SANITIZED, link=self.link + SANITIZED_LINK)


@dataclass(frozen=True)
class Attempt:
    """What compilers made of one source, or of a whole request: an object or a library."""

    content: bytes | None
    log: str
    timed_out: bool = False
    headers_lacking: bool = False
    """The first error may be the light headers'."""


def _digest(*parts: str) -> str:
    # As a tuple reads, so that no part can pass for two: flags are the candidate's own text.
    everything = repr((REVISION, headers.digest(), *parts))
    return hashlib.sha256(everything.encode()).hexdigest()


def _everything(unit: Source, sources: Sources) -> str:
    return "\n".join((unit.content, *(content for _, content in sources.others)))


@dataclass(frozen=True)
class Workshop:
    folder: Path
    tools: Toolchain
    enclosure: Enclosure
    objects: Cache
    slots: threading.Semaphore
    """One for each compiler that may run."""
    runtime_turn: threading.Lock = field(default_factory=threading.Lock)
    runtime_errors: list[str] = field(default_factory=list)
    """What compiling the light headers' runtime said; it is not tried again."""

    def key(self, *parts: str) -> str:
        return _digest(self.tools.fingerprint, *parts)

    @property
    def light_headers(self) -> Path:
        """The folder to search first for headers, which is there whenever this is asked."""
        return headers.install(self.folder)

    def run(self, command: Sequence[str], folder: Path, timeout_s: float) -> Finished:
        """Runs a command when one of the slots is free; waiting does not count as time."""
        with self.slots:
            return self.enclosure.run(command, folder, timeout_s)

    def runtime(self) -> dict[str, bytes] | str:
        """What every light library is linked with, made once a machine; or what went wrong.

        By file name: objects (.o), and stubs of PyTorch's libraries (.so).
        """
        with self.runtime_turn:
            key = _digest(self.tools.host_fingerprint, "runtime")
            made: dict[str, bytes] | str | None = self.objects.read(key)
            if made is None:
                if self.runtime_errors:
                    return self.runtime_errors[0]
                # Builders that start together would all make it, and none the sooner.
                place = (self.folder / "objects").resolve()
                turn = f"runtime-{_digest(key, str(place))[:16]}"
                with host_lock(turn, most_s=_RUNTIME_TURN_S):
                    made = self.objects.read(key) or self._make_runtime(key)
            if isinstance(made, str):
                self.runtime_errors.append(made)
            return made

    def _make_runtime(self, key: str) -> dict[str, bytes] | str:
        names = headers.RUNTIME
        with work_folder(self.folder) as folder, ThreadPoolExecutor(len(names)) as pool:
            said = "".join(pool.map(lambda name: self._runtime_object(name, folder), names))
            if said:
                return said
            objects = {f"{name}.o": (folder / f"{name}.o").read_bytes() for name in names}
            made = objects | self._stubs(folder)
            self.objects.put(key, made)
            return made

    def _stubs(self, folder: Path) -> dict[str, bytes]:
        """By file name. Where a library's own name can't be read, the library itself is linked."""
        made = {}
        for name in self.tools.torch_libraries:
            file = f"lib{name}.so"
            listed = self.run(
                ["readelf", "-d", str(self.tools.torch.libraries / file)], folder, _LINK_TIMEOUT_S
            )
            soname = re.search(r"\(SONAME\).*\[(.+)\]", listed.output)
            if soname is None:
                continue
            done = self.run(self.tools.stub_command(soname[1], file), folder, _LINK_TIMEOUT_S)
            if done.code == 0:
                made[file] = (folder / file).read_bytes()
        return made

    def _runtime_object(self, name: str, folder: Path) -> str:
        (folder / name).write_text(f'#include "{self.light_headers}/refinery/{name}"\n')
        # binding.cpp is over the light headers, the other two speak with PyTorch's own.
        light = self.light_headers if name == "binding.cpp" else None
        flags = ("-O2", "-fvisibility=hidden")
        command = self.tools.host_command("runtime", name, flags, light)
        done = self.run(command, folder, _RUNTIME_TIMEOUT_S)
        return "" if done.code == 0 else done.output or f"{name}: killed"

    def attempt(
        self, name: str, sources: Sources, flags: Flags, *, light: bool, timeout_s: float
    ) -> Attempt:
        """Compiles all units side by side and links them. `timeout_s` is for each compiler run;
        none is begun after `_MOST_TIMES` as long."""
        end = time.monotonic() + _MOST_TIMES * timeout_s
        header_folder = self.light_headers if light else None
        with ThreadPoolExecutor(min(len(sources.units), _MOST_UNITS) + 1) as pool:
            runtime = pool.submit(self.runtime) if light else None
            compiled = list(
                pool.map(
                    lambda unit: self._compile(
                        unit, sources, name, flags, header_folder, timeout_s, end
                    ),
                    sources.units,
                )
            )
            log = "".join(each.log for each in compiled)
            failed = [each for each in compiled if each.content is None]
            if failed:
                return Attempt(
                    None,
                    "".join(each.log for each in failed),
                    timed_out=any(each.timed_out for each in failed),
                    headers_lacking=all(each.headers_lacking for each in failed),
                )
            parts = runtime.result() if runtime else {}
        if isinstance(parts, str):
            return Attempt(None, parts, headers_lacking=True)
        # Nothing of the candidate's is here but what the compilers made: no name of its is in ours.
        with work_folder(self.folder) as folder:
            objects = []
            for number, each in enumerate(compiled):
                (folder / f"unit{number}.o").write_bytes(each.content or b"")
                objects.append(f"unit{number}.o")
            (folder / STUBS).mkdir()
            for part, content in sorted(parts.items()):
                if part.endswith(".so"):
                    (folder / STUBS / part).write_bytes(content)
                    continue
                (folder / f"runtime-{part}").write_bytes(content)
                objects.append(f"runtime-{part}")
            return self._link(objects, flags, folder, log, light=light)

    def _compile(
        self,
        unit: Source,
        sources: Sources,
        name: str,
        flags: Flags,
        header_folder: Path | None,
        timeout_s: float,
        end: float,
    ) -> Attempt:
        lean = lean_flags(_everything(unit, sources)) if header_folder else ()
        searched = tuple(f"-I./{folder}" for folder in sources.folders)
        for defines in dict.fromkeys((lean, ())):
            if time.monotonic() > end:
                said = f"all sources together timed out after {_MOST_TIMES * timeout_s:.3g} s"
                return Attempt(None, f"{unit.name}: error: {said}\n", timed_out=True)
            given = (*searched, *(flags.device if unit.device else flags.host), *defines)
            done = self._compile_with(given, unit, sources, name, header_folder, timeout_s)
            if done.content is not None or done.timed_out or not may_lack(done.log):
                break
        return done

    def _compile_with(
        self,
        flags: tuple[str, ...],
        unit: Source,
        sources: Sources,
        name: str,
        header_folder: Path | None,
        timeout_s: float,
    ) -> Attempt:
        make = self.tools.device_command if unit.device else self.tools.host_command
        command = make(name, unit.name, flags, header_folder)
        # A unit may include the others.
        key = self.key(*command, repr(sources))
        known = self.objects.read(key)
        if known is not None:
            return Attempt(known["object.o"], known["log"].decode())
        with work_folder(self.folder) as folder:
            sources.write(folder)
            if unit.device:
                said = self.tools.device_steps(command, folder)
                command = [*(side_by_side(said, unit.file, key) or command)]
            done = self.run(command, folder, timeout_s)
            if done.code is None:
                log = f"{unit.name}: error: compile timed out after {timeout_s:.3g} s\n"
                return Attempt(None, log, timed_out=True)
            allowed = (folder, *((header_folder,) if header_folder else ()))
            for listed in (folder / f"{unit.file}{ending}" for ending in HALVES):
                dependencies = listed.read_text() if listed.is_file() else ""
                bad = self.tools.forbidden_include(dependencies, allowed)
                if bad is not None:
                    return Attempt(None, f"{unit.name}: error: include_not_allowed: {bad}\n")
            log = readable(done.output, folder, header_folder)
            if done.code != 0:
                text = _everything(unit, sources)
                operators = self.tools.torch.includes[0] / "ATen" / "ops"
                lacking = header_folder is not None and needs_full_headers(
                    done.output, text, operators
                )
                return Attempt(
                    None, log or f"{unit.name}: error: the compiler failed\n", False, lacking
                )
            content = (folder / f"{unit.file}.o").read_bytes()
            self.objects.put(key, {"object.o": content, "log": log.encode()})
            return Attempt(content, log)

    def _link(
        self, objects: list[str], flags: Flags, folder: Path, log: str, *, light: bool
    ) -> Attempt:
        command = self.tools.link_command(objects, "library.so", flags.link, light=light)
        done = self.run(command, folder, _LINK_TIMEOUT_S)
        said = readable(done.output, folder)
        if done.code != 0:
            lacking = light and any(map(is_pytorchs, linker_names(done.output)))
            return Attempt(None, log + (said or "error: the linker failed\n"), False, lacking)
        if light:
            # An undefined function over tensors: without this, a bare name at import.
            listing = self.run(["nm", "-D", "-C", "--undefined-only", "library.so"], folder, 60.0)
            missing = re.findall(r"^\s+U (.*refinery_::.*)$", listing.output, re.MULTILINE)
            if missing:
                names = (readable(name, folder) for name in missing)
                lines = (f"error: undefined reference to '{name}'\n" for name in names)
                lacking = any(map(is_pytorchs, missing))
                return Attempt(None, log + "".join(lines), False, lacking)
        return Attempt((folder / "library.so").read_bytes(), log + said)
