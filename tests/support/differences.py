"""Functions of machines at assembled states, and differences along displacements of their inputs."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from conftest import shared_folder
from tauloop import Model, load, loads
from tauloop.equations.ports import Entry
from tauloop.equations.topology import integrate
from tauloop.formats.library import source_path
from tauloop.formats.urdf.reader import load_urdf
from tauloop.kinematics import random_states

#: Steps of differences, and their weights at 1, 2, 3 and 4 steps: of eighth order, rounding is what
#: is left. Smaller ones are for the edge of the reach and joints that would turn within a larger
#: one, the larger one for rounding.
STEPS, WEIGHTS = (1e-3, 8e-3, 2e-4, 5e-5), np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
MODELS = shared_folder() / "models"
FOREIGN = {
    **{
        name: (
            f"example_parallel_robots/{name}/robot.urdf",
            f"example_parallel_robots/{name}/robot.yaml",
        )
        for name in ("5bar_linkage_iso3d", "5bar_linkage_iso6d", "digit_like", "robot_delta")
    },
    **{
        name: (f"grbda/{name}.urdf", "")
        for name in ("four_bar", "six_bar", "planar_leg_linkage", "revolute_rotor_chain")
    },
}


#: A four-bar whose rocker is driven too.
REDUNDANT = "four_bar with two motors"


@functools.cache
def machine(name: str) -> Model:
    if name == REDUNDANT:
        text = source_path("four_bar").read_text(encoding="utf-8")
        return Model(
            loads(
                text.replace(
                    "  motor: {on", "  second: {on: rocker_pin, force: 2 N m}\n  motor: {on"
                )
            )
        )
    if name not in FOREIGN:
        return Model(load(name))
    if not MODELS.is_dir():
        pytest.skip("the models of others are not here (../shared/models)")
    urdf, side = FOREIGN[name]
    return Model(
        load_urdf(MODELS / urdf, MODELS / side)
        if side
        else load_urdf(MODELS / urdf, gravity=(0, 0, -9.81))
    )


class Differences:
    """A function at states, and its differences along displacements of its inputs."""

    def __init__(self, model: Model, entry: Entry, function: str, samples: int = 2) -> None:
        self.model, self.motion, self.function = model, model.functions(entry), function
        rng = np.random.default_rng(11)
        states = random_states(model, samples, rng)
        ports = self.motion.ports
        inverse = np.linalg.inv(ports.to_v).T
        self.start = states.q
        forces = rng.normal(size=(len(states.q), len(model.mechanism.actuators)))
        last = forces if function == "forward_dynamics" else states.a[:, list(ports.v)] @ inverse
        self.names = (
            "position",
            "velocity",
            "force" if function == "forward_dynamics" else "acceleration",
        )
        self.inputs = dict(
            zip(
                self.names,
                (ports.at(states.q), states.v[:, list(ports.v)] @ inverse, last),
                strict=True,
            )
        )

    def values(self, inputs: dict[str, np.ndarray], start: np.ndarray) -> dict[str, np.ndarray]:
        result = getattr(self.motion, self.function)(*inputs.values(), start=start)
        if self.function == "inverse_dynamics":
            return {"force": result.force, "closure_force": result.closure_force}
        if self.function == "forward_dynamics":
            return {"acceleration": self.motion.ports.rates(result.a)}
        return {"q": result.q, "v": result.v, "a": result.a}

    def by(self, name: str, size: float = STEPS[0]) -> dict[str, np.ndarray]:
        """Jacobians (N, n, m) by an input, all displacements in a batch."""
        steps = size * np.array([1, -1, 2, -2, 3, -3, 4, -4])
        count, samples = self._count(name), len(self.start)
        inputs = {
            key: np.tile(array, (count * len(steps), 1)) for key, array in self.inputs.items()
        }
        start = np.tile(self.start, (count * len(steps), 1))
        places = [(k, s) for k in range(count) for s in steps]
        for place, (k, step) in enumerate(places):
            rows = slice(place * samples, (place + 1) * samples)
            if name == "position":
                moved = step * self.motion.embedding(self.inputs[name], start=self.start)[:, :, k]
                start[rows] = integrate(self.model.topology, self.start, moved)
                inputs[name][rows] = self.motion.ports.at(start[rows])
            else:
                inputs[name][rows, k] += step
        values = self.values(inputs, start)
        made = {}
        for output, array in values.items():
            rows = array.reshape(count, len(steps), samples, -1)
            if output == "q":
                rows = self._displacements(rows)
            differences = rows[:, 0::2] - rows[:, 1::2]
            made[output] = np.einsum("s,ksni->nik", WEIGHTS, differences) / size
        return made

    def _count(self, name: str) -> int:
        return (
            self.inputs[name].shape[-1] if name != "position" else self.motion.ports.velocity.size
        )

    def _displacements(self, q: np.ndarray) -> np.ndarray:
        """Displacements (..., n_v) from the states; of a rotation the vector that it turns about, by its angle."""
        topology = self.model.topology
        moved = np.zeros((*q.shape[:-1], topology.n_v))
        for i, j in enumerate(topology.q_of_v):
            if j >= 0:
                moved[..., i] = q[..., j] - self.start[:, j]
        for iq, iv in topology.quaternions:
            w, xyz = q[..., iq], q[..., iq + 1 : iq + 4]
            w0, xyz0 = self.start[:, iq], self.start[:, iq + 1 : iq + 4]
            real = w * w0 + (xyz * xyz0).sum(axis=-1)
            turned = (
                -w[..., None] * xyz0
                + w0[:, None] * xyz
                - np.cross(xyz, np.broadcast_to(xyz0, xyz.shape))
            )
            size = np.linalg.norm(turned, axis=-1)
            angle = 2 * np.arctan2(size, real)
            moved[..., iv : iv + 3] = (
                turned * np.where(size > 0, angle / np.maximum(size, 1e-300), 2)[..., None]
            )
        return moved


def difference(values: np.ndarray, expected: np.ndarray) -> float:
    return float(
        np.abs(values - expected).max(initial=0.0) / max(np.abs(expected).max(initial=0.0), 1.0)
    )
