"""The base of everything that the evaluator writes to disk or sends to another process."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of all records: frozen, and an unknown field is an error."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        serialize_by_alias=True,
        validate_by_name=True,
        # A mismatch may show a NaN, and it must read back as one.
        ser_json_inf_nan="strings",
    )

    def as_json(self) -> dict[str, Any]:
        """To be part of larger JSON. A NaN is a string in it, as `model_dump` would not make it."""
        return dict(json.loads(self.model_dump_json()))
