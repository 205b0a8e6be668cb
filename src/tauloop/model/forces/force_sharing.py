"""Force sharing of redundant actuators, and preloads of cables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import pairs_reader
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.compiler.functions.tensions import winches
from tauloop.equations.named_values import named_values
from tauloop.equations.ports import Port
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.suggestions import unknown_names


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceSharing(ReprMixin):
    """Weights w of the actuators: redundant actuator forces u minimize the sum of w u^2.

    Attributes:
        weight: w > 0 by name of the actuator; the default is one. A large weight reduces the force
            of an actuator. Forces in N and in N m are added without conversion, so set weights if
            both occur: 1/limit^2 is the natural choice.
        by_limits: whether the default is w = 1/limit^2.
        preload: desired tensions of cables, N: one for all, or by name of the rod. The sum then
            uses the difference of a winch's force from the force that holds its cable at this
            tension. The default is the smallest tension within the bounds.
    """

    weight: Mapping[str, float] = field(default_factory=dict)
    by_limits: bool = False
    preload: Mapping[str, float] | float = 0.0

    def preloads(self, mechanism: Mechanism) -> np.ndarray:
        """Return the desired tensions (k,) of the cables, N, in the order of the rods.

        Raises:
            InputError: a cable does not exist, no winch drives only this cable, or a tension is not
                finite; all problems are listed at once.
        """
        names = list(mechanism.cables)
        values = (
            self.preload
            if isinstance(self.preload, Mapping)
            else dict.fromkeys(names, self.preload)
        )
        has_winch = {
            name: winch is not None for name, winch in zip(names, winches(mechanism), strict=True)
        }
        problems = Problems()
        for name, value in values.items():
            if name not in names:
                known = f"there are {', '.join(names)}" if names else "give rods `tension`"
                problems.add(f"preload.{name}", "there is no such cable", known)
            elif not np.isfinite(value):
                problems.add(f"preload.{name}", f"is {value:g}", "give a tension in N")
            elif isinstance(self.preload, Mapping) and not has_winch[name]:
                what = "no actuator drives only this cable, so its preload has no effect"
                problems.add(f"preload.{name}", what, "omit it")
        InputError.raise_if_any(problems)
        return np.array([float(values.get(name, 0.0)) for name in names])

    def weights(self, mechanism: Mechanism) -> np.ndarray:
        """Return weights (n_u,) in the order of the actuators.

        Raises:
            InputError: an actuator does not exist, a weight is not positive, or a limit is missing;
                all problems are listed at once.
        """
        names = [actuator.name for actuator in mechanism.actuators]
        problems = Problems(
            unknown_names(self.weight, names, "there is no such actuator", "weight.{}")
        )
        for name, value in self.weight.items():
            if not (np.isfinite(value) and value > 0):
                problems.add(
                    f"weight.{name}",
                    f"must be positive and finite, got {value:g}",
                    "give 1 for equal weights",
                )
        values = np.ones(len(names))
        for i, actuator in enumerate(mechanism.actuators):
            if actuator.name in self.weight:
                values[i] = self.weight[actuator.name]
            elif self.by_limits and np.isfinite(actuator.force):
                values[i] = actuator.force**-2.0
            elif self.by_limits:
                problems.add(
                    actuator.name,
                    "has no force limit, from which its weight would follow",
                    "give its `force` or its weight",
                )
        InputError.raise_if_any(problems)
        return values


#: All weights are one, so that u has the smallest norm.
EQUAL_SHARES = ForceSharing()


def sharing_of(
    mechanism: Mechanism, preload: str | float | Mapping[str, str | float] | None
) -> ForceSharing:
    """Return the force sharing for preloads of cables.

    Args:
        mechanism: the machine.
        preload: tension of all cables, N; or tensions of some cables by name; or a text such as
            ``50`` or ``cable1=50 N,cable2=40``.

    Raises:
        InputError: there are no cables, or a name or a number is wrong.
    """
    if preload is None:
        return EQUAL_SHARES
    names = tuple(mechanism.cables)
    if not names:
        raise InputError.of(
            "preload", "the machine has no cables", "define `tension` for rods in the machine file"
        )
    named: str | float | Mapping[str, str | float] = preload
    if isinstance(preload, str):
        try:
            named = float(preload)
        except ValueError:
            named = pairs_reader("preload")(preload)
    if not isinstance(named, Mapping):
        return ForceSharing(preload=float(named))
    port = Port(name="preload", columns=names, units=("N",) * len(names))
    preloads = named_values(port, "preload", named, np.zeros(len(names)))
    return ForceSharing(
        preload={name: float(value) for name, value in zip(names, preloads, strict=True) if value}
    )
