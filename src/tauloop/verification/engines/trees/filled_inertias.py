"""Inertias that an engine rejects, filled in where the difference cannot act.

A planar machine is described by moments about the normal of its plane; what is left out is zero,
and the rounding of the parallel-axis theorem makes it negative, which Pinocchio rejects. A link
that only turns about one of its fixed directions n depends on its inertia I by J = n.I n alone: it
gets the inertia J (n n^T + (1 - n n^T) / 2) of a flat body across n. The motion of a link that does
not turn at all does not depend on its inertia.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.errors import EngineError, Problems
from tauloop.mechanism.poses import Array
from tauloop.verification.engines.trees.rigid_tree import GROUND, EngineLink, RigidTree

#: Directions are the same when their sines differ by less than this.
PARALLEL = 1e-9
#: A negative moment below this fraction of the largest is rounding.
INERTIA_ROUNDING = 1e-12


def with_possible_inertias(tree: RigidTree) -> RigidTree:
    """Return the same tree, in which no link has a negative moment of inertia about an axis of its frame.

    Raises:
        EngineError: a link that turns about several directions has a negative moment of inertia
            beyond rounding.
    """
    axes = turning_axes(tree)
    links: list[EngineLink] = []
    problems = Problems()
    for link, directions in zip(tree.links, axes, strict=True):
        inertia = link.inertia
        if inertia is None or np.diag(inertia.about_center).min() >= 0.0:
            links.append(link)
            continue
        filled = _filled(inertia.about_center, directions)
        if np.diag(filled).min() < 0.0:
            moment = float(np.diag(inertia.about_center).min())
            what = (
                f"a moment of inertia about its mass center is {moment:.3g} kg m^2, and the link "
                "turns so that it acts"
            )
            problems.add(link.name, what, "correct the inertia: no body has a negative moment")
        links.append(replace(link, inertia=replace(inertia, about_center=filled)))
    EngineError.raise_if_any(problems)
    return replace(tree, links=tuple(links))


def turning_axes(tree: RigidTree) -> tuple[Array, ...]:
    """Return the directions (k, 3) about which each link can turn, in its own frame.

    Equal directions are returned once.
    """
    axes: list[Array] = []
    for link in tree.links:
        above = np.zeros((0, 3)) if link.parent == GROUND else axes[link.parent]
        directions = above @ link.at.rotation
        primitive = link.primitive
        if primitive is not None and primitive.kind == "ball":
            directions = np.eye(3)
        elif primitive is not None and primitive.kind == "hinge":
            axis = np.asarray(primitive.axis, dtype=float)[None, :]
            is_other = not len(directions) or np.abs(np.cross(directions, axis)).max() > PARALLEL
            # a second direction turns the ones before it in this link's frame
            if not len(directions):
                directions = axis
            elif is_other:
                directions = np.eye(3)
        axes.append(directions)
    return tuple(axes)


def _filled(inertia: Array, directions: Array) -> Array:
    if not len(directions):
        return np.asarray(np.eye(3) * np.abs(inertia).max())
    if len(directions) == 1:
        n = directions[0]
        about = float(n @ inertia @ n)
        return np.asarray(about * (np.outer(n, n) + 0.5 * (np.eye(3) - np.outer(n, n))))
    least = float(np.diag(inertia).min())
    return (
        inertia - least * np.eye(3)
        if -least < INERTIA_ROUNDING * np.abs(inertia).max()
        else inertia
    )
