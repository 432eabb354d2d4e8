"""The base of everything that the evaluator writes to disk or sends to another process."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of all records: frozen, and an unknown field is an error."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        # A mismatch may show a NaN, and it must read back as one.
        ser_json_inf_nan="strings",
    )
