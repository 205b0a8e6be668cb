"""The workflow of a simulation, `simulate`: starts and events by name, the round trip of a table."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from simulation_machines import frictionless

import tauloop
from tauloop import Model, SimulationOptions, load
from tauloop.common.result import Status
from tauloop.kinematics.singularities import SINGULARITY_KINDS, singularities
from tauloop.simulation import ConstantForce, Event, Integration, Projected, Radau, RoundTripOptions


def test_a_free_fall_is_stopped_and_named():
    fall = tauloop.simulate(load("delta"), SimulationOptions(velocity={"z": 0.1, "x": 0.1}))
    assert fall.status is Status.DOUBTFUL
    document = fall.as_dict()
    assert document["problem"]["where"].endswith("forearm")
    assert 0.1 < document["reached_s"] < 0.5


def test_starts_forces_and_wrenches_as_texts_are_those_by_names():
    texts = {
        "pose": "z=-0.5,x=20 mm",
        "velocity": "x=0.1",
        "force": "leg1.motor=0.2",
        "wrench": "fz=-1,fx=2",
    }
    names = {"pose": {"z": -0.5, "x": 0.02}, "velocity": {"x": 0.1}}
    names |= {"force": {"leg1.motor": 0.2}, "wrench": {"fz": -1.0, "fx": 2.0}}
    model = Model(load("delta"))
    first, second = (
        tauloop.simulate(model, SimulationOptions(duration=0.01, **stated))
        for stated in (texts, names)
    )
    assert np.array_equal(first.q, second.q)
    assert (first.wrench == [2.0, 0.0, -1.0, 0.0, 0.0, 0.0]).all()


def test_laws_events_and_integrators_of_ones_own_are_options_too():
    model = frictionless("pendulum_arm")
    low = Event(name="slow", function=lambda time, q, v: time - 0.01)
    options = SimulationOptions(
        force=ConstantForce((0.5, 0.5, 0.5)),
        until=(low,),
        route=Projected(),
        integration=Integration(integrator=Radau()),
    )
    motion = tauloop.simulate(model, options)
    assert motion.time[-1] == pytest.approx(0.01, abs=1e-9)
    assert (motion.force == 0.5).all()
    assert motion.provenance.options["integrator"]["name"] == "Radau"


def test_events_end_a_simulation_or_are_recorded():
    """Falling from rest: z = -0.55 is passed before -0.6, where it ends; the speed at the end is that of the motion."""
    options = SimulationOptions(
        velocity={"x": 0.1},
        until=("z<-0.6",),
        record=("position.platform.z<-0.55", "velocity.z<-5"),
    )
    fall = tauloop.simulate(load("delta"), options)
    assert fall.status is Status.OK
    document = fall.as_dict()
    assert document["ending"] == "terminal event"
    assert [item["name"] for item in document["events"]] == [
        "position.platform.z < -0.55",
        "z < -0.6",
    ]
    assert document["final"]["platform.z"] == pytest.approx(-0.6, abs=1e-9)
    assert (
        0
        < document["events"][0]["time_s"]
        < document["events"][1]["time_s"]
        == document["reached_s"]
    )


def test_the_distance_from_singularities_ends_a_fall_before_it_fails():
    model = Model(load("delta"))
    fall = tauloop.simulate(
        model, SimulationOptions(velocity={"x": 0.1}, until=("singularity<0.1",))
    )
    assert fall.status is Status.OK
    document = fall.as_dict()
    final = np.array([document["final"][name] for name in model.topology.coordinate_names])[None, :]
    measures = singularities(model, final)
    assert min(measures.distance(kind)[0] for kind in SINGULARITY_KINDS) == pytest.approx(
        0.1, abs=1e-6
    )


def test_the_round_trip_of_a_table(tmp_path):
    time = np.linspace(0, 0.1, 30)
    path = np.stack(
        [0.02 * np.sin(20 * time), 0.02 * np.cos(15 * time), -0.5 + 0.01 * np.sin(30 * time)],
        axis=1,
    )
    table = tmp_path / "motion.csv"
    header = ["time [s]", *(f"position.platform.{axis} [m]" for axis in "xyz")]
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([header, *np.column_stack([time, path]).tolist()])
    exact = Integration(tolerance=1e-9, absolute_tolerance=1e-10)
    trip = tauloop.simulate(load("delta"), RoundTripOptions(motion=table, integration=exact))
    assert trip.status is Status.OK
    document = trip.as_dict()
    assert document["largest_position_error_m"] < document["limit_m"]
