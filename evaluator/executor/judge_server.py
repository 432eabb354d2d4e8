"""The judge's process: `python -m evaluator.executor.judge_server FD DEVICE CACHE`."""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import sys
import threading
import traceback
from pathlib import Path

from pydantic import TypeAdapter

from evaluator.builder.builder import Builder
from evaluator.errors import InfrastructureError, UnknownFailureError
from evaluator.evaluation import AuditRequest, EvaluationRequest
from evaluator.hardware.devices import describe, see_only
from evaluator.ipc.service import leave_with, place_of, serve
from evaluator.ipc.wire import Channel
from evaluator.judge.workers.zygote import Zygote
from evaluator.rival import CheckRequest


def main(fd: int, device: str, cache: Path) -> None:
    leave_with(fd)
    device = see_only(device)
    # Both it and this process import torch, at the same time.
    zygote = Zygote(device=device)
    # Before torch is loaded: libgomp's idle threads would spin and disturb the worker in hand.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    # In the memory of a GPU that PyTorch keeps, tensors of any other sizes find a place then.
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    # Tensors of up to 32 MiB get memory that is kept: to ask the system took a third of verifying.
    libc = ctypes.CDLL(None)
    libc.mallopt(-3, 2**25)  # M_MMAP_THRESHOLD
    libc.mallopt(-1, 2**29)  # M_TRIM_THRESHOLD
    gc.disable()  # what is imported stays
    import torch

    from evaluator.collect.rival_figures import rival_figures
    from evaluator.deep_audit.deep_audit import DeepAuditor
    from evaluator.judge.cases import checked_at_each
    from evaluator.judge.judge import Judge

    gc.freeze()
    gc.enable()
    where = torch.device(device)
    if where.type == "cuda":
        torch.cuda.set_device(where)
        torch.zeros(1, device=where)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    builder = Builder(cache, cuda_arch=describe(device).cuda_architecture)
    warm_up = threading.Thread(target=_warm_up, args=(builder,), daemon=True)
    warm_up.start()
    line = Channel(socket.socket(fileno=os.dup(fd)))
    judge = Judge(where, builder, zygote, lambda kind, what: line.send(kind, what.encode()))
    broken_off = threading.Event()

    def ended() -> bool:
        # While a question is answered, nothing else comes.
        if not broken_off.is_set() and line.ready(0.0):
            line.receive()
            broken_off.set()
        return broken_off.is_set()

    auditor = DeepAuditor(judge, builder, ended)
    requests: TypeAdapter[AuditRequest | EvaluationRequest | CheckRequest] = TypeAdapter(
        AuditRequest | EvaluationRequest | CheckRequest
    )

    def answer(question: bytes) -> bytes:
        asked = requests.validate_json(question)
        request = (asked.request if isinstance(asked, AuditRequest) else asked).on(device)
        if where.type == "cpu":
            # A compiler beside it would disturb the timing.
            warm_up.join()
        try:
            if isinstance(request, CheckRequest):
                found = checked_at_each(request, lambda each: judge.check(each, rival_figures))
                return found.model_dump_json().encode()
            if isinstance(asked, AuditRequest):
                try:
                    evaluation = auditor.audited(request, asked.evaluation, *asked.earlier)
                finally:
                    broken_off.clear()
            else:
                evaluation = judge.evaluate(request)
        except InfrastructureError:
            raise
        except Exception as error:
            # It ends this evaluation and not the judge, unless the device is spoilt as well.
            traceback.print_exc()
            for each in request.at_each_case():
                judge.forget(each)
            raise UnknownFailureError(f"{error!r} in {place_of(error)}") from error
        return evaluation.model_dump_json().encode()

    try:
        serve(fd, answer, broken_off.set)
    finally:
        auditor.close()
        judge.close()


def _warm_up(builder: Builder) -> None:
    try:
        builder.warm_up()
    except InfrastructureError as error:
        # The first build meets the same error and reports it where it matters.
        print(f"warm-up of the builder: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
