"""Forces known as functions of a position, in a recording; a spring whose rest is known while its stiffness is sought.

The oracle is a cart on a slide by hand: u = m a + c v + F_c sign(v) + what is known of its
position.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from identifying import identified, options_of, tables_of

from tauloop import Mechanism, load
from tauloop.common.errors import InputError, LogError
from tauloop.identification import identify
from tauloop.logs import Signals, load_recording, write_log
from tauloop.logs.checks.known_forces import (
    ForceTable,
    KnownForce,
    Polynomial,
    without_known_forces,
)
from tauloop.logs.log import Channel

CART = """
format: tauloop-machine/1
name: cart
provenance: {status: chosen, source: a test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  cart: {mass: 1 kg}
joints:
  slide:
    type: prismatic
    axis: x
    parent: base
    child: cart
    friction: {viscous: 1 N s/m, coulomb: 1 N}
    SPRING
actuators:
  motor: {on: slide}
platform: {body: cart, independent: [slide]}
"""
MASS, DAMPING, COULOMB, NOISE = 2.3, 4.0, 1.5, 0.3
RATE = 400.0
#: Table of a cable: m, N.
TABLE = ((-0.5, -0.2, 0.1, 0.5), (12.0, -3.0, 8.0, 2.0))
DEVIATIONS = 5.0


def motion() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    t = np.arange(0.0, 20.0, 1.0 / RATE)
    w = 2 * np.pi * np.array([0.31, 0.83, 1.7])
    size = np.array([0.25, 0.1, 0.04])
    angle = w * t[:, None] + np.array([0.3, 1.1, 2.0])
    return t, np.sin(angle) @ size, np.cos(angle) @ (size * w), -np.sin(angle) @ (size * w**2)


def log_of(known: np.ndarray) -> Signals:
    t, q, v, a = motion()
    force = MASS * a + DAMPING * v + COULOMB * np.sign(v) + known
    force = force + NOISE * np.random.default_rng(0).normal(size=len(t))
    channels = (
        Channel(quantity="position", channel="motor", values=q, unit="m"),
        Channel(quantity="force", channel="motor", values=force, unit="N"),
    )
    return Signals(time=t, channels=channels)


def recorded(
    folder: Path, known: np.ndarray, says: str = "", spring: str = ""
) -> tuple[Mechanism, Path]:
    """Machine file and recording."""
    (folder / "cart.yaml").write_text(CART.replace("SPRING", f"spring: {spring}" if spring else ""))
    write_log(folder / "log.csv", log_of(known).dataset())
    text = "format: tauloop-log/1\nfiles: [{path: log.csv}]\n" + says
    (folder / "log.yaml").write_text(text + "preparation: {trim: 20, decimation: 8}\n")
    return load(folder / "cart.yaml"), folder / "log.yaml"


def off(document: dict[str, Any], true: dict[str, float]) -> float:
    """Largest distance from the truth, in standard deviations."""
    by_name = {row["name"]: row for row in document["base_parameters"]}
    return max(
        abs(by_name[name]["value"] - x) / by_name[name]["standard_deviation"]
        for name, x in true.items()
    )


TRUE = {"cart.m": MASS, "slide.viscous": DAMPING, "slide.coulomb": COULOMB}
LAWS = {
    "table": (
        lambda q: np.interp(q, *TABLE),
        "known_forces: {motor: {table: {position: [-500 mm, -200 mm, 0.1 m, 0.5 m], force: [12 N, -3 N, 8 N, 2 N]}}}\n",
    ),
    "polynomial": (
        lambda q: 9.0 - 30.0 * (q - 0.1) + 80.0 * (q - 0.1) ** 2,
        "known_forces: {motor: {of: motor, polynomial: [9 N, -0.03 N/mm, 80 N/m^2], about: 10 cm}}\n",
    ),
}


@pytest.mark.parametrize("law", LAWS)
def test_what_is_known_is_taken_off_and_said(tmp_path, law):
    by_hand, says = LAWS[law]
    known = by_hand(motion()[1])
    ignored = identified(*recorded(tmp_path, known))
    cart, log = recorded(tmp_path, known, says)
    result = identify(cart, [log], options_of())
    used = result.as_dict()
    assert used["status"] == "ok"
    assert off(used, TRUE) < DEVIATIONS
    assert off(ignored, TRUE) > DEVIATIONS or ignored["outputs"][0]["held_out"]["rmse"] > 3 * NOISE
    assert used["outputs"][0]["held_out"]["rmse"] < 1.2 * NOISE
    assert used["known_forces"][0].startswith(
        "force.motor: a known function of position.motor was subtracted, from "
    )
    assert "a known function of position.motor was subtracted" in " ".join(
        tables_of(result).split()
    )


def test_a_table_is_not_extended():
    short = KnownForce(
        channel="motor", of="motor", law=ForceTable(position=(-0.1, 0.2), force=(1.0, 2.0))
    )
    with pytest.raises(
        LogError, match=r"position.motor ranges from .* but the table only from -0.1 to 0.2"
    ):
        without_known_forces(log_of(np.zeros(1)), [short])


def test_channels_and_units_of_a_law_are_checked():
    law = Polynomial(coefficients=(1.0,))
    for known, says in (
        (KnownForce(channel="moter", of="motor", law=law), "force.moter is not in the log"),
        (KnownForce(channel="motor", of="arm", law=law), "position.arm is not in the log"),
        (KnownForce(channel="motor", of="motor", law=law, units=("rad", "N")), "the law is in rad"),
        (KnownForce(channel="motor", of="motor", law=law, units=("", "N m")), "the law is in N m"),
    ):
        with pytest.raises(LogError, match=says):
            without_known_forces(log_of(np.zeros(1)), [known])
    with pytest.raises(InputError, match="do not increase"):
        ForceTable(position=(0.0, 0.0), force=(1.0, 2.0))


@pytest.mark.parametrize(
    ("law", "says"),
    [
        ("{polynomial: [1 N, 2 kg]}", "units are not those of a force"),
        (
            "{polynomial: [1 N], about: 0.1 rad, table: {}}",
            "needs exactly one of table and polynomial",
        ),
        ("{polynomial: [1]}", "units are not those of a force"),
        ("{polynomial: [one N]}", "follows without an operator"),
        ("{polynomial: [inf N]}", "inf N is not a finite number"),
        ("{polynomial: 3 N}", "this is the text '3 N'"),
        ("{table: {position: [0 m, 1 m], force: [0 N]}}", "has 2 positions and 1 force"),
        ("{table: {position: [1 m, 0 m], force: [0 N, 1 N]}}", "do not increase"),
        ("{table: {position: [0 m, 1 m]}}", "is missing"),
        ("{polynom: [1 N]}", "unknown key"),
    ],
)
def test_a_law_that_cannot_be_read_is_refused_with_its_line(tmp_path, law, says):
    _, recording = recorded(tmp_path, np.zeros(1), f"known_forces: {{motor: {law}}}\n")
    with pytest.raises(LogError) as refused:
        load_recording(recording)
    assert any(says in problem.what and problem.line == 3 for problem in refused.value.problems)


def test_units_follow_from_the_law(tmp_path):
    _, recording = recorded(
        tmp_path,
        np.zeros(1),
        "known_forces: {motor: {polynomial: [1 N m, 2 N m/rad, 3 N m/rad^2]}}\n",
    )
    (known,) = load_recording(recording).known_forces
    assert known.units == ("rad", "N m")
    _, recording = recorded(
        tmp_path, np.zeros(1), "known_forces: {motor: {of: other, polynomial: [1 N]}}\n"
    )
    (known,) = load_recording(recording).known_forces
    assert (known.of, known.units) == ("other", ("", "N"))


def test_a_known_rest_leaves_the_stiffness_as_the_only_unknown_of_a_spring(tmp_path):
    stiffness, rest = 35.0, 0.12
    files = recorded(
        tmp_path, stiffness * (motion()[1] - rest), spring="{stiffness: 20 N/m, rest: 0.05 m}"
    )
    free = identified(*files)
    assert (
        off(free, TRUE | {"slide.stiffness": stiffness, "slide.preload": stiffness * rest})
        < DEVIATIONS
    )
    known = identified(*files, known={"slide.rest": f"{rest} m"})
    names = [case["name"] for case in known["base_parameters"]]
    assert "slide.preload" not in names
    assert off(known, TRUE | {"slide.stiffness": stiffness}) < DEVIATIONS
    # the file's own parameters keep the file's rest: the wrong one shows
    kept = identified(*files, unknowns="file")
    assert "slide.spring.rest" not in [case["name"] for case in kept["base_parameters"]]
    assert kept["outputs"][0]["held_out"]["rmse"] > 3 * NOISE
    right = identified(*files, unknowns="file", known={"slide.spring.rest": f"{rest} m"})
    assert off(right, {"cart.mass": MASS, "slide.spring.stiffness": stiffness}) < DEVIATIONS
    with pytest.raises(InputError, match=r"slide\.rest"):
        identified(*files, known={"slide.rest": "3 N"})
