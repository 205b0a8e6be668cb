"""The command ``tauloop simulate``, and the round trip of the NUWAR paper as an example."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from simulation_machines import frictionless
from typer.testing import CliRunner

import tauloop
from tauloop import Model, SimulationOptions, load
from tauloop.cli.app import app
from tauloop.kinematics.singularities import KINDS, singularities
from tauloop.simulation import ConstantForce, Event, Integration, Projected, Radau


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["simulate", *arguments])
    return result.exit_code, result.output


def test_a_swing_is_judged_on_the_exact_routes(tmp_path):
    figure = tmp_path / "swing.png"
    code, text = call("four_bar", "--swing", "--duration", "0.5", "--figure", str(figure), "--json")
    document = json.loads(text)
    assert code == 0
    assert document["status"] == "ok"
    assert set(document["routes"]) == {
        *("independent", "projected", "extended", "extended-free", "multipliers", "multipliers-free")
    }
    assert document["springs"][0]["stiffness"] > 0
    assert document["routes"]["independent"]["relative_energy_error"] < document["energy_limit"]
    assert figure.stat().st_size > 10_000


def test_coarse_steps_fail_a_swing():
    code, text = call("four_bar", "--swing", "--duration", "0.5", "--step", "0.01")
    assert code == 1
    assert "FAILS" in text
    assert "Springs at the drives" in text


def test_a_free_fall_is_stopped_and_named():
    code, text = call("delta", "--velocity", "z=0.1,x=0.1", "--json")
    document = json.loads(text)
    assert code == 1
    assert document["status"] == "doubtful"
    assert document["problem"]["where"].endswith("forearm")
    assert 0.1 < document["reached_s"] < 0.5


def test_stops_that_a_fall_passes_are_named():
    code, text = call("hexapod", "--duration", "0.3", "--json")
    document = json.loads(text)
    assert code == 1
    assert document["status"] == "doubtful"
    legs = {item["coordinate"]: item["time_s"] for item in document["beyond_stops"]}
    assert {f"leg{i}.strut" for i in range(1, 7)} <= legs.keys()
    for name, time in legs.items():
        assert 0 < time < 0.3, name
    assert document["final"]["leg1.strut"] < 0.33  # the file's lower limit, m
    assert "beyond its stop at 0.33 m" in " ".join(call("hexapod", "--duration", "0.3")[1].split())
    assert json.loads(call("hexapod", "--duration", "0.01", "--json")[1])["beyond_stops"] == []


def test_constant_forces_and_a_written_motion(tmp_path):
    out = tmp_path / "motion.csv"
    options = ("--duration", "0.02", "--force", "leg1.motor=1", "--wrench", "fz=2", "--out", str(out))
    code, text = call("delta", *options)
    assert code == 0
    assert "energy missing" in text
    with out.open() as file:
        rows = list(csv.reader(file))
    assert len(rows) > 5
    assert any("force" in column for column in rows[0])


def test_laws_events_and_integrators_of_ones_own_are_options_too():
    model = frictionless("pendulum_arm")
    low = Event(name="slow", function=lambda time, q, v: time - 0.01)
    options = SimulationOptions(
        force=ConstantForce((0.5, 0.5, 0.5)), until=(low,), route=Projected(), integration=Integration(own=Radau())
    )
    motion = tauloop.simulate(model, options)
    assert motion.time[-1] == pytest.approx(0.01, abs=1e-9)
    assert (motion.force == 0.5).all()
    assert motion.provenance.options["integrator"]["name"] == "Radau"


def test_events_end_a_simulation_or_are_recorded():
    """Falling from rest: z = -0.55 is passed before -0.6, where it ends; the speed at the end is that of the motion."""
    options = ("--until", "z<-0.6", "--watch", "position.platform.z<-0.55", "--watch", "velocity.z<-5")
    code, text = call("delta", "--velocity", "x=0.1", *options, "--json")
    document = json.loads(text)
    assert code == 0
    assert document["ending"] == "terminal event"
    assert [item["name"] for item in document["events"]] == ["position.platform.z < -0.55", "z < -0.6"]
    assert document["final"]["platform.z"] == pytest.approx(-0.6, abs=1e-9)
    assert 0 < document["events"][0]["time_s"] < document["events"][1]["time_s"] == document["reached_s"]


def test_the_distance_from_singularities_ends_a_fall_before_it_fails():
    code, text = call("delta", "--velocity", "x=0.1", "--until", "singularity<0.1", "--json")
    document = json.loads(text)
    assert code == 0
    model = Model(load("delta"))
    final = np.array([document["final"][name] for name in model.topology.coordinate_names])[None, :]
    measures = singularities(model, final)
    assert min(measures.distance(kind)[0] for kind in KINDS) == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize("text", ["z<low", "z=1", "depth<1", "velocity.q<1", "<1"])
def test_events_that_cannot_be_read_are_refused(text):
    code, answer = call("delta", "--until", text, "--watch", "shoulder>1")
    assert code == 2
    assert "2 problems" in answer
    assert "may be any of several" in answer


def test_the_round_trip_of_a_table(tmp_path):
    time = np.linspace(0, 0.1, 30)
    path = np.stack([0.02 * np.sin(20 * time), 0.02 * np.cos(15 * time), -0.5 + 0.01 * np.sin(30 * time)], axis=1)
    table = tmp_path / "motion.csv"
    header = ["time [s]", *(f"position.platform.{axis} [m]" for axis in "xyz")]
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([header, *np.column_stack([time, path]).tolist()])
    code, text = call("delta", "--motion", str(table), "--rtol", "1e-9", "--atol", "1e-10", "--json")
    document = json.loads(text)
    assert code == 0, text
    assert document["largest_position_error_m"] < document["limit_m"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--route", "shortest"), "'shortest' is unknown"),
        (("--swing", "--force", "leg1.motor=1"), "means nothing beside --swing"),
        (("--stiff", "--step", "0.1"), "given beside step"),
        (("--rtol", "1e-20"), "no step can meet"),
        (("--step", "-1"), "must be positive"),
        (("--swing", "--frequency", "0"), "must be positive"),
        (("--position", "z=-2"), "out of reach"),
    ],
)
def test_bad_options_are_refused(options, words):
    code, text = call("delta", *options, "--json")
    assert code == 2
    assert words in json.dumps(json.loads(text))
