"""Data of pandas and xarray with labels, as mappings from labels to values.

The libraries are recognized by attributes of their objects, because importing them is slow.
"""

from __future__ import annotations

from typing import Any

#: Types without labels, which need no look at their attributes.
_PLAIN_TYPES = (list, tuple, str, dict, float, int, type(None))


def by_label(value: Any) -> Any:
    """Return labeled data as a mapping from labels to values, and other objects unchanged.

    Labeled are a `pandas.Series` whose index consists of texts, a `pandas.DataFrame` whose columns
    are texts, and an `xarray.DataArray` whose last dimension has texts as coordinates. Their order
    is then of no importance.
    """
    if type(value) in _PLAIN_TYPES:
        return value
    if hasattr(value, "iloc"):
        is_table = hasattr(value, "columns")
        labels = list(value.columns if is_table else value.index)
        if not _are_texts(labels):
            return value
        columns = value.to_numpy().T
        return {label: columns[k].tolist() for k, label in enumerate(labels)}
    if hasattr(value, "coords") and hasattr(value, "dims") and hasattr(value, "values"):
        dimensions = list(value.dims)
        if not dimensions or dimensions[-1] not in value.coords:
            return value
        labels = value.coords[dimensions[-1]].values.tolist()
        if _are_texts(labels):
            return {label: value.values[..., k].tolist() for k, label in enumerate(labels)}
    return value


def _are_texts(labels: list[Any]) -> bool:
    """Return whether there are labels, and all are texts."""
    return bool(labels) and all(isinstance(label, str) for label in labels)
