"""What only the extras bring: a test gets it here, and is skipped where it is not installed. None imports it itself."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

#: Module -> the extra of pyproject.toml that brings it, and the name that people know it by.
EXTRAS = {
    "clarabel": ("consistency", "Clarabel"),
    "cvxpy": ("consistency", "CVXPY"),
    "h5py": ("hdf5", "h5py"),
    "mujoco": ("engines", "MuJoCo"),
    "pinocchio": ("engines", "Pinocchio"),
    "pyarrow": ("parquet", "PyArrow"),
    "pymoo": ("tuning", "pymoo"),
    "viser": ("view", "viser"),
    "websockets": ("view", "websockets"),
}


def extra(module: str) -> ModuleType:
    """The module, or the test (at the head of a file: the file) is skipped."""
    brought_by, name = EXTRAS[module.partition(".")[0]]
    pytest.importorskip(module, reason=f"needs {name}, of the extra `{brought_by}`, which is not installed")
    return importlib.import_module(module)
