"""Outputs of machine files: values by another route, units, errors, and where they are used."""

from __future__ import annotations

import json

import numpy as np
import pytest
from extras import extra
from printed import printed

import tauloop as tl
from tauloop.calibration.measurements.instruments import JointSensor
from tauloop.calibration.measurements.simulated import simulated_series
from tauloop.common.errors import AssemblyError, DescriptionError, InputError
from tauloop.display.plots.motion.workspace_plots import line_plot, section_plot
from tauloop.display.tables.motion.kinematics_tables import poses_tables

#: Products of rotation matrices and square roots of numbers of the size of one.
ROUNDING = 1e-12
HEIGHTS = ((0.26, -0.04), (0.32, 0.0), (0.38, 0.03))

CRANK = """\
format: tauloop-machine/1
name: crank
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters: {reach: 0.3 m, shift: 0.1 m}
frames:
  tip: {on: arm, at: [reach, 0, 0], turn: [{z: 30 deg}]}
  post: {on: base, at: [0, shift, 0]}
bodies: {arm: {mass: 1 kg}, sled: {mass: 1 kg}}
joints:
  pin: {type: revolute, axis: z, parent: base, child: arm, reference: 20 deg}
  slide: {type: prismatic, axis: x, parent: {on: base, at: [0, 0, 0.2 m]}, child: sled, reference: 0.1 m}
rods:
  wire: {from: post, to: tip, telescopic: {reference: 0.3 m}, model: massless}
actuators:
  motor: {on: pin, ratio: 5}
  pusher: {on: slide}
platform: {body: arm, tool: {at: [reach, 0, 0]}, independent: [pin, slide]}
outputs:
"""


def model_with(outputs: str) -> tl.Model:
    """Return the crank with outputs, one a line."""
    return tl.Model(tl.loads(CRANK + "\n".join(f"  {line}" for line in outputs.splitlines())))


def values(outputs: str, pin: float = 0.4, slide: float = 0.15) -> dict[str, float]:
    """Return the outputs of the crank at an angle and a displacement."""
    model = model_with(outputs)
    q = model.inverse_kinematics([pin, slide]).q
    return {name: float(value) for name, value in model.outputs(q).items()}


def test_wheel_angles_agree_with_the_rotation_of_the_wheel():
    model = tl.Model(tl.load("wishbone"))
    q = model.inverse_kinematics(HEIGHTS).q
    outputs = model.outputs(q)
    pose = model.tool_pose(HEIGHTS)
    axle = pose[:, :3, 1]
    np.testing.assert_allclose(outputs["camber"], -np.arcsin(axle[:, 2]), atol=ROUNDING)
    np.testing.assert_allclose(outputs["toe"], np.arctan2(axle[:, 0], axle[:, 1]), atol=ROUNDING)
    lower = np.array([0.0, -0.040, -0.130, 1.0])
    upper = np.array([-0.025, -0.090, 0.165, 1.0])
    kingpin = pose @ (upper - lower)
    caster, inclination = (np.arctan2(-kingpin[:, i], kingpin[:, 2]) for i in (0, 1))
    np.testing.assert_allclose(outputs["caster"], caster, atol=ROUNDING)
    np.testing.assert_allclose(outputs["kingpin_inclination"], inclination, atol=ROUNDING)
    contact = pose[:, 1, 3] - 0.32 * np.sin(outputs["camber"])
    np.testing.assert_allclose(outputs["half_track"], contact, atol=ROUNDING)
    # the car at rest: all angles of the wheel are zero
    rest = model.outputs(model.assembly.q)
    assert abs(rest["camber"]) < 1e-9
    assert abs(rest["toe"]) < 1e-9


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x(tip)", 0.3 * np.cos(0.4)),
        ("y(tool)", 0.3 * np.sin(0.4)),
        ("y(tip, post)", 0.3 * np.sin(0.4) - 0.1),
        ("x(post, tip)", 0.1 * np.sin(0.4 + np.pi / 6) - 0.3 * np.cos(np.pi / 6)),
        ("x(x_axis(tip))", np.cos(0.4 + np.pi / 6)),
        ("z(x_axis(tip), base)", 0.0),
        ("distance(post, tip)", np.sqrt(0.09 + 0.01 - 2 * 0.03 * np.sin(0.4))),
        ("wire - distance(start(wire), end(wire))", 0.0),
        ("angle(x_axis(base), x_axis(arm))", 0.4),
        ("angle(x_axis(arm), x_axis(base), z_axis(base))", -0.4),
        ("angle(x_axis(base), -x_axis(arm), z_axis(base))", 0.4 - np.pi),
        ("angle(x_axis(base), x_axis(arm), -z_axis(base))", -0.4),
        ("angle(post, pin, tool)", np.pi / 2 - 0.4),
        ("angle(direction(pin, tool), direction(pin, post))", np.pi / 2 - 0.4),
        ("angle(-direction(pin, tool), direction(pin, post))", np.pi / 2 + 0.4),
        ("motor", 2.0),
        ("pin / 2 + 10 deg", 0.2 + np.pi / 18),
        ("sqrt(slide^2 + reach^2)", np.hypot(0.15, 0.3)),
        ("slide / reach", 0.5),
        ("z(slide)", 0.2),
        ("slide * reach", 0.045),
    ],
)
def test_functions_agree_with_trigonometry(expression, expected):
    assert values(f'out: "{expression}"')["out"] == pytest.approx(expected, abs=ROUNDING)


def test_outputs_use_each_other_and_have_units():
    outputs = 'sum: {value: first + 1 cm, unit: mm, note: "a remark"}\nfirst: x(tip)\nratio: first / reach'
    model = model_with(outputs)
    q = model.inverse_kinematics([0.4, 0.15]).q
    result = model.outputs(q)
    assert result["sum"] == pytest.approx(0.3 * np.cos(0.4) + 0.01, abs=ROUNDING)
    assert [output.unit for output in model.mechanism.outputs] == ["m", "m", "1"]
    np.testing.assert_allclose(model.platform.outputs([0.4, 0.15]), [*result.values()])
    batch = model.outputs(np.stack([q, np.full_like(q, np.nan)]))
    assert np.isfinite(batch["sum"]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("line", "where", "what"),
    [
        ("a: x(nothing)", "outputs.a", "no body or frame named nothing"),
        ("a: reech", "outputs.a", "no parameter, coordinate, motor or output named reech"),
        ("a: arm", "outputs.a", "arm is a body, not a number"),
        ("a: wire2(arm)", "outputs.a", "unknown function wire2"),
        ("a: x(arm, base, tip)", "outputs.a", "x takes 1 or 2 arguments, not 3"),
        ("a: x(arm) + 3", "outputs.a", "a length"),
        ("a: sin(x(arm))", "outputs.a", "sin takes an angle"),
        ("a: {value: x(arm), unit: deg}", "outputs.a.unit", "a length (m), not an angle"),
        ("a: {value: x(arm), unit: foot}", "outputs.a.unit", "unknown unit"),
        ("a: b\n  b: a", "outputs.a", "cycle"),
        ("a: direction(arm, tip)", "outputs.a", "a direction, not a number"),
        ("a: start(wire)", "outputs.a", "a point, not a number"),
        ("a: angle(arm, tip)", "outputs.a", "not a direction"),
        ("a: distance(x_axis(arm), tip)", "outputs.a", "not a point"),
        ("a: x(start(pin))", "outputs.a", "no rod named pin"),
        ("pin: x(arm)", "outputs.pin", "the name pin is already used"),
    ],
)
def test_mistakes_are_reported_with_their_place(line, where, what):
    with pytest.raises(DescriptionError) as caught:
        tl.loads(f"{CRANK}  {line}\n")
    problem = next(p for p in caught.value.problems if p.where == where)
    assert what in problem.what
    assert problem.remedy


def test_a_name_of_a_parameter_and_of_a_coordinate_is_ambiguous():
    text = CRANK.replace("shift: 0.1 m", "shift: 0.1 m, slide: 1 m") + "  a: slide\n"
    with pytest.raises(DescriptionError, match="name of a parameter and of a coordinate"):
        tl.loads(text)


def test_outputs_of_legs_have_their_names():
    text = CRANK.replace("outputs:\n", "") + (
        "legs:\n  - name: leg\n    repeat: 2\n    each: {at: [10 mm, 20 mm]}\n"
        "    frames: {foot: {on: base, at: [at, 0, 0]}}\n    outputs:\n      gap: distance(foot, base) * i\n"
    )
    model = tl.Model(tl.loads(text))
    result = model.outputs(model.assembly.q)
    assert {name: round(float(value), 12) for name, value in result.items()} == {
        "leg1.gap": 0.01,
        "leg2.gap": 0.04,
    }


def test_written_files_have_the_same_outputs():
    lines = (
        'a: "angle(x_axis(tip), -direction(post, tip), z_axis(base)) / 2"\nb: motor + 3 deg\n'
        'c: {value: "x(start(wire), tip) * slide", note: area}\nd: sqrt(reach * shift) + wire'
    )
    model = model_with(lines)
    again = tl.Model(tl.loads(tl.dumps(model.mechanism)))
    q = model.inverse_kinematics([0.4, 0.15]).q
    first, second = model.outputs(q), again.outputs(q)
    assert {name: float(value) for name, value in first.items()} == pytest.approx(
        {name: float(value) for name, value in second.items()}, abs=ROUNDING
    )
    assert tl.dumps(again.mechanism) == tl.dumps(model.mechanism)


def test_kinematics_report_outputs():
    poses = tl.forward_kinematics("wishbone")
    data = json.loads(json.dumps(poses.as_dict()))
    assert data["outputs"]["half_track"] == {"value": pytest.approx(0.76), "unit": "m"}
    assert poses.to_pandas()["output.caster"].shape == (1,)
    lines = printed(poses_tables(poses)).splitlines()
    assert any(line.split() == ["kingpin_inclination", "9.619728", "deg"] for line in lines)


def test_a_map_has_the_outputs_of_its_poses():
    ranges = {"z": (0.25, 0.4), "rack": (-0.1, 0.1)}
    result = tl.workspace("wishbone", plane=("z", "rack"), ranges=ranges, resolution=0.05)
    data = result.to_xarray()
    assert not result.usable.all()
    z, rack = np.meshgrid(*result.axes.values(), indexing="ij")
    usable = result.usable
    q = result.model.inverse_kinematics(np.stack([z[usable], rack[usable]], axis=1)).q
    expected = result.model.outputs(q)["camber"]
    np.testing.assert_allclose(data["output.camber"].values[usable], expected, atol=1e-9)
    assert result.output_ranges["camber"] == pytest.approx((expected.min(), expected.max()))
    assert data["output.camber"].attrs["units"] == "rad"


def test_maps_are_coloured_by_an_output():
    ranges = {"z": (0.25, 0.4), "rack": (-0.04, 0.04)}
    section = tl.workspace("wishbone", plane=("z", "rack"), ranges=ranges, resolution=0.02)
    plot = section_plot(section.section(), "camber", 20)
    low, top = plot.grid_range
    assert low < 0.0 < top
    assert np.degrees(section.output_ranges["camber"][0]) == pytest.approx(low, rel=0.1)
    with pytest.raises(InputError, match="is unknown"):
        section_plot(section.section(), "chamber", 20)
    line = tl.workspace("wishbone", plane=("z",), ranges={"z": (0.25, 0.4)}, resolution=0.01)
    trace = line_plot(line, "camber").traces[0]
    assert np.nanmax(np.abs(trace.y)) == pytest.approx(
        np.degrees(np.nanmax(np.abs(line.arrays["output.camber"]))), rel=1e-3
    )


def test_exported_outputs_are_those_of_the_model(tmp_path):
    export = tl.export_c("wishbone", tmp_path, functions="outputs")
    ports = export.manifest["functions"][0]["outputs"][0]
    assert ports["columns"][0] == "camber"
    assert ports["units"] == ["rad", "rad", "rad", "rad", "m"]
    with pytest.raises(AssemblyError, match="defines no outputs"):
        tl.export_c("delta", tmp_path / "other", functions="outputs")


def test_calibration_finds_a_length_from_measured_outputs():
    """Readings of an angle of the true machine return the length of its crank."""
    text = CRANK + '  view: "angle(post, tip, base)"\n'
    machine = tl.loads(text)
    true = tl.Model(machine.with_values(shift="120 mm"))
    sensor = JointSensor(name="view", coordinate="view", unit="rad")
    angles = np.linspace(-0.6, 0.9, 12)
    q = true.inverse_kinematics(np.stack([angles, 0.1 * angles], axis=1)).q
    series = simulated_series(true, sensor, q, noise=1e-4)
    result = tl.calibrate(machine, series, parameters=("shift",))
    assert result.mechanism.value("shift") == pytest.approx(0.12, abs=1e-9)


def test_studies_store_outputs(tmp_path):
    extra("pyarrow")
    study = tmp_path / "study.yaml"
    study.write_text(
        "format: tauloop-study/1\nmachine: wishbone\nsamples: 3\nseed: 1\n"
        "vary: {tie_rod_mass: {normal: 1 g}, wheel_radius: {normal: 1 mm}}\n"
        "compute: {result: ik, options: {pose: z=0.36}}\n"
        "keep: {camber: outputs/camber/value, track: outputs/half_track/value}\n"
    )
    result = tl.run_study(study, tmp_path / "results")
    scalars = {item.name: item for item in result.scalars}
    expected = tl.inverse_kinematics("wishbone", {"z": 0.36}).outputs["camber"]["value"]
    assert scalars["camber"].mean == pytest.approx(expected, abs=ROUNDING)
    assert scalars["track"].greatest > scalars["track"].mean


def test_reduced_machines_and_other_formats_name_what_they_lack(tmp_path):
    reduced = tl.reduce_model("wishbone", states=3)
    (remark,) = (step for step in reduced.undone if step.name == "outputs")
    assert "camber" in remark.elements
    assert not reduced.mechanism.outputs
    made = tl.convert(model_with("a: x(tip)").mechanism, tmp_path / "crank.xml")
    assert any("outputs; omitted: a" in note for note in made.written.notes)
