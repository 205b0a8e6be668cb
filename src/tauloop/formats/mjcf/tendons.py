"""Spatial tendons of an MJCF: straight lines between sites become massless telescopic rods.

The length of a tendon is the sum over its branches of the distances between successive sites,
divided by the divisor of the branch's pulley. Every line between bodies that move relative to each
other becomes a rod whose length is a coordinate. The tendon is then a combination of these
coordinates, just as a fixed tendon is a combination of joints. A tendon on which nothing acts adds
no coordinates. The length of a tendon becomes an output, unless it is a single coordinate. Wrapping
around geoms is not modeled.
"""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.formats.imported.leaves import Leaves
from tauloop.formats.mjcf.settings import MjcfReader
from tauloop.formats.mjcf.tree import TreeReader
from tauloop.formats.urdf.parts import identifier
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.description.units import LENGTH
from tauloop.mechanism.expression import Constant, Expression, add, multiply
from tauloop.mechanism.model import Freedom, Placement, Rod, Telescope, Tension
from tauloop.mechanism.outputs import Output, Point, PointDistance
from tauloop.mechanism.poses import FramePose

#: Elements of a path.
_SITE, _PULLEY, _GEOM = "site", "pulley", "geom"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialTendon:
    """The path of a spatial tendon.

    Attributes:
        terms: (rod, factor) pairs; the tendon's length is the sum of factor times rod length.
        constant: length of the lines whose ends do not move relative to each other, m, with their
            factors.
        initial_length: length in the file's pose, m.
        output: the tendon's length as an output; None for a tendon around geoms.
        geoms: names of the geoms around which it runs; a tendon around geoms has no terms.
    """

    terms: tuple[tuple[str, float], ...] = ()
    constant: float = 0.0
    initial_length: float = 0.0
    output: Output | None = None
    geoms: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class SpatialTendonReader:
    """Reads the paths of spatial tendons.

    Attributes:
        reader: collects problems.
        leaves: receives the positions of sites, and fixed lengths, as parameters.
        tree: the worldbody, which has been read.
        rods: rods of the lines, by name.
        lengths: distance between the ends of each rod in the file's pose, m.
    """

    reader: MjcfReader
    leaves: Leaves
    tree: TreeReader
    rods: dict[str, Rod] = field(default_factory=dict)
    lengths: dict[str, float] = field(default_factory=dict)
    _sites: dict[str, Placement] = field(default_factory=dict)

    def read(self, node: XmlNode, name: str, rod_name: str) -> SpatialTendon | None:
        """Return the path of a tendon, and add its rods, or None after adding a problem.

        Args:
            node: element ``<spatial>``.
            name: its name in the file.
            rod_name: name of the tendon's rod; a number is appended if there are several.
        """
        geoms = tuple(self.reader.word(element, _GEOM) for element in node.all(_GEOM))
        for element in node.children:
            self.reader.use(element, "sidesite")
        if geoms:
            return SpatialTendon(geoms=geoms)
        lines = self._lines(node, name)
        if lines is None:
            return None
        moving_lines: list[tuple[str, str, float]] = []
        constant = 0.0
        initial_length = 0.0
        for first, second, factor in lines:
            length = self._distance(first, second)
            initial_length += factor * length
            bodies = [
                self._welded_root(self.tree.bodies.sites[site][0]) for site in (first, second)
            ]
            if bodies[0] == bodies[1]:
                constant += factor * length
            else:
                moving_lines.append((first, second, factor))
        distances: list[Expression] = []
        for first, second, factor in lines:
            distance = PointDistance(Point(self._placement(first)), Point(self._placement(second)))
            distances.append(multiply(Constant(factor), distance))
        terms: list[tuple[str, float]] = []
        for k, (first, second, factor) in enumerate(moving_lines, 1):
            rod = rod_name if len(moving_lines) == 1 else f"{rod_name}_{k}"
            self._add_rod(rod, first, second)
            terms.append((rod, factor))
        output = Output(
            name=rod_name,
            expression=add(*distances),
            dimension=LENGTH,
            note=f"length of the tendon {name}",
        )
        return SpatialTendon(
            terms=tuple(terms), constant=constant, initial_length=initial_length, output=output
        )

    def set_elements(self, name: str, elements: Freedom) -> None:
        """Set the spring, friction, inertia and limits of a rod's length."""
        rod = self.rods[name]
        telescope = Telescope(reference=self.lengths[name], freedom=elements)
        self.rods[name] = replace(rod, telescope=telescope)

    def set_tension(self, name: str, tension: Tension) -> None:
        """Make a rod a cable with these limits of its tension."""
        self.rods[name] = replace(self.rods[name], tension=tension)

    def set_fixed_length(self, name: str, length: float) -> None:
        """Give a rod a fixed length, m."""
        leaf = self.leaves.leaf(f"{name}.length", length, "m", "geometry")
        self.rods[name] = replace(self.rods[name], telescope=None, length=leaf)

    def _lines(self, node: XmlNode, name: str) -> list[tuple[str, str, float]] | None:
        """Return the sites and the factor of the length of each line, or None if invalid."""
        reader, sites = self.reader, self.tree.bodies.sites
        lines: list[tuple[str, str, float]] = []
        previous, factor = "", 1.0
        for element in node.children:
            if element.tag == _PULLEY:
                divisor = reader.value(element, name, "divisor", 1.0)
                if divisor <= 0.0:
                    what = f"the divisor of a pulley is {divisor:g}"
                    reader.problem(element, name, what, "give a positive number")
                    return None
                previous, factor = "", 1.0 / divisor
            elif element.tag == _SITE:
                site = reader.word(element, _SITE)
                what, remedy = f"there is no site {site!r}", "define it on a body"
                if reader.look_up(element, name, site, sites, what, remedy) is None:
                    return None
                if previous:
                    lines.append((previous, site, factor))
                previous = site
        if not lines:
            what = "there are no two successive sites"
            reader.problem(node, name, what, "name at least two sites")
            return None
        return lines

    def _distance(self, first: str, second: str) -> float:
        """Return the distance between two sites in the file's pose, m."""
        points = []
        for site in (first, second):
            body, pose = self.tree.bodies.sites[site]
            points.append((self.tree.bodies.world[body] @ pose).position)
        return float(np.linalg.norm(points[1] - points[0]))

    def _welded_root(self, body: str) -> str:
        """Return the body nearest the root to which a chain of welds connects a body."""
        welds = {
            joint.child.body: joint.parent.body
            for joint in self.tree.bodies.joints
            if joint.kind == "fixed"
        }
        while body in welds:
            body = welds[body]
        return body

    def _add_rod(self, name: str, first: str, second: str) -> None:
        """Add the telescopic rod between two sites."""
        length = self._distance(first, second)
        self.lengths[name] = length
        self.rods[name] = Rod(
            name=name,
            start=self._placement(first),
            end=self._placement(second),
            telescope=Telescope(reference=length),
        )

    def _placement(self, site: str) -> Placement:
        """Return the point of a site; all lines from it share its parameters."""
        if site not in self._sites:
            body, pose = self.tree.bodies.sites[site]
            point = FramePose(position=pose.position)
            self._sites[site] = self.tree.placement(body, point, f"{identifier(site)}.site")
        return self._sites[site]
