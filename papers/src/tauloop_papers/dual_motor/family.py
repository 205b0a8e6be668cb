"""The family of plants for the paper's tables, and every row of these tables with its bar; SI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from tauloop.drives import LINE_INTEGRATOR, DriveLine, Observation, PlantUnknown, read_drive
from tauloop_papers.dual_motor.printed import (
    CONCLUSION,
    NOMINAL,
    SWITCHING_WEIGHTS,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    WEIGHTS,
)

#: Expected number of runs of a line, from which on the system's compiler is worth its time.
RUNS = 10**6
#: Integrator of all simulations: tighter tolerances change costs with a weighted overshoot of
#: 0.1 mm by about 1e-4.
STEPPING = replace(LINE_INTEGRATOR, max_steps=100_000)
#: Tolerances of printed values, as shares of them.
BARS = {"rise_time": 0.01, "settling_time": 0.01, "energy": 0.01, "overshoot": 0.1, "cost": 0.1}
#: Tolerance of the sums of Table 2, of which nine tenths are energy.
SUM_BAR = 0.01
STEP = 0.1

GAINS = ("switching_kp", "switching_ti", "switching_td")
_PLAY = ("motor_inertia", "motor_viscous", "motor_coulomb", "gap1", "gap2")
UNKNOWNS = {
    item.name: item
    for item in (
        PlantUnknown(name="cart_mass", lower=0.1, upper=500),
        PlantUnknown(name="cart_viscous", lower=20, upper=4000),
        PlantUnknown(name="cart_coulomb", lower=0.1, upper=400),
        PlantUnknown(name="preload", lower=5, upper=11, logarithmic=False),
        PlantUnknown(name="feed_forward_share", lower=0, upper=1.1, logarithmic=False),
        PlantUnknown(name="first_share", lower=0, upper=1.1, logarithmic=False),
        PlantUnknown(name="torque_share", lower=0, upper=1, logarithmic=False),
        PlantUnknown(name="band", lower=0.0002, upper=0.01),
        PlantUnknown(name="switching_kp", lower=100, upper=5000),
        PlantUnknown(name="switching_ti", lower=0.1, upper=3),
        PlantUnknown(name="switching_td", lower=0.005, upper=0.1),
        PlantUnknown(name="stiction", lower=0, upper=1, logarithmic=False),
        PlantUnknown(name="torque_limit", lower=11, upper=220),
        PlantUnknown(name="first_step", lower=0.02, upper=1),
        PlantUnknown(name="speed_gain", lower=0.01, upper=20),
        PlantUnknown(name="pinion_radius", lower=0.005, upper=0.2),
        # with play: values without effect for rigid racks
        PlantUnknown(name="motor_inertia", lower=1e-4, upper=0.05),
        PlantUnknown(name="motor_viscous", lower=0.001, upper=5),
        PlantUnknown(name="motor_coulomb", lower=1e-3, upper=5),
        PlantUnknown(name="gap1", lower=2e-5, upper=0.005),
        PlantUnknown(name="gap2", lower=2e-5, upper=0.005),
    )
}
#: Unknowns of every structure that does not fix them.
ALWAYS = tuple(UNKNOWNS)[:8]
#: Values of all structures that do not define others.
HELD = {
    "stiction": 0.0,
    "first_step": STEP,
    "switching_kp": 200.0,
    "switching_ti": 1.5,
    "switching_td": 0.05,
}
#: Values for rigid racks, for which the cart has all mass and friction.
RIGID = {"motor_inertia": 1e-5, "motor_viscous": 1e-6}


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """One structure of the family.

    Attributes:
        name: assumptions of the structure.
        known: fixed values.
        free: unknowns in addition to `ALWAYS`.
        is_relative: whether the paper's overshoots are shares of the step, not meters.
        is_one_share: whether one share of the preload is fed forward in both studies.
        sample_time: sample time of the control, s; None for continuous control.
        has_speed_loop: whether the position loop commands a proportional speed loop of the master.
        after: name of a structure with rigid racks whose results, with play, are the starts of this
            one.
    """

    name: str
    known: Mapping[str, float]
    free: tuple[str, ...] = ()
    is_relative: bool = False
    is_one_share: bool = False
    sample_time: float | None = None
    has_speed_loop: bool = False
    after: str | None = None

    @property
    def held(self) -> dict[str, float]:
        """Return all values that are not unknowns."""
        return {
            name: value
            for name, value in (HELD | dict(self.known)).items()
            if name not in self.free
        }

    @property
    def unknowns(self) -> tuple[PlantUnknown, ...]:
        """Return the unknowns."""
        names = [*(name for name in ALWAYS if name not in self.known), *self.free]
        return tuple(
            UNKNOWNS[name] for name in names if not (self.is_one_share and name == "first_share")
        )

    @property
    def line(self) -> DriveLine:
        """Return the candidate line with this control, and with play."""
        text = (
            files("tauloop_papers.dual_motor")
            .joinpath("candidate.yaml")
            .read_text(encoding="utf-8")
        )
        if self.sample_time is not None:
            text = text.replace("  dual:\n", f"  sample_time: {self.sample_time} s\n  dual:\n")
        if self.has_speed_loop:
            text = text.replace(
                "  dual:\n", "  speed: {encoder: motor, gain: speed_gain}\n  dual:\n"
            )
            text = text.replace("encoders:\n", "encoders:\n  motor: {on: motor1}\n")
            text = text.replace("parameters:\n", "parameters:\n  speed_gain: 1\n")
        return read_drive(text)

    @property
    def searched(self) -> DriveLine:
        """Return the line of the search."""
        return self.line if self.after else with_rigid_racks(self.line)

    @property
    def fixed(self) -> dict[str, float]:
        """Return the fixed values of the search."""
        return self.held if self.after else self.held | RIGID

    @property
    def observations(self) -> tuple[Observation, ...]:
        """Return every row of the tables with its bars."""
        return rows(
            scale=STEP if self.is_relative else 1.0,
            first="feed_forward_share" if self.is_one_share else "first_share",
        )


STRUCTURES = (
    Structure(name="nominal gains in the switching study", known={}),
    Structure(
        name="Table 1's best gains in it",
        known={"switching_kp": 292.01, "switching_ti": 1.24, "switching_td": 0.01},
    ),
    Structure(name="nominal gains, no dry friction", known={"cart_coulomb": 0.0}),
    Structure(name="free gains in the switching study", known={}, free=GAINS),
    Structure(name="free gains, no dry friction", known={"cart_coulomb": 0.0}, free=GAINS),
    Structure(
        name="free gains, one share fed forward in both studies",
        known={},
        free=GAINS,
        is_one_share=True,
    ),
    Structure(name="free gains, first step free", known={}, free=(*GAINS, "first_step")),
    Structure(
        name="free gains, overshoot as a share of the step", known={}, free=GAINS, is_relative=True
    ),
    Structure(name="free gains, stiction", known={}, free=(*GAINS, "stiction")),
    Structure(name="free gains, limited torques", known={}, free=(*GAINS, "torque_limit")),
    Structure(name="free gains, control sampled at 5 ms", known={}, free=GAINS, sample_time=0.005),
    Structure(name="nominal gains, overshoot as a share of the step", known={}, is_relative=True),
    Structure(
        name="nominal gains, stiction and first step free",
        known={},
        free=("stiction", "first_step"),
    ),
    Structure(
        name="nominal gains, inner speed loop",
        known={},
        free=("speed_gain", "pinion_radius"),
        has_speed_loop=True,
    ),
    Structure(
        name="free gains, inner speed loop",
        known={},
        free=(*GAINS, "speed_gain", "pinion_radius"),
        has_speed_loop=True,
    ),
    Structure(
        name="nominal gains, play",
        known={},
        free=_PLAY,
        after="nominal gains in the switching study",
    ),
    Structure(
        name="free gains, play",
        known={},
        free=(*GAINS, *_PLAY),
        after="free gains in the switching study",
    ),
)


#: The earlier plant of Tauloop (energies and times alone), in the first population of the
#: first start.
EARLIER = {
    "cart_mass": 8.96,
    "cart_viscous": 665.5,
    "cart_coulomb": 36.17,
    "preload": 7.1515,
    "feed_forward_share": 0.1712,
    "first_share": 0.1712,
    "torque_share": 0.4065,
    "band": 0.0016283,
    "switching_kp": 1045.17,
    "switching_ti": 0.43761,
    "switching_td": 0.023232,
    "first_step": 0.096192,
}

#: A plant with both times and all four costs of Table 1 within their bars. Its switching gains
#: are the nominal ones; the second stage of the search fits those of the switching study.
TABLE_1_PLANT = {
    "cart_mass": 6.0328832,
    "cart_viscous": 156.71587,
    "cart_coulomb": 139.81659,
    "preload": 6.1630619,
    "feed_forward_share": 0.37253118,
    "first_share": 1.056601,
    "torque_share": 0.091275505,
    "band": 0.002084346,
    "switching_kp": 200.0,
    "switching_ti": 1.5,
    "switching_td": 0.05,
}


def with_rigid_racks(line: DriveLine) -> DriveLine:
    """Return the line with rigid connections; dry friction is the cart's."""
    inertias = tuple(
        item
        if item.name == line.performance.of or item.friction is None
        else replace(item, friction=None)
        for item in line.inertias
    )
    return replace(
        line,
        inertias=inertias,
        connections=tuple(replace(c, compliance=None) for c in line.connections),
    )


def rows(scale: float = 1.0, first: str = "first_share") -> tuple[Observation, ...]:
    """Return every row of Tables 1 to 3 and of their text.

    Args:
        scale: factor from meters to the paper's unit of overshoot.
        first: name of the share of the preload of the feed-forward in Table 1.
    """
    gains = dict(zip(("kp", "ti", "td"), GAINS, strict=True))
    preloaded = {"feed_forward_share": first}
    weights = {
        name: value * (scale if name == "overshoot" else 1.0) for name, value in WEIGHTS.items()
    }
    both = {
        name: value * (scale if name == "overshoot" else 1.0)
        for name, value in SWITCHING_WEIGHTS.items()
    }

    def row(
        name: str,
        parameters: Mapping[str, float | str],
        printed: Mapping[str, float],
        *,
        weights: Mapping[str, float] | None = None,
        bar: float | None = None,
        is_first: bool = False,
    ) -> Observation:
        return Observation(
            name=name,
            parameters=parameters,
            step="first_step" if is_first else STEP,
            measured=printed,
            tolerances={
                key: (BARS[key] if bar is None else bar) * value for key, value in printed.items()
            },
            scales=weights or {},
            motors="preloaded" if is_first else "as-written",
        )

    def switched(at: Sequence[float]) -> dict[str, float | str]:
        return {**gains, "switch_max": at[0], "switch_min": at[1]}

    observations = [
        row(
            "nominal gains",
            {"kp": 200, "ti": 1.5, "td": 0.05, **preloaded},
            {
                name: value * (scale if name == "overshoot" else 1.0)
                for name, value in NOMINAL.items()
            },
            is_first=True,
        )
    ]
    for method, (cost, tuned) in TABLE_1.items():
        parameters: dict[str, float | str] = {
            **dict(zip(("kp", "ti", "td"), tuned, strict=True)),
            **preloaded,
        }
        observations.append(
            row(f"Table 1, {method}", parameters, {"cost": cost}, weights=weights, is_first=True)
        )
    pairs = {at: pair for pair, at in TABLE_3}
    for at, (energy, overshoot) in pairs.items():
        printed = {"energy": energy * both["energy"], "overshoot": overshoot * both["overshoot"]}
        observations.append(row(f"Table 3, {at}", switched(at), printed))
    for at, cost in {at: cost for cost, at in TABLE_2 if at not in pairs}.items():
        observations.append(
            row(f"Table 2, {at}", switched(at), {"cost": cost}, weights=both, bar=SUM_BAR)
        )
    energy, at = CONCLUSION[1]
    observations.append(row(f"conclusion, {at}", switched(at), {"energy": energy}))
    return tuple(observations)
