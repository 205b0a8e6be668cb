"""JSON Schema of machine files."""

from __future__ import annotations


def json_schema() -> dict[str, object]:
    """The schema."""
    return {}
