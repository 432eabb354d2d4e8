"""`python -m evaluator.recorder` turns a foreign suite's tasks into problem files.

Each line of stdin is a `TaskFiles`; what becomes of it goes to its `target`, or why it can't be
recorded to a file beside it.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evaluator.recorder.function_problem import function_of, problem_source
from evaluator.recorder.program import UnrecordableError
from evaluator.recorder.recording import FunctionTask, Recording
from problems.cache_folder import cache_folder
from problems.kernelbench_x import TaskFiles
from problems.plain_file import write_plain

_MOST_AT_ONCE = 8
"""Each takes a core, and at times as much memory as its walls allow."""


def main() -> None:
    tasks = [TaskFiles(**json.loads(line)) for line in sys.stdin]
    recording = Recording(cache_folder() / "recordings")
    width = max(1, min(len(os.sched_getaffinity(0)), _MOST_AT_ONCE))
    with ThreadPoolExecutor(width) as pool:
        list(pool.map(lambda task: _write(task, recording), tasks))


def _write(task: TaskFiles, recording: Recording) -> None:
    target = Path(task.target)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_plain(target, _source(task, recording))
    except UnrecordableError as error:
        write_plain(target.with_suffix(".txt"), str(error))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        # A file may write a record of its own.
        said = f"the record of its calls is not one of ours: {type(error).__name__}"
        write_plain(target.with_suffix(".txt"), said)


def _source(task: TaskFiles, recording: Recording) -> str:
    function = function_of(task.reference, Path(task.target).stem)
    given = FunctionTask(
        reference=task.reference,
        function=function.name,
        test=task.test,
        performance=task.performance,
    )
    return problem_source(task, function, recording.record(given))


if __name__ == "__main__":
    main()
