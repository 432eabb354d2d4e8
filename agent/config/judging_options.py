"""Options of `python -m agent.run` that say by whom, and how strictly, kernels are judged."""

from __future__ import annotations

from typing import Annotated

from typer import Option

Executor = Annotated[
    str | None,
    Option(
        "--executor",
        metavar="local|ray",
        help="Who judges: processes on this machine, or the GPUs of a Ray cluster. [local]",
    ),
]
RayAddress = Annotated[
    str | None,
    Option(
        "--ray-address",
        metavar="HOST:PORT|auto",
        help="The cluster for --executor ray; auto: the one that runs on this machine. [a cluster "
        "of our own, here, on loopback]",
    ),
]
Audit = Annotated[
    bool | None,
    Option(
        "--audit/--no-audit",
        help="Audit each correct kernel in depth; or none, and look into no crash either. [correct "
        "ones whose time is hard to believe, and crashes]",
    ),
]
Require = Annotated[
    str | None,
    Option(
        "--require",
        metavar="any|custom|kept_results",
        help="custom: refuse kernels whose time goes into libraries. kept_results: refuse those "
        "whose next call overwrites the result. [any]",
    ),
]
Isolation = Annotated[
    str | None,
    Option(
        "--require-isolation",
        metavar="available|strict",
        help="strict: refuse to run unless every wall around kernels and compilers stands. "
        "[available: run behind those that this machine allows, and record which]",
    ),
]
