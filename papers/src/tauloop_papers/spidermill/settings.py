"""Sections 4 and 5 of the paper on the unreduced machine: its values, and our choices; SI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedErrors:
    """Mean relative errors of the actuators' forces in percent, as printed.

    Attributes:
        before, after: errors by actuator, with the parameters of the full machine and with the
            estimated ones.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]

    def cut(self, actuator: int) -> float:
        """Return the reduction of the error by the estimation, as a share."""
        return 1.0 - self.after[actuator] / self.before[actuator]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Values stated in the paper.

    Attributes:
        by: source of the values.
        identification, verification: errors on the two trajectories.
        condition: condition number of the information matrix.
        minimal: number of minimal parameters.
        estimated: values that the paper gives to parameters after its estimation, SI.
        rounding: share by which these are rounded.
    """

    by: str
    identification: PrintedErrors
    verification: PrintedErrors
    condition: float
    minimal: int
    estimated: Mapping[str, float]
    rounding: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedSet:
    """A printed set of parameters: combinations of products, and their units."""

    members: Mapping[str, Mapping[str, str]]
    units: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedSettings:
    """Values of the paper, and our choices; SI.

    Attributes:
        machine: the unreduced machine.
        contact_offset: displacement of rods' far ends in the plant alone, m, in the frame of the
            body.
        massless: massless rods of the reduced model.
        parts, actuators: names of these rods, and of the actuators.
        readings: names of the reduced model, and of its other reading (`placed`).
        readings_in_print: where the paper uses which reading.
        expected: the paper's expectation for an exact plant, and the result.
        joints: coordinates whose motion is given and measured.
        harmonics, period, stroke, speed, acceleration: of both trajectories, and limits of the
            joints.
        frequency: sample rate, Hz.
        seed: seed of all random numbers.
        random, starts: numbers of random series and of starts of the excitation.
        series: coefficients (n, 2 K + 1) of the identification and of the verification trajectory,
            as `FourierSeries.of` takes them; empty to search for them.
        least_force: share of the largest force below which a sample is left out of relative errors.
        products: expressions of the parameters in which the reduced model is written.
        lengths: parameters on which coefficients of the regrouping depend.
        placed: the other reading of the reduced model.
        printed: the paper's minimal set.
        spindle_factors, offset_sizes: factors of the massless rods' masses in the plant, and sizes
            (m) of the offset.
        cuts: smallest reductions of the verification errors by actuator, as stated on the page.
        known: parameters that the paper assumes known to compute the others.
        drawn: the parameter that is also given, from the drawing.
        masses: its values for which the printed estimates are evaluated.
        spatial: the machine in space, with all its bodies.
        stated: values of the paper.
    """

    machine: str
    contact_offset: Mapping[str, tuple[float, float, float]]
    massless: tuple[str, ...]
    parts: str
    actuators: tuple[str, ...]
    readings: tuple[str, ...]
    readings_in_print: str
    expected: str
    joints: tuple[str, ...]
    harmonics: int
    period: float
    stroke: float
    speed: float
    acceleration: float
    frequency: float
    seed: int
    random: int
    starts: int
    series: tuple[tuple[tuple[float, ...], ...], ...]
    representatives: tuple[str, ...]
    least_force: float
    products: tuple[str, ...]
    lengths: tuple[str, ...]
    placed: Mapping[str, str]
    printed: PrintedSet
    spindle_factors: tuple[float, ...]
    offset_sizes: tuple[float, ...]
    cuts: tuple[float, ...]
    known: tuple[str, ...]
    drawn: str
    masses: tuple[float, ...]
    spatial: str
    stated: Stated


SETTINGS = ReducedSettings(
    machine="spidermill",
    # The paper names a small offset of the spindles from the axes of the cranks, and omits it
    # of the reduced model, as it does the masses of the spindles. Offsets in the crank's frame,
    # towards the spindle's foot.
    contact_offset={"side1.spindle": (0, 0.01, 0), "side2.spindle": (0, -0.01, 0)},
    massless=("side1.spindle", "side2.spindle"),
    parts="spindles",
    actuators=("left spindle", "right spindle"),
    readings=(
        "m4 where the upper cranks meet",
        "halves of m4 at the mass centers of the upper cranks",
    ),
    readings_in_print="Fig. 4 shows the first, eqs. 5 and 16 and the text of section 3 have the second",
    expected="the paper expects an error from the lever arms of the coupling elements; they only translate, so there "
    "is none",
    joints=("side1.base_outer_pin", "side2.base_outer_pin"),
    harmonics=7,
    period=7.29,
    stroke=0.4,
    speed=2,
    acceleration=10,
    frequency=100,
    seed=0,
    random=400,
    starts=1,
    # an optimum of the search, and the liveliest of 400 random series
    series=(
        (
            (
                1.6845266,
                -0.0997159,
                0.0728451,
                -0.0488113,
                0.0159268,
                -0.0337046,
                0.0079017,
                0.0225522,
                0.0121267,
                -0.0123452,
                -0.0335132,
                0.0451208,
                -0.0284968,
                -0.0449839,
                0.039771,
            ),
            (
                1.6114145,
                -0.0304238,
                -0.0158742,
                0.022508,
                0.0009586,
                -0.0513349,
                0.0353995,
                0.005013,
                -0.0688391,
                -0.0036434,
                0.0145797,
                -0.0113668,
                0.0144639,
                -0.0529089,
                0.0342283,
            ),
        ),
        (
            (
                1.7598354,
                0.0255712,
                0.0298166,
                -0.0016044,
                0.0012911,
                0.0375092,
                0.0001096,
                -0.0391084,
                -0.0118337,
                -0.021265,
                0.0228195,
                -0.0072265,
                -0.0027411,
                -0.018413,
                0.0150722,
            ),
            (
                1.4861357,
                0.02599,
                -0.0676271,
                -0.0101472,
                -0.0395074,
                1.62e-05,
                0.0026261,
                0.0402711,
                -0.0320879,
                0.029708,
                0.0367364,
                0.0381367,
                0.016789,
                -0.0363759,
                -0.0028113,
            ),
        ),
    ),
    # in SI units the condition number depends on which parameters represent the minimal ones
    representatives=(
        "side1.lower_outer.mcx",
        "side1.lower_outer.Izz",
        "side1.upper_inner.h",
        "side1.upper_inner.J",
    ),
    least_force=0.05,
    # eq. 5, in its order
    products=(
        "m1 * d_c1",
        "m1 * d_c1^2",
        "m2",
        "m3",
        "m3 * d_c3",
        "m3 * d_c3^2",
        "m4",
        "m4 * d_c3",
        "m4 * d_c3^2",
        "I_c1",
        "I_c3",
    ),
    lengths=("d1", "d3"),
    placed={"plate.m": "0 kg"}
    | {
        f"side{k}.upper_inner.{name}": formula
        for k in (1, 2)
        for name, formula in (
            ("m", "m3 + m4 / 2"),
            ("h", "(m3 + m4 / 2) * d_c3"),
            ("J", "(m3 + m4 / 2) * d_c3^2 + I_c3"),
        )
    },
    # eq. 16
    printed=PrintedSet(
        members={
            "p1": {"m1 * d_c1": "1", "m2": "d1", "m3": "d1", "m4 * d_c3": "d1 / (2 * d3)"},
            "p2": {
                "m1 * d_c1^2": "1",
                "m2": "d1^2",
                "m3": "d1^2",
                "m4 * d_c3": "d1^2 / (2 * d3)",
                "I_c1": "1",
            },
            "p3": {"m3 * d_c3": "1", "m4 * d_c3": "1 / 2"},
            "p4": {"m4": "1", "m4 * d_c3": "-1 / d3"},
            "p5": {"m3 * d_c3^2": "2", "m4 * d_c3^2": "1", "I_c3": "2"},
        },
        units={"p1": "kg m", "p2": "kg m^2", "p3": "kg m", "p4": "kg", "p5": "kg m^2"},
    ),
    spindle_factors=(0, 0.5, 1, 2, 4),
    offset_sizes=(0, 0.005, 0.01, 0.02, 0.04),
    # the page states 94 and 89 %
    cuts=(0.935, 0.885),
    known=("m1", "m3", "d_c1"),
    drawn="m4",
    # the second is the paper's, the third the drawing's
    masses=(5.4, 5.9203, 12.456, 20),
    spatial="spidermill_spatial",
    stated=Stated(
        by="paper, Table 2",
        identification=PrintedErrors(before=(9.90, 9.08), after=(3.33, 3.30)),
        verification=PrintedErrors(before=(10.20, 7.82), after=(3.56, 3.39)),
        condition=21.06,
        minimal=5,
        # Table 1, right column: what the estimates were taken for
        estimated={"m2": 15.9794, "m4": 5.9203, "d_c3": 0.833, "I_c1": 4.9733, "I_c3": 0.2162},
        rounding=1e-4,
    ),
)
