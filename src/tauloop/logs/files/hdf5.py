"""HDF5 and MATLAB 7.3 files: data sets by dotted path, matrix columns as ``q[0]``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import LogError
from tauloop.logs.files.unpacking import require_ratio

#: MATLAB's group for the contents of cells and objects, and its attribute with a variable's class.
_REFERENCES = "#refs#"
_CLASS = "MATLAB_class"
#: Attributes of a data set that may contain its unit.
_UNIT_ATTRIBUTES = ("unit", "units")
_TEXT = (b"char", b"string", b"cell", b"function_handle")


def hdf5_columns(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the numeric columns (N,) of a file by name, and their units; needs h5py.

    MATLAB stores matrices by columns, so a matrix of MATLAB is transposed. Row and column vectors
    become one column.

    Raises:
        LogError: h5py is missing, or the file is damaged.
    """
    try:
        import h5py
    except ImportError:
        what = "HDF5 (and MATLAB 7.3) files need h5py, which is not installed"
        remedy = "pip install 'tauloop[hdf5]'"
        raise LogError.of("", what, remedy, file=str(path)) from None
    columns: dict[str, np.ndarray] = {}
    units: dict[str, str] = {}
    try:
        with h5py.File(path, "r") as file:
            data_sets = list(_data_sets(file, h5py, "", set()))
            require_ratio(path, sum(data.nbytes for _, data in data_sets))
            for name, data in data_sets:
                unit = next(
                    (_text(data.attrs[key]) for key in _UNIT_ATTRIBUTES if key in data.attrs), ""
                )
                for label, values in _columns(name, data):
                    columns[label] = values
                    units[label] = unit
    except LogError:
        raise
    except Exception as error:  # a damaged file can fail in any way inside HDF5
        what = f"not a readable HDF5 file: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        raise LogError.of("", what, "export the log again", file=str(path)) from None
    return columns, units


def _data_sets(group: Any, h5py: Any, prefix: str, visited: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield data sets below a group by dotted path, without those stored in other files.

    A group with several names is visited only once, because groups can contain each other or the
    same group repeatedly.
    """
    visited.add(h5py.h5o.get_info(group.id).addr)
    for key in group:
        if key == _REFERENCES or not isinstance(group.get(key, getlink=True), h5py.HardLink):
            continue
        child = group[key]
        name = f"{prefix}{key}"
        if isinstance(child, h5py.Group):
            if h5py.h5o.get_info(child.id).addr not in visited:
                yield from _data_sets(child, h5py, f"{name}.", visited)
        elif isinstance(child, h5py.Dataset) and not (child.external or child.is_virtual):
            yield name, child


def _columns(name: str, data: Any) -> Iterator[tuple[str, np.ndarray]]:
    matlab = data.attrs.get(_CLASS)
    if matlab is not None and bytes(matlab) in _TEXT:
        return
    if data.dtype.names and data.ndim == 1:  # a table: each field is a column
        for field in data.dtype.names:
            if data.dtype[field].kind in "iuf" and data.dtype[field].shape == ():
                yield f"{name}.{field}", np.asarray(data[field])
        return
    if data.dtype.kind not in "iuf" or data.size == 0 or data.ndim not in (1, 2):
        return
    values = np.asarray(data)
    if values.ndim == 2:
        values = values.T if matlab is not None else values
        if 1 not in values.shape:
            yield from (
                (f"{name}[{k}]", np.ascontiguousarray(values[:, k])) for k in range(values.shape[1])
            )
            return
    yield name, values.ravel()


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
