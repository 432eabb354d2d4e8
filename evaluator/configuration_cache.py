"""Configurations of Hugging Face models that a judge has found, kept for processes behind walls."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from problems import cache_folder

Configuration = dict[str, Any]
"""What a `config.json` holds."""
Configurations = dict[str, Configuration]
"""Each by the name that the problem gives."""


def keep(name: str, values: Configuration) -> None:
    """Keep a configuration under the user's cache folder, in place of an earlier one."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    path = cache_folder.cache_folder() / "configurations" / f"{digest}.json"
    # Where nothing can be kept, a profiler will miss it, and say so.
    cache_folder.keep(path, json.dumps({"name": name, "values": values}))


def kept_for(source: str) -> Configurations:
    """The kept configurations whose names stand in a problem's source."""
    files = (cache_folder.cache_folder() / "configurations").glob("*.json")
    kept = [json.loads(file.read_text()) for file in files]
    return {each["name"]: each["values"] for each in kept if each["name"] in source}
