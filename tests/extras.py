"""What only the extras bring: a test gets it here, and is skipped where it is not installed. None imports it itself."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

import pytest

#: Module -> the extra of pyproject.toml, and the package in it that brings the module.
EXTRAS = {
    "clarabel": ("consistency", "clarabel"),
    "cupy": ("gpu", "cupy-cuda12x"),
    "cvxpy": ("consistency", "cvxpy"),
    "SALib": ("sensitivity", "SALib"),
    "distributed": ("cluster", "distributed"),
    "fmpy": ("fmu", "fmpy"),
    "foxglove": ("foxglove", "foxglove-sdk"),
    "h5py": ("hdf5", "h5py"),
    "imageio_ffmpeg": ("film", "imageio-ffmpeg"),
    "flint": ("design", "python-flint"),
    "jax": ("jax", "jax"),
    "mujoco": ("engines", "mujoco"),
    "nvidia": ("gpu", "nvidia-cuda-nvrtc-cu12"),
    "pinocchio": ("engines", "pin"),
    "plotly": ("report", "plotly"),
    "pyarrow": ("parquet", "pyarrow"),
    "pymoo": ("tuning", "pymoo"),
    "Pynite": ("dev", "PyNiteFEA"),
    "basedpyright": ("dev", "basedpyright"),
    "catkin_pkg": ("dev", "catkin_pkg"),
    "mpmath": ("dev", "mpmath"),
    "mcap": ("dev", "mcap-protobuf-support"),
    "mcap_protobuf": ("dev", "mcap-protobuf-support"),
    "mypy": ("dev", "mypy"),
    "pydrake": ("bench", "drake"),
    "exudyn": ("bench", "exudyn"),
    "pythonfmu": ("dev", "pythonfmu"),
    "pythonfmu3": ("dev", "pythonfmu3"),
    "rerun": ("rerun", "rerun-sdk"),
    "rosbags": ("ros", "rosbags"),
    "toppra": ("dev", "toppra"),
    "torch": ("torch", "torch"),
    "trimesh": ("view", "trimesh"),
    "viser": ("view", "viser"),
    "websockets": ("view", "viser"),
    "xacro": ("xacro", "xacro"),
    "yourdfpy": ("dev", "yourdfpy"),
}


def is_here(module: str) -> bool:
    """Whether an extra's module is installed."""
    return importlib.util.find_spec(module) is not None


def extra(module: str) -> ModuleType:
    """The module; the test (at the head of a file: the file) is skipped where it is not installed."""
    name, _ = EXTRAS[module.partition(".")[0]]
    pytest.importorskip(module, reason=f"needs the extra `{name}`, which brings {module}")
    return importlib.import_module(module)
