"""The two-run method in one call: parameters of a structure from runs with and without it.

The references are the formulas of the arm's regressor and of the actuators' own forces, and the fit
to the structure alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from identifying import without_faults
from planar_arm import MACHINE, TRUE, arm_log, arm_motion, arm_regressor

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.identification import PreparationOptions
from tauloop.logs import Signals, write_log

FRICTION = ", friction: {viscous: 0.1 N m s/rad, coulomb: 0.1 N m}"
FILTER = PreparationOptions(cutoff=30.0, trim=60)
#: The structure: a carriage of 0 kg that only connects, without friction.
STRUCTURE = (
    MACHINE.replace(FRICTION, "")
    .replace("    friction: {viscous: 0.1 N m s/rad, coulomb: 0.1 N m}\n", "")
    .replace("bodies:\n", "bodies:\n  cart: {mass: 0 kg}\n")
    .replace("parent: base, child: link1", "parent: cart, child: link1")
    .replace("joints:\n", "joints:\n  carriage: {type: fixed, parent: base, child: cart}\n")
)


def runs() -> dict[str, Signals]:
    """Return logs with torques of the structure, of the drives (with cogging), and of both."""
    motion = arm_motion(2400)
    _, q, v, a = motion
    structure = arm_regressor(q, v, a) @ TRUE
    own = 3.0 * np.tanh(v / 0.05) + 0.8 * np.sin(14 * q) + 0.3 * a
    forces = {"structure": structure, "disconnected": own, "connected": structure + own}
    return {
        name: arm_log(motion, force, noise=0.01, encoder=0.0, rng=np.random.default_rng(k))
        for k, (name, force) in enumerate(forces.items())
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    paths = {name: write_log(folder / f"{name}.csv", log.dataset()) for name, log in runs().items()}
    paths["machine"] = folder / "arm.yaml"
    paths["machine"].write_text(STRUCTURE, encoding="utf-8")
    return paths


def test_connected_and_disconnected_logs_give_the_structures_parameters(
    files: dict[str, Path],
) -> None:
    machine = tl.load(files["machine"])
    assert machine.bodies[0].inertia is None
    options = tl.IdentificationOptions(disconnected=(files["disconnected"],), preparation=FILTER)
    two = tl.identify(machine, files["connected"], options)
    plain = tl.IdentificationOptions(preparation=FILTER)
    with without_faults():
        alone = tl.identify(machine, files["structure"], plain)
        without = tl.identify(machine, files["connected"], plain)
    bars = 5 * np.hypot(
        two.identification.standard_deviations, alone.identification.standard_deviations
    )
    assert (np.abs(two.identification.values - alone.identification.values) < bars).all()
    wrong = np.abs(without.identification.values - alone.identification.values)
    assert (wrong > bars).any()
    assert any("own forces are subtracted" in line for line in two.repairs)
    assert any("two runs' motions" in item.name and item.is_good for item in two.diagnostics)


def test_runs_that_do_not_go_together_are_refused(files: dict[str, Path]) -> None:
    machine = tl.load(files["machine"])
    options = tl.IdentificationOptions(disconnected=(files["disconnected"],), preparation=FILTER)
    with pytest.raises(InputError, match="1 recording for 2 logs"):
        tl.identify(machine, [files["connected"], files["structure"]], options)
    with pytest.raises(InputError, match="cannot be combined with validation"):
        tl.IdentificationOptions(
            disconnected=(files["disconnected"],), validation=files["structure"]
        )
