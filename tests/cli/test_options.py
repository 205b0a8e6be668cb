"""Classes of options: what they refuse, and the command's options that are made from them."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import tauloop as tl
from tauloop.cli.machine import ImportArguments
from tauloop.cli.options import flags, option_parameters, options_from_arguments
from tauloop.cli.output import command
from tauloop.common.errors import InputError
from tauloop.common.options import described, option, require
from tauloop.equations.ports import ACTUATORS
from tauloop.identification import PreparationOptions
from tauloop.simulation.controllers.laws import Sampling


class Way(enum.Enum):
    SHORT = "short"
    LONG = "long"


def halved(text: str) -> float:
    return float(text) / 2


@dataclass(frozen=True, kw_only=True)
class Inner:
    """What lies inside.

    Attributes:
        depth: how deep, m.
    """

    depth: float = option(1.0, least=0.0)

    def __post_init__(self) -> None:
        require(self)


@dataclass(frozen=True, kw_only=True)
class Example:
    """Options of an example.

    Attributes:
        count: how many of them, and
            what they are for.
        low, high: ends of a range.
        names: names that count.
        cutoffs: some frequencies, Hz.
        masses: masses by name, kg.
        way: which way.
        kind: what it is.
        half: half of it.
        place: one of some places, by name.
        is_tidy: whether it is tidy.
        table: a file.
        hidden: not for the command line.
        inner: more.

    Not an attribute: text behind the list.
    """

    count: int = option(3, least=1, most=9)
    low: float | None = None
    high: float | None = None
    names: tuple[str, ...] = ()
    cutoffs: tuple[float, ...] = ()
    masses: Mapping[str, float] = field(default_factory=dict)
    way: Way = Way.SHORT
    kind: str = option("plain", choices=("plain", "fancy"), flag="--sort")
    half: float = option(0.5, read=halved, metavar="DOUBLE")
    place: tuple[int, int] = option(
        (0, 0), named={"Here": (0, 0), "there": (3, 4)}, flag="--place -p"
    )
    is_tidy: bool = option(True, flag="--tidy")
    table: Path | None = None
    hidden: int = option(0, flag="")
    inner: Inner = field(default_factory=Inner)

    def __post_init__(self) -> None:
        require(self)


def called(*words: str) -> object:
    """What a command with these options makes of words on the command line, or its output where that is refused."""
    made: list[Example] = []

    @command()
    def example(options: Example, beside: ImportArguments | None) -> None:
        made.append(options)

    app = typer.Typer()
    app.command()(example)
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == (0 if made else 2), ran.output
    return made[0] if made else ran.output


def test_texts_come_from_the_docstring() -> None:
    texts = described(Example)
    assert texts["count"] == "how many of them, and what they are for."
    assert texts["low"] == texts["high"] == "ends of a range."
    assert "text behind" not in texts["inner"]


def test_fields_of_a_base_have_its_texts_and_stand_behind_the_own_ones() -> None:
    texts = described(tl.TransferOptions)
    assert texts["reserve"] == described(tl.simulation.LimitOptions)["reserve"] != ""
    assert texts.keys() == {item.name for item in dataclasses.fields(tl.TransferOptions)}
    names = [parameter.name for parameter in option_parameters(tl.TransferOptions)]
    assert names.index("start") == 0
    assert names.index("intervals") < names.index("reserve")


def test_nothing_said_gives_the_defaults() -> None:
    assert called() == Example()


def test_every_kind_of_field_is_an_option() -> None:
    words = "--count 4 --low -1e-3 --names a --names b --cutoffs 20,50.5 --masses arm=0.5 --masses tip=1 --way long"
    more = "--sort fancy --half 3 -p THERE --no-tidy --table x.csv --depth 2"
    assert called(*words.split(), *more.split()) == Example(
        count=4,
        low=-1e-3,
        names=("a", "b"),
        cutoffs=(20.0, 50.5),
        masses={"arm": 0.5, "tip": 1.0},
        way=Way.LONG,
        kind="fancy",
        half=1.5,
        place=(3, 4),
        is_tidy=False,
        table=Path("x.csv"),
        inner=Inner(depth=2.0),
    )


def test_what_is_refused_is_said_of_the_option_and_all_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Example(count=0, kind="odd")
    assert [problem.where for problem in caught.value.problems] == ["count", "kind"]
    text = called("--count", "12", "--sort", "odd")
    assert isinstance(text, str)
    for part in (
        "--count: is 12",
        "at least 1 and at most 9",
        "--sort: 'odd' is unknown",
        "plain, fancy",
    ):
        assert part in text
    assert "'2x' is not a number" in str(called("--cutoffs", "1,2x"))
    assert "'arm' is not NAME=VALUE" in str(called("--masses", "arm"))
    both = str(called("--place", "nowhere", "--count", "12"))
    assert "--place: 'nowhere' is unknown" in both
    assert "choose among Here, there" in both
    assert "--count: is 12" in both
    assert "--depth: is not a number" in str(called("--depth", "nan"))


def test_fields_without_a_default_are_missing_by_name_beside_what_else_is_wrong() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Needing:
        name: str
        inner: Inner

    with pytest.raises(InputError) as caught:
        options_from_arguments(Needing, {"depth": -1.0, "name": None})
    assert [(problem.where, problem.what) for problem in caught.value.problems] == [
        ("name", "is missing"),
        ("depth", "is -1"),
    ]
    assert options_from_arguments(Needing, {"name": "x"}) == Needing(name="x", inner=Inner())


def test_help_names_limits_choices_and_texts() -> None:
    text = _help()
    for part in (
        "--count",
        "How many of them, and what they are for: at least 1 and at most 9.",
        "plain, fancy",
        "One of some places, by name: Here, there. [default: Here]",
        "DOUBLE",
    ):
        assert part in text
    assert "--hidden" not in text


def _help() -> str:
    @command()
    def example(options: Example) -> None: ...

    app = typer.Typer(rich_markup_mode=None)
    app.command()(example)
    return " ".join(CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output.split())


def test_flags_and_objects_without_a_command() -> None:
    assert flags(Example)["kind"] == "--sort"
    assert flags(Example)["depth"] == "--depth"
    arguments = {"count": 2, "depth": 0.5, "other": 1}
    assert options_from_arguments(Example, arguments) == Example(count=2, inner=Inner(depth=0.5))
    assert arguments == {"other": 1}


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: tl.WorkspaceOptions(pose=-0.5, plane=3), ["plane", "pose"]),  # type: ignore[arg-type]
        (lambda: tl.SimulationOptions(duration=b"1", until=2), ["duration", "until"]),  # type: ignore[arg-type]
        (lambda: tl.VerifyOptions(states="many", seed=True), ["states", "seed"]),  # type: ignore[arg-type]
        (lambda: tl.ReductionOptions(states=None), ["states"]),  # type: ignore[arg-type]
        (lambda: tl.TransferOptions(end={"x": 0.1}, payload=b"1"), ["payload"]),  # type: ignore[arg-type]
        (lambda: tl.PathOptions(stroke="1", payload=b"1"), ["payload", "stroke"]),  # type: ignore[arg-type]
        (lambda: tl.CheckOptions(driven="yes"), ["driven"]),  # type: ignore[arg-type]
        (lambda: tl.CountOptions(coordinates=3), ["coordinates"]),  # type: ignore[arg-type]
        (lambda: tl.ControllerOptions(limit=(1.0, None)), ["limit[1]"]),  # type: ignore[arg-type]
        (lambda: tl.DriveOptions(values={"kp": None}), ["values.kp"]),  # type: ignore[dict-item]
        (lambda: tl.WorkspaceOptions(ranges={"x": (0.0, None)}), ["ranges.x[1]"]),  # type: ignore[dict-item]
    ],
)
def test_values_of_another_type_are_refused_by_name_all_at_once(
    make: Callable[[], object], where: list[str]
):
    with pytest.raises(tl.InputError) as refused:
        make()
    assert [problem.where for problem in refused.value.problems] == where
    for problem in refused.value.problems:
        assert ", of type " in problem.what
        assert problem.remedy.startswith("give ")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (tl.SimulationOptions(duration="300 ms"), {"duration": 0.3}),
        (tl.SimulationOptions(until="platform.z<-0.7"), {"until": ("platform.z<-0.7",)}),
        (tl.WorkspaceOptions(plane="x, z"), {"plane": ("x", "z")}),
        (
            tl.WorkspaceOptions(pose={"y": "1 cm"}, ranges={"x": ("-100 mm", 0.1)}),
            {"pose": {"y": 0.01}, "ranges": {"x": (-0.1, 0.1)}},
        ),
        (tl.WorkspaceOptions(pose="y=1cm"), {"pose": {"y": 0.01}}),
        (tl.ControllerOptions(limit="2 kN, 3"), {"limit": (2000.0, 3.0)}),
        (tl.ControllerOptions(limit=["2 kN", 3.0]), {"limit": (2000.0, 3.0)}),
        (tl.ControllerOptions(rate="4 kHz"), {"rate": 4000.0}),
        (tl.CountOptions(coordinates="Actuators"), {"coordinates": ACTUATORS}),
        (
            tl.CalibrationOptions(parameters="leg*.length,arm"),
            {"parameters": ("leg*.length", "arm")},
        ),
        (tl.DriveOptions(step="1 mm", load="2 N m"), {"step": 0.001, "load": 2.0}),
    ],
)
def test_text_stands_for_numbers_with_units_names_and_several(
    options: object, expected: dict[str, object]
):
    """Oracle: the values in SI units, written out by hand."""
    assert {name: getattr(options, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tl.SimulationOptions(duration="3 m"), "duration: '3 m' is a length"),
        (lambda: tl.SimulationOptions(duration="soon"), "duration: 'soon' is not a number"),
        (lambda: tl.SimulationOptions(duration="-3 ms"), "duration: is -0.003"),
        (lambda: tl.SimulationOptions(route="direct"), "route: 'direct' is unknown"),
        (lambda: tl.CountOptions(coordinates="legs"), "coordinates: 'legs' is unknown"),
        (lambda: tl.ControllerOptions(limit=("1 N", "2 s")), "limit[1]: '2 s' is a time"),
    ],
)
def test_text_with_another_meaning_is_refused_by_name(make: Callable[[], object], message: str):
    with pytest.raises(tl.InputError, match=re.escape(message)):
        make()


@pytest.mark.parametrize("name", [name for name in dir(tl) if name.endswith("Options")])
def test_no_value_of_any_type_ends_in_an_error_of_python(name: str) -> None:
    """What is refused says where and what to give, for every field of every class of options."""
    options = getattr(tl, name)
    others = [
        "1",
        b"1",
        1.5,
        10**400,
        1j,
        np.nan,
        True,
        None,
        object(),
        [],
        {},
        [1.0],
        ["a"],
        ("1",),
        {"a": "b"},
    ]
    missing = (dataclasses.MISSING, dataclasses.MISSING)
    needed = [
        item.name
        for item in dataclasses.fields(options)
        if (item.default, item.default_factory) == missing
    ]
    for item in dataclasses.fields(options):
        refused: list[object] = []
        for value in others:
            with contextlib.suppress(tl.TauloopError):
                options(**dict.fromkeys(needed, None) | {item.name: value})
                continue
            with pytest.raises(tl.TauloopError) as error:
                options(**dict.fromkeys(needed, None) | {item.name: value})
            assert all(problem.where and problem.remedy for problem in error.value.problems)
            refused += [
                value for problem in error.value.problems if problem.where.startswith(item.name)
            ]
        # a log may be an object of any reader
        assert len(refused) > 3 or "LogSource" in item.type, item.name


def test_a_wrong_number_of_values_is_named():
    with pytest.raises(InputError, match="motor_curve\\[1\\]: has 3 values\n    remedy: give 2"):
        tl.CycleOptions(motor_curve=((0.0, 1.0), (20.0, 1.0, 3.0)))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [tuple, list, np.array])
def test_each_of_several_numbers_has_limits_whatever_holds_them(
    kind: Callable[[list[float]], tuple[float, ...]],
):
    with pytest.raises(InputError, match="deceleration: is -1\n    remedy: give a number above 0"):
        tl.ControllerOptions(deceleration=kind([2.0, -1.0]))
    with pytest.raises(InputError, match=r"size: is -0\.01"):
        tl.motion.BoxObstacle(center=(0.0, 0.0, 0.0), size=kind([-0.01, 0.1, 0.1]))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="center: has 2 values\n    remedy: give 3"):
        tl.motion.BoxObstacle(center=kind([0.0, 0.0]), size=(0.1, 0.1, 0.1))  # type: ignore[arg-type]


def test_tolerances_that_are_no_numbers_are_refused_by_name():
    for wrong in (
        lambda: tl.simulation.Integration(tolerance="1"),
        lambda: tl.integrate.DormandPrince(rtol="1"),
    ):
        with pytest.raises(InputError, match=r"(tolerance|rtol): is '1', of type str"):
            wrong()


def test_numbers_of_numpy_have_limits_too():
    with pytest.raises(InputError, match="states: is -3\n    remedy: give a number at least 1"):
        tl.VerifyOptions(states=np.int64(-3))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"max_condition: is 0\.5"):
        tl.VerifyOptions(max_condition=np.float32(0.5))  # type: ignore[arg-type]
    assert tl.SimulationOptions(duration=np.array(1.5), wrench=[0.0] * 6).duration == 1.5  # type: ignore[arg-type]


def test_numbers_of_numpy_and_lists_in_place_of_tuples_are_taken():
    assert tl.VerifyOptions(states=np.int64(3), max_condition=np.float64(10.0)).states == 3
    assert tl.WorkspaceOptions(plane=["x", "z"]).plane == ["x", "z"]  # type: ignore[arg-type]


OTHER_KEYS: Mapping[str, object] = {
    "number": 1,
    "None": None,
    "tuple": ("a", "b"),
    "date": datetime.date(2020, 1, 1),
    "bytes": b"x",
}


@pytest.mark.parametrize("key", OTHER_KEYS.values(), ids=OTHER_KEYS)
def test_keys_that_are_not_texts_are_refused_by_name(key: object) -> None:
    for make, name in (
        (tl.SimulationOptions, "force"),
        (tl.FmuCoupling, "connect"),
        (tl.StrokeOptions, "end"),
    ):
        with pytest.raises(InputError) as caught:
            make(**{name: {key: 1.0}})  # type: ignore[arg-type]
        problem = next(
            problem for problem in caught.value.problems if "has the key" in problem.what
        )
        assert problem.where == name
        assert type(key).__name__ in problem.what
        assert "give text" in problem.remedy


def test_arrays_of_numpy_are_taken_where_tuples_are_and_become_tuples() -> None:
    """An array is neither true nor false, and has no hash."""
    options = PreparationOptions(
        cutoff=np.float64(50.0), order=np.int64(4), scan_cutoffs=np.array([20.0, 40.0])
    )
    assert options.scan_cutoffs == (20.0, 40.0)
    curve = tl.motion.PathLimits(motor_curve=np.array([[0.0, 1.0], [20.0, 0.5]])).motor_curve
    assert curve == ((0.0, 1.0), (20.0, 0.5))


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((2, 2)),
        np.array([object()]),
        np.ma.masked_array([1.0], mask=[True]),
        [["a"]],
        {"a": 1},
    ],
)
def test_arrays_that_are_no_values_are_refused_by_name(wrong: object) -> None:
    for make, name in (
        (PreparationOptions, "cutoff"),
        (PreparationOptions, "scan_cutoffs"),
        (tl.IdentificationOptions, "hold_out"),
        (tl.motion.PathLimits, "speed"),
        (Sampling, "resolution"),
    ):
        with pytest.raises(InputError) as caught:
            make(**{name: wrong})  # type: ignore[arg-type]
        assert caught.value.problems[0].where.startswith(name)


def test_noises_of_planned_poses_have_units() -> None:
    words = {"parameters": "track*.length", "noise": "50 um", "angle_noise": "180 deg"}
    options = options_from_arguments(tl.PosePlanOptions, words)
    assert (options.noise, options.angle_noise) == pytest.approx((5e-5, np.pi))
    with pytest.raises(InputError, match="is a mass"):
        options_from_arguments(tl.PosePlanOptions, {"parameters": "a", "noise": "50 kg"})


def test_defaults_that_are_read_from_text_are_shown_and_mean_themselves() -> None:
    """`--rate` has a default as well as `--damping`, though only its own reader knows what the text means."""
    seen = {}
    for options in (getattr(tl, name) for name in tl.__all__ if name.endswith("Options")):
        shown = {
            item.name: get_args(item.annotation)[1].show_default
            for item in option_parameters(options)
        }
        for item in dataclasses.fields(options):
            read = getattr(item.metadata.get("option"), "read", None)
            if read is not None and isinstance(text := shown.get(item.name), str):
                seen[options, item.name] = text
                assert read(text) in (item.default, text), item
    assert seen[tl.ControlOptions, "rate"] == "1000"
    assert (tl.BacklashOptions, "play") not in seen  # its text says what holds without it, in um
