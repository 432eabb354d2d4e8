"""A builder that says it took 2 seconds: see `stand_in_service`."""

import sys
from pathlib import Path

from tests.evaluator.executor.stand_in_service import StandIn

if __name__ == "__main__":
    stand_in = StandIn("build", sys.argv[2], Path(sys.argv[3]))
    stand_in.serve(int(sys.argv[1]), b'{"seconds": 2.0, "cached": false}')
