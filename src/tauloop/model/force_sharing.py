"""How redundant actuators share the forces that a motion needs, and what their cables are preloaded with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from tauloop.errors import InputError, Problem, Problems
from tauloop.mechanism.cables import cables
from tauloop.mechanism.model import Mechanism
from tauloop.programs.tensions import winches
from tauloop.records import dataclass
from tauloop.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceSharing(Shown):
    """Weights w of the actuators: of all forces that give the motion, those with the least sum of w u^2 are chosen.

    Attributes:
        weight: w > 0 by name of the actuator, one where it is not named. A large one spares an actuator. Forces in N
            and in N m are added up as they are, so weigh them where both occur: 1/limit^2 is the natural choice.
        by_limits: whether w = 1/limit^2 for actuators that are not named.
        preload: tensions (N) that cables shall have, by name of the rod or one for all: the force of a winch is then
            counted from the one that holds its cable so. Without it the least tensions are chosen (within bounds).
    """

    weight: Mapping[str, float] = field(default_factory=dict)
    by_limits: bool = False
    preload: Mapping[str, float] | float = 0.0

    def preloads(self, mechanism: Mechanism) -> np.ndarray:
        """Tensions (k,) that the cables shall have, N, in the order of the rods.

        Raises:
            InputError: a cable does not exist or has no winch of its own, or a tension is not finite; all at once.
        """
        names = list(cables(mechanism))
        given = self.preload if isinstance(self.preload, Mapping) else dict.fromkeys(names, self.preload)
        wound = {name: winch is not None for name, winch in zip(names, winches(mechanism), strict=True)}
        problems = Problems()
        for name, value in given.items():
            if name not in names:
                known = f"there are {', '.join(names)}" if names else "give rods `tension`"
                problems.add(f"preload.{name}", "there is no such cable", known)
            elif not np.isfinite(value):
                problems.add(f"preload.{name}", f"is {value:g}", "give a tension in N")
            elif isinstance(self.preload, Mapping) and not wound[name]:
                what = "no single actuator winds this cable, so that nothing is counted from its preload"
                problems.add(f"preload.{name}", what, "leave it out")
        InputError.raise_if_any(problems)
        return np.array([float(given.get(name, 0.0)) for name in names])

    def weights(self, mechanism: Mechanism) -> np.ndarray:
        """Weights (n_u,) in the order of the actuators.

        Raises:
            InputError: an actuator does not exist, a weight is not positive, or a limit is missing; all at once.
        """
        names = [actuator.name for actuator in mechanism.actuators]
        problems = [
            Problem(where=f"weight.{name}", what="there is no such actuator", remedy=f"there are {', '.join(names)}")
            for name in self.weight
            if name not in names
        ]
        problems += [
            Problem(
                where=f"weight.{name}",
                what=f"must be positive and finite, got {value:g}",
                remedy="give 1 for all alike",
            )
            for name, value in self.weight.items()
            if not (np.isfinite(value) and value > 0)
        ]
        found = np.ones(len(names))
        for i, actuator in enumerate(mechanism.actuators):
            if actuator.name in self.weight:
                found[i] = self.weight[actuator.name]
            elif self.by_limits and np.isfinite(actuator.force):
                found[i] = actuator.force**-2.0
            elif self.by_limits:
                what = "has no largest force to weigh it by"
                problems.append(Problem(where=actuator.name, what=what, remedy="give its `force` or its weight"))
        InputError.raise_if_any(problems)
        return found


#: All actuators weigh one: the least norm of u.
EQUAL_SHARES = ForceSharing()
