"""Reads MAT files for another process, one for each line of standard input; started as a script by `mat_reading`.

A damaged file can end SciPy's reader, and the process with it: this one holds nothing that could be lost.
A request is a line of JSON: path, and the bytes that its variables may take. The answer is a line of JSON, and behind
it the numbers of the columns that the line names. Nothing of Tauloop is imported, so that the process starts soon.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.io


def columns(prefix: str, content: dict[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """Vectors by name, columns of matrices by number, fields of structures by dots."""
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from columns(f"{name}.", value)
        elif isinstance(value, np.ndarray) and value.size and value.dtype.kind in "iuf":
            if value.ndim == 1:
                yield name, value
            elif value.ndim == 2:
                yield from ((f"{name}[{k}]", value[:, k]) for k in range(value.shape[1]))


def answer(path: str, most: float) -> tuple[dict[str, object], list[np.ndarray]]:
    """What is said of a file, and its numbers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", scipy.io.matlab.MatReadWarning)
            holds = sum(8 * math.prod(shape) for _, shape, _ in scipy.io.whosmat(path))
            if holds > most:
                return {"holds": holds}, []
            found = list(columns("", scipy.io.loadmat(path, simplify_cells=True)))
    except Exception as error:  # a damaged binary file can fail in any way inside SciPy
        return {"error": str(error)}, []
    return {"columns": [[name, array.dtype.str, len(array)] for name, array in found]}, [array for _, array in found]


def main() -> None:
    """Answer until the other process is gone."""
    for line in sys.stdin.buffer:
        head, arrays = answer(*json.loads(line))
        sys.stdout.buffer.write(json.dumps(head).encode() + b"\n")
        for array in arrays:
            sys.stdout.buffer.write(np.ascontiguousarray(array).data)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
