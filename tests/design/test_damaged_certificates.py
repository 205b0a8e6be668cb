"""Certificates of every kind of claim: they hold, and fail with boxes removed, enlarged or of others."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from tauloop.common.result import Status
from tauloop.mechanism.shipped import SHIPPED

DELTA = "x=-0.08:0.08,y=-0.02:0.02,z=-0.505:-0.495"
GANTRY = "x=-0.05:0.05,y=-0.05:0.05,z=-0.05:0.05"
THIN = "x=-0.05:0.05,y=-0.05:0.05,z=-0.01:0.01"
#: Machine and keywords of certificates, by kind of claim; each needs several boxes.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "parallel": ("delta", {"ranges": DELTA, "parallel": 0.6}),
    "serial": ("gantry_tau_5dof", {"ranges": GANTRY, "serial": 0.3}),
    "constraint": ("gantry_tau_5dof", {"ranges": GANTRY, "constraint": 0.2}),
    "clearance": ("gantry_tau_5dof", {"ranges": THIN, "clearance": "80 mm"}),
    "rod radii": ("gantry_tau_5dof", {"ranges": THIN, "rod_radii": {"*": "40 mm"}}),
    "cones": ("delta", {"ranges": DELTA, "cones": {"leg1.forearm.start": "35 deg"}}),
    "forces": ("delta", {"ranges": DELTA, "wrenches": "fx=-20:20,fz=-60:0"}),
    "tensions": (
        "cable_robot",
        {"ranges": "x=-0.05:0.05,y=-0.05:0.05,z=1.45:1.55", "wrenches": "my=-5:5"},
    ),
    "errors": (
        "delta",
        {
            "ranges": DELTA,
            "encoders": "*=50 urad",
            "deviations": {"arm_length": 2e-5},
            "limits": {"x": 3.1e-5},
        },
    ),
    "cylinder": ("delta", {"ranges": DELTA, "cylinder": ("x", "y"), "parallel": 0.5}),
    "deviations": ("delta", {"ranges": DELTA, "parallel": 0.5, "deviations": {"arm_length": 1e-3}}),
}


@pytest.fixture(scope="module", params=KINDS)
def certified(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """The machine and the certificate of one kind of claim, which holds."""
    extra("flint")
    machine, keywords = KINDS[request.param]
    result = tl.certify(machine, **keywords)
    assert result.verdict == "proved"
    assert result.boxes > 1
    path = result.write_proof(tmp_path_factory.mktemp("proof") / "proof.json")
    assert tl.check_certificate(machine, path).status is Status.OK
    return machine, path


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


@pytest.mark.parametrize("change", [remove_box, enlarge_box])
def test_a_changed_box_fails(
    change: Callable[[dict[str, Any]], None], certified: tuple[str, Path], tmp_path: Path
) -> None:
    machine, path = certified
    proof = json.loads(path.read_text())
    change(proof)
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(proof))
    assert tl.check_certificate(machine, changed).status is Status.DOUBTFUL


def test_a_certificate_of_another_machine_fails(certified: tuple[str, Path]) -> None:
    machine, path = certified
    other = "nuwar" if machine != "nuwar" else "delta"
    assert "another machine" in tl.check_certificate(other, path).problems[0]


def weaker(name: str, **values: Any) -> tl.Model:
    """Return a machine with other values of parameters, or of motor forces."""
    mechanism = tl.load(name)
    force = values.pop("force", None)
    mechanism = mechanism.with_values(values) if values else mechanism
    if force is None:
        return tl.Model(mechanism)
    motors = tuple(replace(motor, force=force) for motor in mechanism.actuators)
    return tl.Model(replace(mechanism, actuators=motors))


@pytest.mark.parametrize(
    ("kind", "values", "text"),
    [
        ("forces", {"force": 5.0}, "force"),
        ("errors", {"arm_length": 0.4, "forearm_length": 0.55}, "error of the tool"),
    ],
)
def test_boxes_of_another_machine_fail(
    kind: str, values: dict[str, float], text: str, tmp_path: Path
) -> None:
    """The boxes are those of a machine that keeps the claim; the file names one that does not."""
    extra("flint")
    machine, keywords = KINDS[kind]
    path = tl.certify(machine, **keywords).write_proof(tmp_path / "proof.json")
    other = weaker(machine, **values)
    own = tl.certify(other, ranges="z=-0.5001:-0.4999").write_proof(tmp_path / "own.json")
    proof = json.loads(path.read_text())
    proof["text_sha256"] = json.loads(own.read_text())["text_sha256"]
    path.write_text(json.dumps(proof))
    check = tl.check_certificate(other, path)
    assert check.status is Status.DOUBTFUL
    assert any(text in problem for problem in check.problems)


# A singular corner


@pytest.fixture(scope="module")
def wide_hexapod(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The hexapod with far stops, so that a quarter turn, where it is singular, is within them."""
    text = (SHIPPED / "hexapod.yaml").read_text(encoding="utf-8")
    stops = "limits: [0.33 m, 0.53 m]"
    assert stops in text
    path = tmp_path_factory.mktemp("machine") / "hexapod.yaml"
    path.write_text(text.replace(stops, "limits: [0.1 m, 1 m]"))
    return str(path)


CORNER = {"x": (0.0, 0.01), "y": (0.0, 0.01), "rz": (1.45, 0.5 * np.pi)}
CLAIMS: dict[str, dict[str, Any]] = {
    "none": {},
    "serial": {"serial": 1e-6},
    "constraint": {"constraint": 1e-9},
    "clearance": {"clearance": 1e-6},
    "rod radii": {"rod_radii": {"*": 1e-7}},
    "cones": {"cones": {"*": "89 deg"}},
    "forces": {"static_forces": True},
    "errors": {"encoders": {"*": 1e-9}, "limits": {"z": 1.0}},
    "deviations": {"deviations": {"base_radius": 1e-9}},
    "cylinder": {"cylinder": ("x", "y")},
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_no_claim_is_proved_with_a_singular_corner(claim: str, wide_hexapod: str) -> None:
    """Turned by a quarter about its axis, a symmetric hexapod is singular (Fichter 1986)."""
    result = tl.certify(
        wide_hexapod,
        ranges=CORNER,
        pose={"z": 0.36},
        max_boxes=800,
        time_limit=20.0,
        **CLAIMS[claim],
    )
    assert result.verdict != "proved"


def test_a_certificate_that_is_extended_to_a_singular_corner_fails(
    wide_hexapod: str, tmp_path: Path
) -> None:
    extra("flint")
    ranges = CORNER | {"rz": (1.3, 1.4)}
    result = tl.certify(wide_hexapod, ranges=ranges, pose={"z": 0.36})
    path = result.write_proof(tmp_path / "hexapod.json")
    assert tl.check_certificate(wide_hexapod, path).status is Status.OK
    proof = json.loads(path.read_text())
    proof["upper"][-1] = 0.5 * np.pi
    path.write_text(json.dumps(proof))
    assert tl.check_certificate(wide_hexapod, path).status is Status.DOUBTFUL
