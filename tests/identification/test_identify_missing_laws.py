"""Laws of friction and of forces that a model lacks: findings with values, and options to add them.

The torques come from the closed formulae of `planar_arm` and from additional formulas, so that logs
do not depend on the machine's equations.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from identifying import identified
from planar_arm import FRICTION, MACHINE, TRUE, arm_log, arm_regressor

from tauloop.formats import loads
from tauloop.identification import WeightedLeastSquares, fit_regression, split_data
from tauloop.identification.estimation.block_fits import BLOCKS_PER_LOG, BlockFits
from tauloop.logs import Signals

RATE, DURATION = 200.0, 20.0  # Hz, s
OPTIONS: dict[str, Any] = {"cutoff": 30.0, "trim": 60, "decimation": 2}
TIME = np.arange(round(RATE * DURATION)) / RATE


def motion(seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return times and q, v, a of sines whose phases depend on the seed."""
    w, size = (
        np.array([[2.1, 4.3, 7.9], [3.1, 5.9, 9.1]]),
        np.array([[0.6, 0.35, 0.15], [0.7, 0.3, 0.12]]),
    )
    angle = w * TIME[:, None, None] + np.random.default_rng(seed).uniform(0.0, 6.28, (2, 3))
    parts = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    return (TIME, *(part.sum(axis=2) for part in parts))


MOTION = motion()
_, Q, V, A = MOTION
FORCES = arm_regressor(Q, V, A) @ TRUE + FRICTION * (V + np.sign(V))
#: Stribeck velocity of the friction that the model lacks, rad/s.
STRIBECK_VELOCITY = 0.4
#: Forces that the model lacks at the elbow, N m, in addition to forces of about 5 N m.
ELBOW, SPEED = Q[:, 1], V[:, 1]
LAWS = {
    "stribeck": 0.3 * np.sign(SPEED) * np.exp(-((SPEED / STRIBECK_VELOCITY) ** 2)),
    "asymmetric": 0.1 * np.abs(SPEED),
    "position": 0.3 * np.sin(5.0 * ELBOW),
    "load": 0.05 * np.abs(FORCES[:, 1]) * np.sign(SPEED),
}
EXPECTED_TEXTS = {
    "stribeck": "has friction that is larger below about",
    "asymmetric": "has different friction in the two directions",
    "position": "has a force that depends on its position",
    "load": "has friction that grows with the force it transmits",
}


ARM = loads(MACHINE)
#: Largest remaining share of the error with the right law in a size that is nearly right.
MAX_REMAINING_ERROR = 0.2


def log_of(forces: np.ndarray, moved: tuple[np.ndarray, ...] = MOTION) -> Signals:
    return arm_log(moved, forces, rng=np.random.default_rng(8))


@pytest.mark.parametrize("law", LAWS)
def test_a_law_that_the_model_lacks_is_named_at_its_joint(law: str) -> None:
    document = identified(
        ARM, log_of(FORCES + np.stack([np.zeros_like(TIME), LAWS[law]], axis=1)), **OPTIONS
    )
    assert document["status"] != "ok"
    (finding,) = document["findings"]
    assert finding["where"] == "elbow"
    assert EXPECTED_TEXTS[law] in finding["what"]
    assert "of the largest force" in finding["what"]
    assert "standard deviations" in finding["what"]


def test_a_law_passes_the_filter_of_the_forces() -> None:
    """With a low cut-off and the right law, whose columns jump at reversals, only noise remains."""
    lacking = np.stack([np.zeros_like(TIME), LAWS["stribeck"]], axis=1)
    log = arm_log(MOTION, FORCES + lacking, noise=0.002, encoder=0.0, rng=np.random.default_rng(8))
    (finding,) = identified(ARM, log, cutoff=8.0, trim=60, decimation=1)["findings"]
    matched = re.search(r"falls from (\S+) to (\S+) % of the largest force", finding["what"])
    before, after = float(matched[1]), float(matched[2])
    assert after < MAX_REMAINING_ERROR * before


@pytest.mark.parametrize("law", ["stribeck", "asymmetric"])
def test_the_option_that_it_names_makes_the_result_ok_and_its_bars_right(law: str) -> None:
    log = log_of(FORCES + np.stack([np.zeros_like(TIME), LAWS[law]], axis=1))
    plain = identified(ARM, log, **OPTIONS)
    option, text = plain["findings"][0]["remedy"].partition("--")[2].split(" ", 1)
    element, _, size = text.strip('"').partition("=")
    mended = identified(ARM, log, **OPTIONS, **{option: {element: size} if size else (element,)})
    assert mended["status"] == "ok"
    assert mended["findings"] == []
    truth = {"elbow.viscous": FRICTION, "shoulder.coulomb": FRICTION, "shoulder.viscous": FRICTION}

    def off(document: dict[str, Any]) -> float:
        rows = {row["name"]: row for row in document["base_parameters"]}
        return max(
            abs(rows[name]["value"] - true) / rows[name]["standard_deviation"]
            for name, true in truth.items()
        )

    assert off(mended) < 4.0
    assert off(plain) > 4.0 or law == "asymmetric"


def test_friction_that_the_machine_file_has_not_at_all_is_named() -> None:
    bare = MACHINE.replace(", friction: {viscous: 0.1 N m s/rad, coulomb: 0.1 N m}", "", 1)
    assert bare != MACHINE
    document = identified(loads(bare), log_of(FORCES), **OPTIONS)
    (finding,) = document["findings"]
    assert finding["where"] == "motor_1"
    assert "has friction, but the model has none for it" in finding["what"]


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_said_of_sound_logs(seed: int) -> None:
    moved = motion(seed)
    _, q, v, a = moved
    forces = arm_regressor(q, v, a) @ TRUE + FRICTION * (v + np.sign(v))
    document = identified(ARM, log_of(forces, moved), **OPTIONS)
    assert document["status"] == "ok"
    assert document["findings"] == []


def test_errors_of_blocks_are_those_of_fits_to_all_others() -> None:
    """The reference solves the rows of all other blocks in NumPy, with the same weights."""
    from planar_arm import arm_data

    data = arm_data(600, noise=(0.05, 0.2))
    result = fit_regression(*split_data(data), WeightedLeastSquares())
    columns = np.sin(np.arange(600.0))[:, None, None] * np.ones((1, 2, 1))
    outcome = BlockFits.of([data], result).errors([columns])
    weights = 1.0 / np.array([case.rmse for case in result.training])
    rows = np.concatenate([data.regressor[:, :, result.base.independent], columns], axis=2)
    for block, at in enumerate(np.array_split(np.arange(600), BLOCKS_PER_LOG)):
        rest = np.setdiff1d(np.arange(600), at)
        stacked = (rows[rest] * weights[:, None]).reshape(-1, rows.shape[2])
        values = np.linalg.lstsq(stacked, (data.forces[rest] * weights).ravel(), rcond=None)[0]
        assert outcome[block] == pytest.approx(
            np.sqrt(np.mean((data.forces[at] - rows[at] @ values) ** 2, axis=0)), rel=1e-6
        )
