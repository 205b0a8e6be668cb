"""From base parameters to links: a pendulum in closed form, draws of the errors, linear programs, and a fitted arm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from extras import extra
from planar_arm import MACHINE, arm_log, arm_motion
from printed import printed
from scipy.optimize import linprog

import tauloop as tl
from tauloop.common.errors import IdentificationError, InputError
from tauloop.common.result import Status
from tauloop.display.tables.identification.link_tables import link_tables
from tauloop.identification import BaseEstimates, PreparationOptions
from tauloop.identification.links.link_parameters import _families
from tauloop.logs import write_log
from tauloop.mechanism import Mechanism

extra("cvxpy")
#: Ends of intervals come from an interior-point solver that stops at 1e-8 of what it moves.
SOLVER = 2e-6
PENDULUM = """
format: tauloop-machine/1
name: pendulum
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {m: 2 kg, c: 0.3 m, I: 0.05 kg m^2}
bodies:
  bar: {mass: m, center: [c, 0, 0], inertia: {xx: 1e-3 kg m^2, yy: I, zz: I}}
joints:
  pin: {type: revolute, axis: y, parent: base, child: bar}
actuators: {motor: {on: pin}}
platform: {body: bar, independent: [pin]}
"""
H, J = 2 * 0.3, 0.05 + 2 * 0.3**2


def pendulum() -> Mechanism:
    return tl.loads(PENDULUM)


def estimates(
    parameters: tuple[str, ...], rows: object, values: object, deviations: object = 0.0
) -> BaseEstimates:
    b = np.asarray(values, dtype=float)
    covariance = np.diag(np.broadcast_to(np.asarray(deviations, dtype=float) ** 2, b.shape))
    return BaseEstimates(
        parameters=parameters,
        regrouping=np.asarray(rows, dtype=float),
        values=b,
        covariance=covariance,
    )


def swung(h: float = H, j: float = J, deviations: object = 0.0) -> BaseEstimates:
    """What a pendulum's torques tell: m c and I + m c^2."""
    return estimates(("bar.mcx", "bar.Iyy"), np.eye(2), (h, j), deviations)


def test_a_pendulum_is_bounded_as_by_hand() -> None:
    """h = m c and J = I + m c^2 with I >= 0: m >= h^2/J and without end above, 0 <= c <= J/h, 0 <= I <= J."""
    links = tl.link_parameters(pendulum(), swung(), tl.LinkOptions(confidence=0.0))
    assert links.status is Status.OK
    assert [(parameter.name, parameter.kind) for parameter in links.parameters] == [
        ("m", "sum"),
        ("c", "center"),
        ("I", "central inertia"),
    ]
    assert (links["m"].lower, links["m"].upper) == (pytest.approx(H**2 / J, rel=SOLVER), None)
    assert (links["c"].lower, links["c"].upper) == pytest.approx((0.0, J / H), abs=SOLVER)
    # J is reached by a mass without end only: the solver stops on the way there
    assert (links["I"].lower, links["I"].upper) == pytest.approx((0.0, J), rel=1e-3)
    (family,) = links.families
    assert (family.members, family.freedoms, family.stated) == (("m", "c", "I"), 1, ("m",))
    # dc/dm = -h/m^2 and dI/dm = h^2/m^2 at the file's mass
    assert family.changes == pytest.approx({"m": 1.0, "c": -H / 4, "I": H**2 / 4})
    assert links.unidentifiable == ("bar.inertia.xx",)


def test_a_known_mass_says_the_rest_with_deviations_as_drawn() -> None:
    """c = h/m and I = J - h^2/m by hand for twenty thousand draws of h, J and the mass."""
    deviations, scale = np.array([0.004, 0.002]), 0.03
    for known, drawn in (
        ({"m": "2 kg"}, 0.0),
        ({"m": "2 kg +- 30 g"}, scale),
        ({"bar.m": (2.0, scale)}, scale),
    ):
        links = tl.link_parameters(
            pendulum(), swung(deviations=deviations), tl.LinkOptions(known=known)
        )
        rng = np.random.default_rng(4)
        h, j = np.array([H, J])[:, None] + deviations[:, None] * rng.normal(size=(2, 20_000))
        m = 2.0 + drawn * rng.normal(size=20_000)
        for name, values in (("c", h / m), ("I", j - h**2 / m)):
            assert links[name].value == pytest.approx(pendulum().value(name))
            assert links[name].deviation == pytest.approx(values.std(), rel=0.03)
            assert links[name].lower is None
        assert links.families == ()


@pytest.mark.nightly
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """The least mass h^2/J over draws of h and J: it is above the true mass's own least in 2.5 % of cases at 95 %."""
    deviations = np.array([0.004, 0.002])
    rng = np.random.default_rng(8)
    low, high = [], []
    for h, j in np.array([H, J]) + deviations * rng.normal(size=(60, 2)):
        links = tl.link_parameters(
            pendulum(), swung(h, j, deviations), tl.LinkOptions(confidence=0.8)
        )
        low.append(links["m"].lower)
        high.append(links["c"].upper)
    # one-sided misses are half of the 20 %: six of sixty, with a deviation of 2.3
    assert 1 <= np.sum(np.array(low) > H**2 / J) <= 12
    assert 1 <= np.sum(np.array(high) < J / H) <= 12


def test_masses_alone_are_a_linear_program() -> None:
    """With all centres and central inertias known only masses are sought: HiGHS finds the same ends."""
    machine = tl.load("spidermill")
    known = {name: machine.value(name) for name in ("m1", "d_c1", "d_c3", "I_c1", "I_c3")}
    rows, values = np.array([[1.0, 1.0, 0.5], [0.2, 1.0, 2.0]]), np.array([20.0, 45.0])
    links = tl.link_parameters(
        machine,
        estimates(("m2", "m3", "m4"), rows, values),
        tl.LinkOptions(known=known, confidence=0.0),
    )
    for k, name in enumerate(("m2", "m3", "m4")):
        ends = [s * linprog(s * np.eye(3)[k], A_eq=rows, b_eq=values).fun for s in (1.0, -1.0)]
        assert [links[name].lower, links[name].upper] == pytest.approx(ends, abs=SOLVER * 20)
        assert ends[1] > ends[0] + 1.0
    assert [family.freedoms for family in links.families] == [1]


@pytest.mark.parametrize("correlation", [0.0, 0.99])
def test_a_contradiction_counts_in_standard_deviations_of_the_difference(
    correlation: float,
) -> None:
    """Two masses of one bar: by hand the difference over the root of both variances, whatever else is correlated."""
    own, other, stated = 0.02, 0.01, 0.03
    covariance = np.array(
        [[own**2, correlation * own * other], [correlation * own * other, other**2]]
    )
    both = replace(estimates(("m", "c"), np.eye(2), (2.1, 0.3)), covariance=covariance)
    links = tl.link_parameters(pendulum(), both, tl.LinkOptions(known={"m": (2.0, stated)}))
    misfit = next(item for item in links.diagnostics if "misfit" in item.name)
    assert misfit.value == pytest.approx(0.1 / np.hypot(own, stated), rel=1e-6)
    assert links.status is Status.OK
    assert tl.link_parameters(pendulum(), both).diagnostics[1].value == 0.0


def test_what_no_links_can_have_is_named() -> None:
    with pytest.raises(IdentificationError, match="no physically possible links have these values"):
        tl.link_parameters(pendulum(), swung(), tl.LinkOptions(known={"m": "1.2 kg"}))
    # within the deviations of the estimates it is a matter of how far
    unsure = swung(deviations=(0.01, 0.01))
    far = tl.link_parameters(pendulum(), unsure, tl.LinkOptions(known={"m": "1.2 kg"}))
    assert far.status is Status.DOUBTFUL
    assert "check known values and units" in far.advice[0]
    # against a route of its own: the least distance of (h, J) from J >= h^2/m
    h = np.linspace(0.4, 0.6, 200_001)
    distance = np.sqrt(((h - H) / 0.01) ** 2 + (np.maximum(h**2 / 1.2 - J, 0.0) / 0.01) ** 2).min()
    assert far.diagnostics[0].value == pytest.approx(distance, rel=1e-4)


def test_bad_input_is_named_all_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        tl.link_parameters(
            pendulum(), swung(), tl.LinkOptions(known={"n": 1.0, "m": "2 m", "c": "0.3 m +- -1 mm"})
        )
    assert len(error.value.problems) == 3
    with pytest.raises(IdentificationError, match="all parameters are known"):
        tl.link_parameters(
            pendulum(),
            swung(),
            tl.LinkOptions(known={"m": 2.0, "c": 0.3, "I": 0.05, "bar.inertia.xx": 1e-3}),
        )
    (tmp_path / "other.json").write_text('{"base_parameters": []}', encoding="utf-8")
    for name, message in (
        ("other.json", "does not contain base parameters"),
        ("nothing.json", "cannot be read"),
    ):
        with pytest.raises(InputError, match=message):
            tl.link_parameters(pendulum(), tmp_path / name)


def masses(machine: Mechanism) -> dict[str, float]:
    return {
        parameter.name: parameter.value
        for parameter in machine.parameters
        if parameter.unit == "kg"
    }


@pytest.fixture(scope="module")
def identified(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, tl.identification.MachineIdentification]:
    """An arm of two links, its log with noise, and what is identified from it, in memory and as a file."""
    folder = tmp_path_factory.mktemp("links")
    model = tl.Model(tl.loads(MACHINE))
    motion = arm_motion(2400, 0.0)
    log = arm_log(
        motion, model.actuators.inverse_dynamics(*motion[1:]).force, rng=np.random.default_rng(1)
    )
    write_log(folder / "log.csv", log.dataset())
    options = tl.IdentificationOptions(
        preparation=PreparationOptions(cutoff=30.0, trim=60, decimation=2)
    )
    links = tl.identify(model, folder / "log.csv", options)
    links.write_json(folder / "identified.json")
    return folder, links


def test_the_links_of_an_identified_arm_are_those_of_its_file(identified: tuple) -> None:
    _, links = identified
    machine = tl.loads(MACHINE)
    links = tl.link_parameters(machine, links, tl.LinkOptions(known=masses(machine)))
    assert links.status is Status.OK
    for parameter in links.parameters:
        assert parameter.file is not None
        if parameter.value is not None and parameter.deviation is not None:
            assert abs(parameter.value - parameter.file) < 5.0 * parameter.deviation + 1e-3 * abs(
                parameter.file
            ), parameter.name
        else:
            assert parameter.lower is None or parameter.lower <= parameter.file + 1e-6
            assert parameter.upper is None or parameter.upper >= parameter.file - 1e-6
    assert any(
        parameter.value is not None and parameter.unit == "m" for parameter in links.parameters
    )


def test_the_unit_of_a_link_is_that_of_its_figures(identified: tuple) -> None:
    _, fitted = identified
    grams = tl.loads(
        MACHINE.replace("mass: 3 kg", "mass: 3000 g").replace("mass: 2 kg", "mass: 2000 g")
    )
    rows = [
        {
            item.name: (item.unit, item.file)
            for item in tl.link_parameters(machine, fitted, tl.LinkOptions()).parameters
        }
        for machine in (grams, tl.loads(MACHINE))
    ]
    assert rows[0] == rows[1]
    assert {figure for unit, figure in rows[0].values() if unit == "kg"} == {2.0, 3.0}


def test_the_file_of_an_identification_is_as_good_as_what_is_in_memory(identified: tuple) -> None:
    folder, fitted = identified
    machine = tl.loads(MACHINE)
    options = tl.LinkOptions(known=dict(list(masses(machine).items())[:1]))
    links = tl.link_parameters(machine, folder / "identified.json", options)
    assert (
        links.as_dict()["parameters"]
        == tl.link_parameters(machine, fitted, options).as_dict()["parameters"]
    )
    table = printed(link_tables(links))
    assert "family 1: " in table
    assert "the others follow" in table


def test_two_families_have_their_own_directions() -> None:
    """The second family is not in the first direction of the null space."""
    unknown = [SimpleNamespace(name=name, unit="N m s/rad") for name in ("f1", "f2", "f3", "f4")]
    equations: Any = SimpleNamespace(unknown=unknown, sizes=np.ones(4))
    first, second = np.array([2.0, -1.0, 0.0, 0.0]), np.array([0.0, 0.0, 3.0, -1.0])
    directions = np.stack([first / np.sqrt(5.0), second / np.sqrt(10.0)], axis=1)
    families = list(_families(equations, [directions], np.ones(4, dtype=bool)))
    assert [family.members for family in families] == [("f1", "f2"), ("f3", "f4")]
    assert families[0].changes == pytest.approx({"f1": 1.0, "f2": -0.5})
    assert families[1].changes == pytest.approx({"f3": 1.0, "f4": -1.0 / 3.0})


PENDULUM_BAR = """
format: tauloop-machine/1
name: pendulum
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {m: 2 kg}
bodies: {bar: {mass: m, center: [0.3 m, 0, 0], inertia: {xx: 1e-3 kg m^2, yy: 1e-3 kg m^2}}}
joints: {pin: {type: revolute, axis: y, parent: base, child: bar}}
actuators: {motor: {on: pin}}
platform: {body: bar, independent: [pin]}
"""


@pytest.mark.parametrize(
    ("mass", "deviation", "advice"),
    [
        (-1671.0, 695.0, "m = -1671"),
        (1.0, 3.0, "m = 1 "),
        (2.0, 0.1, ""),
    ],
)
def test_masses_that_estimates_do_not_determine_are_doubtful(
    mass: float, deviation: float, advice: str
) -> None:
    """Within three deviations of a possible link, although no link has this mass."""
    fitted = BaseEstimates(
        parameters=("bar.mcx",),
        regrouping=np.eye(1),
        values=np.array([0.3 * mass]),
        covariance=np.array([[(0.3 * deviation) ** 2]]),
    )
    known = {"bar.center[0]": "0.3 m"}
    links = tl.link_parameters(tl.loads(PENDULUM_BAR), fitted, known=known)
    assert links["m"].value == pytest.approx(mass)
    assert links["m"].deviation == pytest.approx(deviation, rel=1e-6)
    if not advice:
        assert links.status is Status.OK
        return
    assert links.status is Status.DOUBTFUL
    text = " ".join(item.advice for item in links.diagnostics if not item.is_good)
    assert advice in text
    assert "longer log" in text
