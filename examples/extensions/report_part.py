"""A part of reports of one's own: masses of bodies below what `tauloop check` prints: a table and a plot."""

from collections.abc import Iterator, Mapping

import tauloop as tl
from tauloop.display import Plot, PlotTrace, ReportPart, Table
from tauloop.kinematics import Inspection
from tauloop.testing import check_report_part


class Masses(ReportPart):
    """Mass of every body, kg."""

    name, takes = "masses", "Inspection"

    def tables(self, result: Inspection) -> Iterator[Table]:
        """See `ReportPart`: printed in the terminal, and put on pages."""
        cells = tuple((body, f"{mass:.4g}") for body, mass in self.data(result).items())
        heads, numeric = ("body", "mass [kg]"), (False, True)
        yield Table(title="Masses", heads=heads, cells=cells, numeric=numeric)

    def plots(self, result: Inspection) -> Iterator[Plot]:
        """See `ReportPart`: drawn into figures, and put on pages."""
        masses = self.data(result)
        bars = PlotTrace(name="mass", x=tuple(masses), y=tuple(masses.values()), style="bars")
        yield Plot(title="Masses", x="body", y="mass [kg]", traces=(bars,))

    def data(self, result: Inspection) -> Mapping[str, float]:
        """See `ReportPart`."""
        mechanism = result.model.mechanism
        return {
            body.name: mechanism.value(body.inertia.mass)
            for body in mechanism.bodies
            if body.inertia is not None
        }


MASSES = Masses()

if __name__ == "__main__":
    check_report_part(MASSES, tl.check(tl.load("four_bar")))
    print(
        "masses of bodies are a part of reports: `tauloop check` prints it where a package brings it"
    )
