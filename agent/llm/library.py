"""LiteLLM, loaded late and kept quiet."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from typing import Any

_lock = threading.Lock()
_loaded: Any = None


def litellm() -> Any:
    """The `litellm` module: offline price map, silent. About 2 s the first time.

    Set before the import: the price map that came with the installed version (else the import
    downloads one, and prices differ from day to day) and no reading of `.env` files that happen
    to lie above the installation (`LITELLM_MODE=DEV` in the environment brings that back).
    """
    global _loaded
    with _lock:
        # LiteLLM goes on importing when first used, and pydantic warns of its types then, and of
        # how it looks at the pieces of a stream.
        warnings.filterwarnings("ignore", r"Items? '.*ReadOnly", UserWarning)
        warnings.filterwarnings("ignore", r"Accessing the 'model_\w+' attr", DeprecationWarning)
        if _loaded is None:
            os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
            os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
            import litellm as library

            library.suppress_debug_info = True  # it prints advice and links on stdout
            library.set_verbose = False
            for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
                # Below this it writes to stdout, and in debug mode whole prompts.
                logging.getLogger(name).setLevel(logging.ERROR)
            _loaded = library
        return _loaded
