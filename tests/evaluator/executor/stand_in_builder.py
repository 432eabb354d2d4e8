"""A builder that says it took 2 seconds: see `stand_in_service`."""

import sys
from pathlib import Path

from evaluator.evaluation import Evaluation, Status
from evaluator.judge.builds.built_ahead import BuiltAhead
from tests.evaluator.executor.stand_in_service import StandIn

BUILT = BuiltAhead(seconds=2.0, cached=False)
REFUSED = Evaluation(status=Status.TIMEOUT, reason="import_timeout", device="stand-in")

if __name__ == "__main__":
    stand_in = StandIn("build", sys.argv[2], Path(sys.argv[3]))
    refusal = BUILT.model_copy(update={"refused": REFUSED})
    stand_in.serve(
        int(sys.argv[1]),
        BUILT.model_dump_json().encode(),
        refusal.model_dump_json().encode(),
    )
