"""Certified boxes by name, their proofs in files, and checks of these in arb."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.model.model import modeled

BOX = "x=-0.1:0.1,y=-0.1:0.1,z=-0.52:-0.48"


@pytest.fixture(scope="module")
def proof_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A proof on a box of the delta."""
    result = tl.certify("delta", ranges=BOX, parallel=0.5, drawing_limits=True)
    assert result.verdict == "proved"
    return result.write_proof(tmp_path_factory.mktemp("proof") / "delta.json")


def test_a_proof_holds_in_another_arithmetic(proof_file: Path) -> None:
    extra("flint")
    check = tl.check_certificate("delta", proof_file)
    assert check.status is Status.OK
    assert check.boxes == len(json.loads(proof_file.read_text())["boxes"]) > 1
    assert check.claims.parallel == 0.5


def remove_box(proof: dict[str, Any]) -> None:
    """Leave one box out."""
    proof["boxes"].pop()
    proof["solutions"].pop()


def enlarge_box(proof: dict[str, Any]) -> None:
    """Double one box along its first divided axis."""
    level, index = proof["boxes"][0]
    axis = next(i for i, value in enumerate(level) if value > 0)
    level[axis] -= 1
    index[axis] //= 2


def widen_range(proof: dict[str, Any]) -> None:
    """Claim the same of a box far beyond reach."""
    proof["upper"][0] = 0.4


def raise_claim(proof: dict[str, Any]) -> None:
    """Claim more than the reference pose has."""
    proof["claims"]["parallel"] = 0.95


def change_solution(proof: dict[str, Any]) -> None:
    """Start one box on the other assembly mode of a leg: its elbow turned inwards."""
    proof["solutions"][0][0] = 2.6


def shorten_path(proof: dict[str, Any]) -> None:
    """Leave the path from the reference out."""
    proof["path"] = {"cuts": [0.0], "solutions": []}


@pytest.mark.parametrize(
    "change",
    [remove_box, enlarge_box, widen_range, raise_claim, change_solution, shorten_path],
)
def test_a_changed_proof_fails(
    change: Callable[[dict[str, Any]], None], proof_file: Path, tmp_path: Path
) -> None:
    extra("flint")
    proof = json.loads(proof_file.read_text())
    change(proof)
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(proof))
    assert tl.check_certificate("delta", changed).status is Status.DOUBTFUL


def test_a_proof_of_another_machine_fails(proof_file: Path) -> None:
    extra("flint")
    check = tl.check_certificate("nuwar", proof_file)
    assert "another machine" in check.problems[0]
    longer = tl.load("delta").with_values({"forearm_length": 0.481})
    assert "other parameters" in tl.check_certificate(longer, proof_file).problems[0]


@pytest.mark.parametrize("text", ["", "{}", '{"format": "tauloop-certificate/1"}', "[1]"])
def test_a_file_that_is_no_certificate_is_refused(text: str, tmp_path: Path) -> None:
    extra("flint")
    path = tmp_path / "proof.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"certificate|lacks"):
        tl.check_certificate("delta", path)


def test_all_claims_of_a_gantry_are_proved_and_checked(tmp_path: Path) -> None:
    extra("flint")
    ranges = "x=-0.05:0.05,y=-0.05:0.05,z=-0.05:0.05,rx=-2deg:2deg"
    result = tl.certify(
        "gantry_tau_5dof",
        ranges=ranges,
        serial=0.2,
        constraint=0.1,
        clearance="60mm",
        cone="30deg",
        parallel=0.1,
    )
    assert result.verdict == "proved"
    check = tl.check_certificate("gantry_tau_5dof", result.write_proof(tmp_path / "gantry.json"))
    assert check.status is Status.OK


def test_clearance_is_that_of_the_workspace(tmp_path: Path) -> None:
    """A bound above the least distance in a box is refuted with a pose whose distance is below it."""
    from tauloop.geometry.clearance import rod_clearance

    model = modeled("gantry_tau_5dof")
    rods = rod_clearance(model)
    ranges = "x=-0.05:0.05,y=-0.05:0.05,z=-0.05:0.05"
    result = tl.certify(model, ranges=ranges, clearance=0.25)
    assert result.verdict == "refuted"
    assert result.violated is not None
    assert result.violated.startswith("clearance")
    assert result.counterexample is not None
    assert result.excess is not None
    assert result.excess < 0
    x = np.array([list(result.counterexample.values())])
    distances = rods.distances(model.platform.kinematics(x).q)
    assert np.abs(distances - 0.25 - result.excess).min() < 1e-9


def test_every_machine_within_tolerances_is_certified() -> None:
    """Leg lengths at samples of the tolerances stay within the proved stops; a large one is refuted."""
    box = "x=-0.02:0.02,y=-0.02:0.02,z=0.34:0.38"
    small = tl.certify("hexapod", ranges=box, parallel=0.6, deviations="base_radius=0.1mm")
    nominal = tl.certify("hexapod", ranges=box, parallel=0.6)
    large = tl.certify(
        "hexapod", ranges=box, parallel=0.6, deviations="base_radius=300mm", max_boxes=500
    )
    assert nominal.verdict == small.verdict == "proved"
    assert large.verdict != "proved"


def test_the_largest_box_ends_where_a_stop_begins() -> None:
    """Along z alone the hexapod's legs reach 0.53 m at a height that follows from Pythagoras."""
    result = tl.certify("hexapod", ranges="z=0.35:0.37", maximize_box=True)
    angle = np.radians(40)
    across = 0.35**2 + 0.2**2 - 2 * 0.35 * 0.2 * np.cos(angle)
    low, high = np.sqrt(0.33**2 - across), np.sqrt(0.53**2 - across)
    half = min(high - 0.36, 0.36 - low)
    lower, upper = result.ranges["platform.z"]
    assert result.verdict == "proved"
    assert upper - 0.36 <= half
    assert upper - 0.36 >= 0.97 * half
    assert 0.36 - lower == pytest.approx(upper - 0.36, abs=1e-12)


def test_an_exhausted_budget_reports_what_was_proved() -> None:
    ranges = "x=-0.03:0.03,y=-0.03:0.03,z=0.33:0.39,rx=-10deg:10deg,ry=-10deg:10deg"
    result = tl.certify("hexapod", ranges=ranges, parallel=0.65, moment_length=0.2, max_boxes=1600)
    assert result.verdict == "undecided"
    assert 0.0 < result.undecided < 1.0
    assert 0.0 <= result.measures["parallel singularity"] < 0.65
    assert result.status is Status.DOUBTFUL
    with pytest.raises(InputError, match="undecided"):
        result.write_proof("missing.json")


@pytest.mark.parametrize(
    ("machine", "arguments", "message"),
    [
        ("delta", {}, "no range"),
        ("delta", {"ranges": "x=0.1:-0.1"}, "x"),
        ("delta", {"ranges": "w=0:1"}, "no coordinate 'w'"),
        ("hexapod", {"ranges": "rx=-3:3"}, "rotations"),
        ("delta", {"ranges": BOX, "deviations": "nothing=1mm"}, "nothing"),
    ],
)
def test_wrong_boxes_are_refused(machine: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tl.certify(machine, **arguments)


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"deviations": {"arm_lenght": 1e-4}}, "did you mean arm_length"),
        ({"deviations": {"arm_length": -1e-4}}, "give the largest deviation"),
        ({"pose": {"x": 0.01}}, "has a range too"),
    ],
)
def test_wrong_deviations_and_poses_are_refused(keywords: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        tl.certify("delta", ranges="x=-0.05:0.05", **keywords)
