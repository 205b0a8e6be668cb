"""Frames and bodies as reduced finite-element models: matrices of an external program."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tauloop.common.counts import counted
from tauloop.common.records import dataclass
from tauloop.mechanism.placement import Vector

#: Number of rows of an interface node: x, y, z, rx, ry, rz.
NODE_ROWS = 6
#: Maximum number of rows of a matrix, and largest size of its file, bytes.
MAX_ROWS, MAX_BYTES = 3000, 200_000_000
#: Relative asymmetry and relative magnitude of a negative eigenvalue up to which both count as
#: rounding errors. Programs print matrices with six digits.
ROUNDING = 1e-5


class MatrixError(ValueError):
    """Error of a matrix, with what is wrong and the remedy."""

    def __init__(self, what: str, remedy: str) -> None:
        """Store what is wrong and the remedy."""
        super().__init__(what)
        self.what, self.remedy = what, remedy


class NumericMatrix:
    """An immutable square matrix of numbers; equal values compare equal."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray[np.float64]) -> None:
        """Store a read-only copy of an array (n, n)."""
        self.array = np.array(array, dtype=np.float64)
        self.array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumericMatrix) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))

    def __repr__(self) -> str:
        return f"NumericMatrix of {counted(len(self.array), 'row')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedStructure:
    """A frame or body as a reduced finite-element model.

    Matrix rows are x, y, z, rx, ry, rz of each interface node in body axes, then internal modes.

    Attributes:
        name: unique name.
        body: the modeled body.
        nodes: positions of the interface nodes in body coordinates, m.
        interfaces: names of the joints, rods or frames at the nodes; "" for a point.
        stiffness: stiffness matrix K, SI.
        mass: mass matrix M, SI; None if the file states none. Vibration needs it.
        files: the files of the matrices: one .npz, or CSV files of K and M.
    """

    name: str
    body: str
    nodes: tuple[Vector, ...]
    interfaces: tuple[str, ...]
    stiffness: NumericMatrix
    mass: NumericMatrix | None
    files: tuple[Path, ...]


def read_archive(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return the arrays `K` and `M` of a NumPy file (.npz); M is None if it is absent.

    Raises:
        MatrixError: the file cannot be read or is not such a file. Pickled objects are rejected.
    """
    _require_small(path)
    try:
        if not zipfile.is_zipfile(path):
            raise MatrixError(
                "is not a NumPy file (.npz)", "write it with np.savez(file, K=K, M=M)"
            )
        with zipfile.ZipFile(path) as archive:
            size = sum(item.file_size for item in archive.infolist())
        if size > MAX_BYTES:
            raise MatrixError(
                f"its arrays are {size / 1e6:.0f} MB, larger than {MAX_BYTES / 1e6:.0f} MB",
                "reduce the model to fewer nodes",
            )
        with np.load(path, allow_pickle=False) as arrays:
            if "K" not in arrays.files:
                names = ", ".join(arrays.files[:8]) or "none"
                raise MatrixError(f"has no array K; its arrays: {names}", "store K, and M, by name")
            K = np.asarray(arrays["K"])
            M = np.asarray(arrays["M"]) if "M" in arrays.files else None
    except MatrixError:
        raise
    except Exception as error:
        # NumPy parses a damaged header as Python source, which can raise any exception
        raise MatrixError(
            f"cannot be read as a NumPy file: {type(error).__name__}",
            "write it with np.savez(file, K=K, M=M), with arrays of numbers only",
        ) from None
    return K, M


def read_csv(path: Path) -> NDArray[np.float64]:
    """Return the matrix of a CSV file that contains only numbers, with one row per line.

    Raises:
        MatrixError: the file cannot be read or is not such a file.
    """
    _require_small(path)
    try:
        return np.loadtxt(path, delimiter=",", comments="#", ndmin=2)
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise MatrixError(
            f"cannot be read as a CSV matrix: {str(error)[:120]}",
            "write comma-separated numbers, one row per line",
        ) from None


def _require_small(path: Path) -> None:
    if not path.is_file():
        raise MatrixError("there is no such file", "correct the path")
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise MatrixError(
            f"the file is {size / 1e6:.0f} MB, larger than {MAX_BYTES / 1e6:.0f} MB",
            "reduce the model to fewer nodes",
        )


def checked_matrix(name: str, array: NDArray[np.float64], nodes: int) -> NumericMatrix:
    """Return a stiffness or mass matrix after checking its shape, symmetry and eigenvalues.

    Args:
        name: name of the matrix for messages.
        array: as read.
        nodes: number of interface nodes.

    Raises:
        MatrixError: the array is not a square matrix of finite numbers, has too few rows for the
            nodes, is not symmetric, or has a negative eigenvalue.
    """
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.dtype.kind not in "fiu":
        shape = " x ".join(map(str, array.shape))
        raise MatrixError(
            f"{name} is not a square matrix of real numbers ({shape}, {array.dtype})",
            "write one row and one column for each degree of freedom",
        )
    rows = len(array)
    if not NODE_ROWS * nodes <= rows <= MAX_ROWS:
        raise MatrixError(
            f"{name} has {counted(rows, 'row')}; {counted(nodes, 'node', 'need')} at least "
            f"{NODE_ROWS * nodes}, and at most {MAX_ROWS} are permitted",
            "list all interface nodes in the order of the matrix, with 6 rows each",
        )
    matrix = array.astype(np.float64)
    if not np.isfinite(matrix).all():
        raise MatrixError(f"{name} has entries that are not finite", "correct the file")
    scale = np.sqrt(np.abs(np.diag(matrix)))
    scale[scale == 0.0] = 1.0
    scaled = matrix / np.outer(scale, scale)
    difference = float(np.abs(scaled - scaled.T).max())
    if difference > ROUNDING:
        raise MatrixError(
            f"{name} is not symmetric: entries differ by {difference:.2g} relative to the diagonal",
            "export the whole matrix with all digits",
        )
    symmetric = (scaled + scaled.T) / 2
    smallest = float(np.linalg.eigvalsh(symmetric)[0])
    if smallest < -ROUNDING * rows:
        raise MatrixError(
            f"{name} has a negative eigenvalue, {smallest:.2g} relative to its diagonal",
            "export the matrix with all digits, and check its units (SI) and signs",
        )
    return NumericMatrix((matrix + matrix.T) / 2)
