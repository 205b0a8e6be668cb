"""Kinematics modules in LinuxCNC itself, Debian's: built by halcompile, loaded, run headless as an ordinary user.

Nothing stands in for LinuxCNC: where it is absent these tests are skipped, and the report says so.
They run by night.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from linuxcnc_bench import Bench, Probed, bench, reason_not_to_run
from linuxcnc_modules import MACHINES, compiled, in_units, model, poses

import tauloop as tl
from tauloop.export.linuxcnc.program import reachable_moves

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(bool(reason_not_to_run()), reason=reason_not_to_run() or "-"),
]
#: Puts a figure into the report of the tests (`--junitxml`).
Record = Callable[[str, object], None]
#: mm or deg: two ways to the same numbers, a metre long, in double precision.
ROUNDING = 1e-9
#: mm or deg, of joint commands in the running machine.
RUNNING = 1e-6
#: Servo periods by which the cubic that LinuxCNC lays through joint commands lags behind them.
DELAY = 2
#: Names of these components begin so: nobody else's are replaced.
PREFIX = "tlt"


@pytest.fixture(scope="module")
def machine_control() -> Iterator[Bench]:
    with bench() as own:
        yield own


def exported(own: Bench, name: str) -> tl.export.linuxcnc.LinuxcncExport:
    """The module of a machine, written and installed."""
    made = tl.export_linuxcnc(
        model(name), tl.LinuxcncOptions(name=f"{PREFIX}_{name}"), folder=own.folder
    )
    own.install(own.folder / f"{made.name}.c")
    return made


def recorded(
    own: Bench, made: tl.export.linuxcnc.LinuxcncExport
) -> tuple[np.ndarray, np.ndarray, str]:
    """The world and the joints in every servo period of a headless run, and what it says."""
    layout, stem = made.layout, made.name.removesuffix("_kins")
    pins = [f"axis.{axis.letter.lower()}.pos-cmd" for axis in layout.axes]
    pins += [f"joint.{k}.pos-cmd" for k in range(len(layout.joints))]
    lines = [
        f"loadrt tl_record pins={len(pins)} file={own.folder}/record.bin",
        "addf tl_record servo-thread",
    ]
    lines += ["net coordinated motion.coord-mode => tl_record.on"]
    lines += [f"net recorded-{k} {pin} => tl_record.in-{k:02d}" for k, pin in enumerate(pins)]
    (own.folder / "record.hal").write_text("\n".join([*lines, ""]))
    ini = own.folder / f"{stem}.ini"
    last = f"HALFILE = {stem}_geometry.hal\n"
    assert last in ini.read_text()
    ini.write_text(ini.read_text().replace(last, last + "HALFILE = record.hal\n"))
    code, text = own.run("linuxcnc", ini.name)
    assert code == 0, text
    rows = np.fromfile(own.folder / "record.bin").reshape(-1, len(pins))
    world = np.zeros((len(rows), 6))
    world[:, [axis.number for axis in layout.axes]] = rows[:, : len(layout.axes)]
    return world, rows[:, len(layout.axes) :], text


def from_tauloop(name: str, world: np.ndarray) -> np.ndarray:
    """Joints (N, n) at poses of the tool (N, 6), mm and deg."""
    position = tl.export.linuxcnc.platform_positions(compiled(name).export.layout, world)
    return in_units(
        name, model(name).actuator_position(model(name).platform.kinematics(position).q)
    )


@pytest.mark.parametrize("name", MACHINES)
def test_the_running_machine_follows_tauloops_inverse_through_linuxcncs_cubic(
    machine_control: Bench, name: str, record_property: Record
) -> None:
    """Joint commands are (x- + 4 x + x+) / 6 of the inverse's, two periods later, to 1e-6 mm; unfiltered they are not.

    Then every pose of the run goes through the loaded component both ways.
    """
    made = exported(machine_control, name)
    world, joints, text = recorded(machine_control, made)
    assert text.count("\ndone") == 1
    assert "problem" not in text
    assert len(world) > 2000
    asked = from_tauloop(name, world)
    cubic = (asked[:-2] + 4.0 * asked[1:-1] + asked[2:]) / 6.0
    lag = DELAY + 1
    filtered = np.abs(cubic[: len(joints) - lag] - joints[lag:][: len(cubic)])
    unfiltered = np.abs(asked[: len(joints) - DELAY] - joints[DELAY:])
    settled = 5  # periods in which the cubic fills
    record_property(
        "periods, largest difference filtered and not",
        [len(world), float(filtered[settled:].max()), float(unfiltered[settled:].max())],
    )
    assert filtered[settled:].max() < RUNNING
    assert unfiltered[settled:].max() > RUNNING

    _, moves = reachable_moves(model(name), made.layout)
    for move in moves:
        assert np.abs(world - np.array(move.end)).max(axis=1).min() < RUNNING
    assert any(move.center is not None for move in moves)
    corners = {move.end[:2] for move in moves[1:6]}
    assert len(corners) == 4

    some = np.unique(world[:: max(len(world) // 400, 1)], axis=0)
    probed = machine_control.probe(made.name, some)
    assert not probed.inverse.any()
    assert not probed.forward.any()
    assert (
        np.abs(probed.joints[:, : len(made.layout.joints)] - from_tauloop(name, some)).max()
        < ROUNDING
    )
    assert np.abs(probed.world - some).max() < ROUNDING
    record_property(
        "ns for inverse and forward", [np.median(probed.inverse_ns), np.median(probed.forward_ns)]
    )


def test_root_is_refused_by_linuxcnc_and_the_user_is_not_root(machine_control: Bench) -> None:
    code, text = machine_control.run("id", "-u")
    assert (code, text.strip() != "0") == (0, True)


def test_calibrated_lines_change_the_loaded_component_without_a_compiler(
    machine_control: Bench,
) -> None:
    name = "five_bar"
    made = exported(machine_control, name)
    machine = model(name).mechanism.with_values({"crank_length": 0.2503, "motor_distance": 0.1998})
    lines = tl.export.linuxcnc.geometry_hal(machine, f"{PREFIX}_{name}").splitlines()
    setp = [line.removeprefix("setp ") for line in lines if line.startswith("setp ")]
    world, before = poses(name)
    probed = machine_control.probe(made.name, world, setp)
    other = tl.Model(machine)
    position = tl.export.linuxcnc.platform_positions(made.layout, world)
    expected = in_units(name, other.actuator_position(other.platform.kinematics(position).q))
    assert (
        np.abs(probed.joints[:, :2] - expected).max() < ROUNDING < np.abs(expected - before).max()
    )
    assert np.abs(probed.world - world).max() < ROUNDING
    # half of the lines, and the hash of them all: no pose is answered
    assert machine_control.probe(made.name, world, [*setp[:1], setp[-1]]).inverse.all()


# LinuxCNC's own modules, on the same machines


def compared(
    theirs: Probed, ours: Probed, joints: np.ndarray, world: np.ndarray
) -> dict[str, float]:
    """How far both are apart and from the world that was asked for, and how long a call of each takes, ns.

    Args:
        theirs, ours: answers.
        joints: theirs as ours count (N, n).
        world: that was asked for.
    """
    answered = theirs.forward == 0
    return {
        "joints apart": float(np.abs(joints - ours.joints[:, : joints.shape[1]]).max()),
        "round trip of ours": float(np.abs(ours.world - world).max()),
        "round trip of theirs": float(np.abs(theirs.world - world)[answered].max()),
        "forward refused by theirs": int((~answered).sum()),
        "inverse ns of ours": float(np.median(ours.inverse_ns)),
        "inverse ns of theirs": float(np.median(theirs.inverse_ns)),
        "forward ns of ours": float(np.median(ours.forward_ns)),
        "forward ns of theirs": float(np.median(theirs.forward_ns)),
    }


def out_of_reach(world: np.ndarray) -> np.ndarray:
    """A place a kilometre away, and one that is no number."""
    far = np.repeat(world[:1], 2, axis=0)
    far[0, 0] += 1e6
    far[1, 0] = np.nan
    return far


def test_a_linear_delta_is_that_of_lineardeltakins(
    machine_control: Bench, record_property: Record
) -> None:
    """Towers at 90, 210 and 330 deg; carriages count upwards there, and down from their end stops here."""
    made = exported(machine_control, "linear_delta")
    world, _ = poses("linear_delta")
    setp = [f"{made.name}.tower{k + 1}.angle {angle}" for k, angle in enumerate((90, 210, 330))]
    ours = machine_control.probe(made.name, world, setp)
    theirs = machine_control.probe(
        "lineardeltakins", world, ["lineardeltakins.R 172", "lineardeltakins.L 340"]
    )
    top = 333.0 + np.sqrt(340.0**2 - 172.0**2)
    joints = top - theirs.joints[:, :3]
    record_property("lineardeltakins", compared(theirs, ours, joints, world))
    assert np.abs(joints - ours.joints[:, :3]).max() < ROUNDING
    assert np.abs(ours.world - world).max() < ROUNDING
    for probed in (
        machine_control.probe(made.name, out_of_reach(world), setp),
        machine_control.probe("lineardeltakins", out_of_reach(world)),
    ):
        assert probed.inverse.tolist() == [-1, -1]


def test_a_rotary_delta_is_that_of_rotarydeltakins(
    machine_control: Bench, record_property: Record
) -> None:
    """Its first leg points along -y, the others follow at 30 and 150 deg: our pins say so."""
    made = exported(machine_control, "delta")
    world, _ = poses("delta")
    setp = [f"{made.name}.leg{k + 1}.phi {angle}" for k, angle in enumerate((-90, 30, 150))]
    ours = machine_control.probe(made.name, world, setp)
    sizes = {"platformradius": 194, "thighlength": 260, "shinlength": 480, "footradius": 30}
    theirs = machine_control.probe(
        "rotarydeltakins", world, [f"rotarydeltakins.{k} {v}" for k, v in sizes.items()]
    )
    record_property("rotarydeltakins", compared(theirs, ours, theirs.joints[:, :3], world))
    assert np.abs(theirs.joints[:, :3] - ours.joints[:, :3]).max() < ROUNDING
    assert np.abs(ours.world - world).max() < ROUNDING
    assert machine_control.probe(made.name, out_of_reach(world), setp).inverse.tolist() == [-1, -1]
    taken = machine_control.probe("rotarydeltakins", out_of_reach(world))
    assert taken.inverse.tolist() == [-1, 0]  # what is no number passes
    assert np.isnan(taken.joints[1, :3]).all()


def test_a_hexapod_is_that_of_genhexkins(machine_control: Bench, record_property: Record) -> None:
    """The same joints of base and plate; the tool is put at the plate's origin, where that module has its own."""
    made = exported(machine_control, "hexapod")
    world, _ = poses("hexapod")
    world = world - [0, 0, 60, 0, 0, 0]
    ours = machine_control.probe(made.name, world, [f"{made.name}.tool.z 0"])
    base = np.radians([10, 110, 130, 230, 250, 350])
    plate = np.radians([50, 70, 170, 190, 290, 310])
    setp = []
    for k in range(6):
        for part, radius, angle in (("base", 350, base[k]), ("platform", 200, plate[k])):
            x, y = radius * np.cos(angle), radius * np.sin(angle)
            setp += [
                f"genhexkins.{part}.{k}.{axis} {v!r}"
                for axis, v in zip("xyz", (float(x), float(y), 0.0), strict=True)
            ]
    theirs = machine_control.probe("genhexkins", world, setp)
    record_property("genhexkins", compared(theirs, ours, theirs.joints[:, :6], world))
    assert not theirs.inverse.any()
    assert np.abs(theirs.joints[:, :6] - ours.joints[:, :6]).max() < ROUNDING
    assert np.abs(ours.world - world).max() < ROUNDING
    far = out_of_reach(world)
    assert machine_control.probe(made.name, far, [f"{made.name}.tool.z 0"]).inverse.tolist() == [
        0,
        -1,
    ]
    taken = machine_control.probe("genhexkins", far, setp)
    assert taken.inverse.tolist() == [0, 0]  # what is no number passes
    assert theirs.forward.tolist() == [-2] + [0] * (
        len(world) - 1
    )  # its search begins at zero, and then at its last pose


def test_the_sources_of_these_components_are_here() -> None:
    names = {path.name for path in Path(__file__).parent.glob("tl_*.c")}
    assert names == {"tl_probe.c", "tl_record.c"}
