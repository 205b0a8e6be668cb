"""An instrument of one's own: a string potentiometer from a fixed eye to a point on the tool, with an offset."""

from dataclasses import dataclass

import casadi as ca

import tauloop
from tauloop.calibration import Instrument, Nuisance
from tauloop.testing import check_instrument


@dataclass(frozen=True, slots=True, kw_only=True)
class String(Instrument):
    """Reads the length of a string less what was on the drum when it was zeroed.

    Attributes:
        eye: where the string leaves its drum, base frame, m; an unknown of the calibration.
        zero: the length that reads zero, m; an unknown too.
    """

    eye: tuple[float, float, float]
    zero: float = 0.0

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The length."""
        return (("length", "m"),)

    def nuisances(self) -> tuple[Nuisance, ...]:
        """Three coordinates of the eye, the target on the tool, and the zero."""
        eye = (
            Nuisance(name=f"{self.name}.eye.{axis}", value=x, unit="m")
            for axis, x in zip("xyz", self.eye, strict=True)
        )
        target = (
            Nuisance(name=f"{self.name}.target.{axis}", value=0.0, unit="m") for axis in "xyz"
        )
        return (*eye, *target, Nuisance(name=f"{self.name}.zero", value=self.zero, unit="m"))

    def error(self, scene, reading: ca.SX) -> ca.SX:
        """Predicted less measured length."""
        string = scene.target(self.name) - scene.vector(f"{self.name}.eye")
        return ca.norm_2(string) - scene.nuisances[f"{self.name}.zero"] - reading


if __name__ == "__main__":
    check_instrument(String(name="string", eye=(0.1, 0.2, 0.3), zero=0.2), tauloop.load("delta"))
    print("a string is an instrument: Series(instrument=String(...), ...)")
