"""Machine files of one's own dimensions: they load, work, and move as the closed forms of their kind say."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from plain_yaml import plain

import tauloop as tl
from tauloop.authoring import TEMPLATES, NamedValue, dimensions
from tauloop.authoring.text import named_values
from tauloop.mechanism import json_schema
from tauloop.mechanism.description.yaml_nodes import parse_nodes

KINDS = tuple(TEMPLATES.builtin)
#: How far random dimensions lie from the templates', as a standard deviation of their logarithms:
#: near, and far.
NEAR, FAR = 0.02, 0.1


def drawn(template: str, rng: np.random.Generator, spread: float) -> dict[str, str]:
    """Random values of all dimensions of a template, within their bounds."""
    values = {}
    for item in dimensions(template):
        low, high = (NamedValue(name="", text=end, note="", bounds=()).value for end in item.bounds)
        text = item.scaled(float(np.exp(rng.normal(scale=spread))))
        value = NamedValue(name="", text=text, note="", bounds=()).value
        if value is not None and low is not None and high is not None and low <= value <= high:
            values[item.name] = text
    return values


def made(template: str, **values: str | float) -> tl.Model:
    return tl.Model(
        tl.loads(tl.new_machine("mine", template, tl.NewMachineOptions(values=values)).text)
    )


@pytest.mark.parametrize("template", KINDS)
def test_a_template_works_as_it_stands_and_asks_for_what_it_explains(template: str):
    result = tl.new_machine("mine", template)
    assert result.status.value == "ok", result.advice
    assert result.inspection.is_usable
    q = result.inspection.model.assembly.q
    reference = np.array(result.inspection.model.topology.reference)
    # the start values follow the dimensions: no search for them
    np.testing.assert_allclose(reference, q, atol=1e-9)
    asked = dimensions(template)
    assert len(asked) >= 8
    for item in asked:
        assert item.note, item.name
        assert len(item.bounds) == 2
        assert item.value is not None


@pytest.mark.parametrize("template", KINDS)
def test_a_file_of_random_dimensions_loads_and_works_or_says_which_dimension_is_wrong(
    template: str,
):
    rng = np.random.default_rng(KINDS.index(template))
    works_or_says(template, rng, NEAR)


def test_a_refusal_names_a_dimension_with_which_the_machine_closes():
    """Legs too short for the height: no dimension alone gives the whole work volume as well."""
    values: dict[str, str | float] = {
        item.name: item.text for item in dimensions("hexapod") if item.value is not None
    }
    values |= {"leg_greatest": "477 mm", "height": "470 mm", "stroke_width": "400 mm"}
    with pytest.raises(tl.InputError) as refusal:
        tl.new_machine("mine", "hexapod", values=values)
    (remedy,) = [problem for problem in refusal.value.problems if problem.where == "leg_greatest"]
    assert remedy.what.endswith("the loops close")
    values["leg_greatest"] = remedy.remedy.rpartition(" to ")[2]
    assert tl.new_machine("mine", "hexapod", values=values).inspection.is_usable


@pytest.mark.nightly
@pytest.mark.parametrize("template", KINDS)
def test_many_files_of_random_dimensions_do(template: str):
    rng = np.random.default_rng(1000 + KINDS.index(template))
    outcomes = [works_or_says(template, rng, FAR) for _ in range(25)]
    assert "ok" in outcomes


def works_or_says(template: str, rng: np.random.Generator, spread: float) -> str:
    values = drawn(template, rng, spread)
    options = tl.NewMachineOptions(values=values)
    refusals: tuple[tl.Problem, ...] = ()
    try:
        result = tl.new_machine("mine", template, options)
    except tl.InputError as error:
        refusals = error.problems
    if refusals:
        assert [item for item in refusals if item.where in values or "parameters." in item.where]
        return "refused"
    assert tl.check(tl.loads(result.text)).is_usable
    for name, text in values.items():
        assert named_values(result.text)[name][0].text == text
    if result.status.value == "ok":
        return "ok"
    assert result.remedies or "no single dimension suffices" in result.advice[0]
    for remedy in result.remedies:  # the remedy holds
        value = remedy.remedy.rpartition(" to ")[2]
        other = tl.new_machine(
            "mine", template, tl.NewMachineOptions(values={**values, remedy.where: value})
        )
        assert other.status.value == "ok", (remedy, other.advice)
    return "doubtful"


# Closed forms, from the dimensions alone


def test_a_delta_moves_as_its_closed_form_says():
    rng = np.random.default_rng(3)
    R, r, L, l, h = rng.uniform([0.15, 0.03, 0.22, 0.48, 0.45], [0.22, 0.06, 0.27, 0.55, 0.52])
    model = made(
        "delta",
        motor_radius=R,
        plate_radius=r,
        arm_length=L,
        forearm_length=l,
        depth=h,
        stroke_width=0.2,
    )
    p = np.array([0.0, 0.0, -h]) + rng.uniform(-0.08, 0.08, (20, 3))
    angles = np.empty((20, 3))
    for k, phi in enumerate(np.radians([0.0, 120.0, 240.0])):
        x, y = (
            np.cos(phi) * p[:, 0] + np.sin(phi) * p[:, 1],
            -np.sin(phi) * p[:, 0] + np.cos(phi) * p[:, 1],
        )
        d, z = R - r - x, -p[:, 2]
        K = (d**2 + y**2 + z**2 + L**2 - l**2) / (2 * L)  # z sin q - d cos q = K
        angles[:, k] = np.arctan2(d, z) + np.arcsin(K / np.hypot(d, z))
    agree(model, p, angles)


def test_a_linear_delta_moves_as_its_closed_form_says():
    rng = np.random.default_rng(4)
    R, r, arm = rng.uniform([0.18, 0.02, 0.33], [0.21, 0.04, 0.4])
    model = made("linear-delta", rail_radius=R, plate_radius=r, arm_length=arm)
    p = rng.uniform([-0.07, -0.07, 0.03], [0.07, 0.07, 0.2], (20, 3))
    phi = np.radians([0.0, 120.0, 240.0])
    x, y = (R - r) * np.cos(phi) - p[:, :1], (R - r) * np.sin(phi) - p[:, 1:2]
    agree(model, p, p[:, 2:] + np.sqrt(arm**2 - x**2 - y**2))


def test_a_five_bar_moves_as_its_closed_form_says():
    rng = np.random.default_rng(5)
    a, crank, link, depth = rng.uniform([0.15, 0.23, 0.33, 0.36], [0.25, 0.27, 0.38, 0.42])
    model = made("five-bar", motor_distance=a, crank_length=crank, link_length=link, depth=depth)
    p = np.array([0.0, depth]) + rng.uniform(-0.05, 0.05, (20, 2))
    angles = np.empty((20, 2))
    for k, side in enumerate((-1.0, 1.0)):
        x, y = p[:, 0] - side * a / 2, p[:, 1]
        reach = np.hypot(x, y)
        angles[:, k] = np.arctan2(y, x) - side * np.arccos(
            (crank**2 + reach**2 - link**2) / (2 * crank * reach)
        )
    agree(model, p, angles)


def test_a_hexapod_moves_as_its_closed_form_says():
    rng = np.random.default_rng(6)
    B, P, h = rng.uniform([0.32, 0.18, 0.33], [0.38, 0.22, 0.37])
    b, c = rng.uniform([0.2, 0.2], [0.5, 0.5])
    model = made(
        "hexapod",
        base_radius=B,
        plate_radius=P,
        height=h,
        base_spread=b,
        plate_spread=c,
        stroke_width=0.02,
    )
    thirds = np.radians([0.0, 120.0, 120.0, 240.0, 240.0, 360.0])
    on_base = thirds + b / 2 * np.array([1, -1, 1, -1, 1, -1])
    on_plate = np.radians([60.0, 60.0, 180.0, 180.0, 300.0, 300.0]) + c / 2 * np.array(
        [-1, 1, -1, 1, -1, 1]
    )
    zero = np.zeros(6)
    base = B * np.column_stack([np.cos(on_base), np.sin(on_base), zero])
    plate = P * np.column_stack([np.cos(on_plate), np.sin(on_plate), zero])
    p = np.array([0.0, 0.0, h]) + rng.uniform(-0.03, 0.03, (20, 3))
    w = rng.uniform(-0.1, 0.1, (20, 3))
    angle = np.linalg.norm(w, axis=1)
    quaternion = np.column_stack([np.cos(angle / 2), w * (np.sin(angle / 2) / angle)[:, None]])
    n = w / angle[:, None]
    turned = (  # Rodrigues
        plate * np.cos(angle)[:, None, None]
        + np.cross(n[:, None], plate) * np.sin(angle)[:, None, None]
        + n[:, None] * (plate @ n.T).T[..., None] * (1 - np.cos(angle))[:, None, None]
    )
    legs = np.linalg.norm(p[:, None] + turned - base, axis=2)
    agree(model, np.hstack([p, quaternion]), legs)


def agree(model: tl.Model, position: np.ndarray, actuators: np.ndarray) -> None:
    q = model.inverse_kinematics(position).q
    np.testing.assert_allclose(model.actuator_position(q), actuators, atol=1e-10)
    back = model.platform_position(model.forward_kinematics(actuators).q)
    np.testing.assert_allclose(back, position, atol=1e-9)


# Values, sources, files


@pytest.mark.parametrize(
    ("template", "joint", "beyond"),
    [("delta", "leg1.shoulder", "115 deg"), ("five-bar", "shoulder_1", "225 deg")],
)
def test_motors_of_new_machines_have_stops(template, joint, beyond):
    """A pose beyond the range of a motor is reported, not only drawn differently."""
    model = tl.new_machine("mine", template).inspection.model
    column = model.limits.names.index(joint)
    assert model.limits.is_stop[column]
    q = model.assembly.q.copy()
    q[model.topology.coordinate_names.index(joint)] = np.radians(float(beyond.split()[0]))
    assert [item.coordinate for item in model.limits.beyond(q)] == [joint]


def test_what_a_stroke_needs_is_named_and_the_stroke_itself_is_left_as_stated():
    values = {"stroke_width": "600 mm", "stroke_height": "100 mm", "motor_radius": "200 mm"}
    result = tl.new_machine("mine", "delta", tl.NewMachineOptions(values=values))
    assert result.status.value == "doubtful"
    assert [remedy.where for remedy in result.remedies] == ["forearm_length", "arm_length"]
    for text in ("leg1.forearm excludes", "set arm_length to "):
        assert text in result.advice[0]


def test_lengths_of_a_real_machine_are_never_to_be_changed():
    """A Fanuc DR-3iB: a depth of 500 mm does not suit its forearms of 1.26 m, one in proportion does."""
    lengths = {
        "motor_radius": "140 mm",
        "arm_length": "565 mm",
        "forearm_length": "1260 mm",
        "plate_radius": "75 mm",
    }
    result = tl.new_machine("mine", "delta", tl.NewMachineOptions(values=lengths))
    assert result.status.value == "ok"
    texts = {item.name: item.text for item in result.dimensions}
    assert {name: texts[name] for name in lengths} == lengths


def test_a_stated_length_is_named_where_no_other_dimension_helps():
    values = {
        "arm_length": "240 mm",
        "forearm_length": "520 mm",
        "depth": "500 mm",
        "stroke_width": "20 mm",
    }
    values |= {"motor_radius": "200 mm", "plate_radius": "45 mm", "stroke_height": "1 m"}
    result = tl.new_machine("mine", "delta", tl.NewMachineOptions(values=values))
    assert [remedy.where for remedy in result.remedies] == ["stroke_height"]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (
            {"link_length": "30 m"},
            r"parameters\.link_length\.bounds.* do not contain the value 30 m",
        ),
        ({"link_length": "3 kg"}, "link_length.* is a mass"),
        (
            {"link_lenght": 0.3},
            "link_lenght: is not a named value.*\n.*did you mean link_length.*Named values: .*tip_mass",
        ),
        ({"volume": 0.3}, "volume: is not a named value.*\n.*choose among .*link_length"),
        (
            {"link_length": "100 mm", "crank_length": "250 mm", "depth": "400 mm"},
            r"crank_angle.*(?s:.)*set ",
        ),
    ],
)
def test_what_is_wrong_with_a_value_is_said_of_it(values: dict[str, str | float], what: str):
    with pytest.raises(tl.InputError, match=what):
        tl.new_machine("mine", "five-bar", tl.NewMachineOptions(values=values))


def test_a_number_alone_is_in_si_units_and_comments_stay():
    text = tl.new_machine("mine", "delta", tl.NewMachineOptions(values={"arm_length": 0.25})).text
    assert (
        "  arm_length: {value: 0.25 m, bounds: [30 mm, 3 m], note: from the motor's axis to the elbow}\n"
        in text
    )
    assert "\n  # Masses. Weigh them, or start with these.\n" in text
    assert "\nname: mine\n" in text


def test_another_machine_is_copied_with_values_that_no_longer_claim_its_sources():
    result = tl.new_machine(
        "mine", "nuwar", tl.NewMachineOptions(values={"forearm_length": "0.5 m"})
    )
    parameter = tl.loads(result.text).parameters["forearm_length"]
    assert (parameter.value, parameter.status, parameter.source) == (0.5, "chosen", "own dimension")
    others = tl.load("nuwar").parameters
    assert {
        item.name
        for item in others
        if item.source != tl.loads(result.text).parameters[item.name].source
    } == {"forearm_length"}
    printer = tl.new_machine(
        "mine", "linear_delta", tl.NewMachineOptions(values={"tower.arm": 0.35})
    )
    assert [tl.loads(printer.text).parameters[f"tower{i}.arm"].value for i in (1, 2, 3)] == [
        0.35
    ] * 3
    assert "Derived from linear_delta.yaml, with these values changed: tower.arm." in printer.text


def test_files_of_other_tools_become_machine_files(tmp_path: Path):
    tl.convert("five_bar", tmp_path / "five.xml")
    values = {"crank_1.mass": "1 kg"}
    text = tl.new_machine("mine", tmp_path / "five.xml", tl.NewMachineOptions(values=values)).text
    assert tl.loads(text).parameters["crank_1.mass"].value == 1.0
    with pytest.raises(tl.InputError, match=r"mjcf is the name of a format\n.*give a file"):
        tl.new_machine("mine", "mjcf")


def test_a_file_and_its_schema_are_written_and_editors_find_it(tmp_path: Path):
    written = tl.new_machine("mine", "hexapod").write(tmp_path / "mine.yaml")
    line = written[0].read_text(encoding="utf-8").partition("\n")[0]
    schema = json.loads(
        (tmp_path / line.removeprefix("# yaml-language-server: $schema=")).read_text()
    )
    assert schema == json_schema()
    validator = jsonschema.Draft202012Validator(schema)
    for template in (written[0], *TEMPLATES.values()):
        validator.validate(plain(parse_nodes(template.read_text(encoding="utf-8"), template.name)))


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("0.3", "0.3 m"),
        ("30 cm", "30 cm"),
        ("10 m", "10 m is out of bounds.*\n.*30 mm to 3 m"),
        ("3 kg", "is a mass"),
        ("wide", "."),
    ],
)
def test_an_answer_is_taken_or_asked_again(answer: str, outcome: str):
    arm = next(item for item in dimensions("delta") if item.name == "arm_length")
    if outcome[0].isdigit() and "bounds" not in outcome:
        assert arm.accepted(answer) == outcome
    else:
        with pytest.raises(tl.InputError, match=outcome):
            arm.accepted(answer)


def test_a_file_of_ones_own_is_a_template(tmp_path: Path):
    path = tmp_path / "ours.yaml"
    text = TEMPLATES["delta"].read_text(encoding="utf-8")
    path.write_text(
        text.replace("note: from the motor's axis to the elbow", "note: ours"), encoding="utf-8"
    )
    assert next(item.note for item in dimensions(path) if item.name == "arm_length") == "ours"
    assert tl.new_machine("mine", path).status.value == "ok"
