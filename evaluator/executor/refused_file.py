"""A candidate whose file shows that it can't be judged: it is refused without a process."""

from __future__ import annotations

import ast
import traceback
import warnings

from evaluator.candidate_tree import MOST_CHARACTERS
from evaluator.evaluation import Evaluation, EvaluationRequest, Status
from evaluator.hardware.devices import describe
from evaluator.ipc.failure import no_class
from evaluator.judge.builds.built_ahead import refused_early
from evaluator.judge.rejection import Rejection
from evaluator.reason import Reason

_BINDS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


def refused_file(request: EvaluationRequest) -> Evaluation | None:
    """The verdict on a file that is no Python, or that plainly defines no `ModelNew`, in the words
    of the worker that would import it; None for any other."""
    source = request.candidate.source
    if len(source) > MOST_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, "candidate.py")
    except SyntaxError as error:
        reason = Reason.SYNTAX_ERROR if type(error) is SyntaxError else Reason.IMPORT_RAISED
        said = "".join(traceback.format_exception_only(error)).strip()
    except (ValueError, RecursionError, MemoryError):
        return None
    else:
        body = tree.body[ast.get_docstring(tree) is not None :]
        # What else a file does may bind more names, or end the process.
        plain = all(isinstance(each, _BINDS) for each in body) and "import *" not in source
        if not plain or "ModelNew" in source:
            return None
        classes = [each for each in body if isinstance(each, ast.ClassDef)]
        modules = [
            c.name for c in classes if any(ast.unparse(b).endswith("Module") for b in c.bases)
        ]
        reason, said = Reason.NO_MODEL_NEW, f"NameError: {no_class('ModelNew', modules)}"
    why = Rejection(Status.RUNTIME_ERROR, reason, f"import: {said}")
    note = "refused by what its file says: nothing of it was run"
    return refused_early(why, describe(request.settings.device).name, note)
