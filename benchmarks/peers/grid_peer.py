"""GRiD (`grid-rbd`) on machines without loops: agreement with Tauloop, and speed of its dynamics.

It generates CUDA code from a URDF and has nvcc compile it, one block of threads a sample. Here it
gets the URDF that `tauloop convert` writes. Its reference in Python (`RBDReference`, of the same
package) needs no GPU, and checks the conversion on every computer.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.formats.urdf.writer import write_urdf
from tauloop.model import Model

ALGORITHMS = ["inverse_dynamics", "forward_dynamics"]
GRAVITY = -9.81


def compared(model: Model, samples: int) -> float:
    """Return the deviation of GRiD's reference from Tauloop, relative to the largest torque at random motions."""
    import RBDReference
    import URDFParser

    q, v, a = _motions(model, samples)
    with tempfile.TemporaryDirectory() as folder, _silent():
        robot = URDFParser.URDFParser().parse(str(_written(model, Path(folder))))
        theirs = RBDReference.RBDReference(robot)
        torques = np.array(
            [theirs.inverse_dynamics(*motion, GRAVITY)[0] for motion in zip(q, v, a, strict=True)]
        )
    own = _own(model, q, v, a)
    return float(np.abs(torques - own).max() / np.abs(own).max())


def generated(model: Model, folder: Path, dtype: str = "float64") -> dict[str, Any]:
    """Write GRiD's CUDA code for a machine into a folder; this needs neither nvcc nor a GPU."""
    from grid_rbd._compile import generate_sources

    options = {"floating_base": False, "algorithm_list": ALGORITHMS, "dtype": dtype}
    with _silent():
        return dict(generate_sources(_written(model, folder), options, folder / "source"))


def rates(model: Model, samples: int, budget: float, dtype: str = "float64") -> dict[str, float]:
    """Return samples per second on the GPU, of PyTorch arrays that stay there, and the deviation from Tauloop.

    Raises:
        RuntimeError: nvcc, PyTorch or a GPU is missing.
    """
    import grid_rbd
    import torch

    q, v, a = (
        np.tile(array, (-(-samples // 2048), 1))[:samples] for array in _motions(model, 2048)
    )
    own = _own(model, q[:2048], v[:2048], a[:2048])
    with tempfile.TemporaryDirectory() as folder, _silent():
        path = _written(model, Path(folder))
        robot = grid_rbd.register_robot(
            model.mechanism.name.replace("-", "_"),
            str(path),
            max_batch_size=samples,
            cache_dir=folder,
            backend="torch",
            dtype=dtype,
            algorithm_list=ALGORITHMS,
        )
        kind = torch.float64 if dtype == "float64" else torch.float32
        there = [torch.as_tensor(array, dtype=kind, device="cuda") for array in (q, v, a)]
        torque = robot.inverse_dynamics(*there)
        work = {
            "inverse_dynamics": lambda: robot.inverse_dynamics(*there),
            "forward_dynamics": lambda: robot.forward_dynamics(there[0], there[1], torque),
        }
        result = {
            "deviation": float(np.abs(torque[:2048].cpu().numpy() - own).max() / np.abs(own).max())
        }
        for name, call in work.items():
            best, end = np.inf, time.perf_counter() + budget
            while time.perf_counter() < end:
                torch.cuda.synchronize()
                begin = time.perf_counter()
                call()
                torch.cuda.synchronize()
                best = min(best, time.perf_counter() - begin)
            result[name] = samples / best
    return result


def _motions(model: Model, samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random motions of the joints of a machine that drives each of them."""
    rng, n = np.random.default_rng(3), len(model.mechanism.actuators)
    return (
        rng.uniform(-1.0, 1.0, (samples, n)),
        rng.normal(size=(samples, n)),
        rng.normal(size=(samples, n)),
    )


def _own(model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return Tauloop's joint torques (N, n), A^T Y pi, of what a URDF describes: bodies without friction and rotors.

    A URDF's joints are at zero in the reference pose.
    """
    A, bodies = model.assembly.loops.transmission, {body.name for body in model.mechanism.bodies}
    pi = np.where([parameter.element in bodies for parameter in model.parameters], model.pi, 0.0)
    return np.asarray(
        model.actuators.regressor(model.actuator_position(q + model.assembly.q), v @ A.T, a @ A.T)
        @ pi
        @ A
    )


def _written(model: Model, folder: Path) -> Path:
    write_urdf(model.mechanism, folder / "robot.urdf")
    return folder / "robot.urdf"


@contextlib.contextmanager
def _silent() -> Any:
    """Hide what GRiD's parser prints, such as warnings of links without mass."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
