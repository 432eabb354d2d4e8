"""A judge that finds every candidate correct: see `stand_in_service`."""

import sys
from pathlib import Path

from evaluator.evaluation import BuildReport, Correctness, Evaluation, Seconds, Status
from tests.evaluator.executor.stand_in_service import StandIn

VERDICT = Evaluation(
    status=Status.CORRECT,
    build=BuildReport(ok=True, cached=True, headers="light"),
    correctness=Correctness(calls_judged=3, calls_made=3),
    device="stand-in",
    conditions={"threads": 1, "problems_set_up": 1},
    seconds=Seconds(judge=1.0),
)

if __name__ == "__main__":
    stand_in = StandIn("judge", sys.argv[2], Path(sys.argv[3]))
    stand_in.serve(int(sys.argv[1]), VERDICT.model_dump_json().encode())
