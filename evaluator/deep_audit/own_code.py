"""What a candidate brought along: the functions of its libraries, and what they call elsewhere."""

from __future__ import annotations

import ast
import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evaluator.builder.builder import Builder
from evaluator.builder.toolchain import printed_by
from evaluator.candidate_tree import candidate_tree
from evaluator.collect.kernel_name import base_name
from evaluator.deep_audit.compiled_text import Texts, compiled_texts
from evaluator.evaluation import Backend, EvaluationRequest
from evaluator.ipc.build_request import BuildOutcome, BuildRequest
from evaluator.judge.context.problem_context import ProblemContext
from evaluator.judge.rejection import Rejection
from evaluator.judge.workers.allowance import Allowance

_DEFINED = re.compile(r"^[0-9a-f]+ [TtWw] (?P<name>.+)$", re.MULTILINE)
_IMPORTED = re.compile(r"^\s+[Uw] (?P<name>.+)$", re.MULTILINE)
_UNSEEN = re.compile(
    # Products and the like that no operator of PyTorch announces to a trace.
    r"(?:cblas_|LAPACKE_|mkl_|dnnl_|dnnl::)\w+|[sdcz](?:gemm|gemv|syrk|trsm|axpy|dot)_(?:64_?)?|"
    r"at::(?:native|cpu|redispatch|meta)::.+|"
    # Functions found by name at run time could be any of them.
    r"dlopen|dlsym|dlvsym|"
    # What turns the trace off.
    r"at::(?:RecordFunctionGuard|enableRecordFunction|set_record_function_tls_).*"
)


@dataclass(frozen=True)
class OwnCode:
    """Names in demangled form without parameters; empty where nothing was compiled."""

    libraries: int = 0
    kernels: frozenset[str] = frozenset()
    """Functions that the libraries define, and functions that Triton compiles."""
    unseen: tuple[str, ...] = ()
    """Imported functions whose time a trace on a CPU would take for the candidate's own."""
    known: bool = True
    """False where `nm` is missing or a library was stripped: then the names are incomplete."""
    texts: Texts = ()

    @property
    def exists(self) -> bool:
        return self.libraries > 0 or bool(self.kernels)


def built_code(
    context: ProblemContext,
    builder: Builder,
    request: EvaluationRequest,
    *,
    limit_s: float = math.inf,
) -> OwnCode:
    """Import the candidate once more, and read what is built for it, mostly from the cache.

    `limit_s` bounds it all.
    """
    made: list[Path] = []
    asked: list[BuildRequest] = []
    deadline = time.monotonic() + limit_s

    def build(order: BuildRequest) -> BuildOutcome:
        asked.append(order)
        left_s = max(0.01, min(request.settings.build_timeout_s, deadline - time.monotonic()))
        outcome = builder.build(order, left_s)
        if outcome.ok:
            made.append(Path(outcome.library))
        return outcome

    runner = context.workers.new()
    runner.said.allowance = Allowance(limit_s)
    triton = request.candidate.backend is Backend.TRITON
    try:
        context.workers.load(
            runner, request.candidate.source, "ModelNew", triton=triton, build=build
        )
    except Rejection:
        # What was built until now is what there is.
        pass
    finally:
        runner.close()
    return own_code(made, request.candidate.source, compiled_texts(asked))


def own_code(libraries: Iterable[Path], source: str, texts: Texts = ()) -> OwnCode:
    """What these built libraries, made of these texts, and this Python source bring."""
    libraries = list(libraries)
    kernels, unseen, known = set(triton_kernels(source)), [], True
    for library in libraries:
        listing = _listing(library) or ""
        defined = {base_name(match["name"]) for match in _DEFINED.finditer(listing)}
        # The dynamic symbols can't be stripped.
        imports = _listing(library, "--dynamic", "--undefined-only")
        known &= bool(defined) and imports is not None
        kernels |= defined
        unseen += read_unseen(imports or "")
    return OwnCode(
        len(libraries), frozenset(kernels), tuple(sorted(dict.fromkeys(unseen))[:8]), known, texts
    )


def read_unseen(listing: str) -> list[str]:
    """Imports that hide from a trace, from what `nm --demangle --undefined-only` prints."""
    names = [match["name"].partition("@")[0] for match in _IMPORTED.finditer(listing)]
    return [base_name(name) for name in names if _UNSEEN.fullmatch(name)]


def triton_kernels(source: str) -> set[str]:
    tree = candidate_tree(source)
    if tree is None:
        return set()
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(re.match(r"(?:triton\.)?jit\b", ast.unparse(each)) for each in node.decorator_list)
    }


def _listing(library: Path, *options: str) -> str | None:
    return printed_by("nm", "--demangle", *options, str(library))
