"""Slider cranks as URDF, whose rods hang on hinges through one point."""

from __future__ import annotations

ROD = '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.004"/>'
TILTED = '<inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.023" iyz="0" izz="0.006"/>'

SIDE = "closed_loop: [[tip, eye]]\ntype: [3d]\nname_mot: [crank]\n"


def link(name: str, mass: float, center: str = "0 0 0", inertia: str = TILTED) -> str:
    return f'<link name="{name}"><inertial><origin xyz="{center}"/><mass value="{mass}"/>{inertia}</inertial></link>'


def joint(name: str, kind: str, parent: str, child: str, axis: str, xyz: str = "0 0 0") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}"/>'
    limit = (
        '<limit lower="-0.15" upper="0.15" effort="1" velocity="1"/>' if kind == "prismatic" else ""
    )
    return f'<joint name="{name}" type="{kind}">{ends}<axis xyz="{axis}"/>{limit}</joint>'


def slider_crank(
    *, hinges: tuple[str, ...], center: str = "0 0 0.25", inertia: str = ROD, more: str = ""
) -> str:
    """A crank about y and a slide along x, with a rod of 0.6 m from the crank's tip on hinges through one point."""
    inner = [f"hinge{k}" for k in range(1, len(hinges))]
    chain = ["arm", *inner, "rod"]
    steps = zip(hinges, chain[:-1], chain[1:], strict=True)
    return "".join(
        [
            '<robot name="slider_crank"><link name="ground"/>',
            link("arm", 2.0, "0.1 0.01 0.02"),
            link("block", 3.0, "0.02 0 0.01"),
            link("rod", 1.2, center, inertia),
            *(f'<link name="{name}"/>' for name in (*inner, "tip", "eye")),
            joint("crank", "continuous", "ground", "arm", "0 1 0"),
            joint("slide", "prismatic", "ground", "block", "1 0 0", "0.4 0.05 0.45"),
            *(
                joint(
                    f"turn{k}", "continuous", parent, child, axis, "0.2 0 0" if k == 0 else "0 0 0"
                )
                for k, (axis, parent, child) in enumerate(steps)
            ),
            joint("to_tip", "fixed", "rod", "tip", "1 0 0", "0 0 0.6"),
            joint("to_eye", "fixed", "block", "eye", "1 0 0", "0.1 0 0.05"),
            more,
            "</robot>",
        ]
    )


BALL, UNIVERSAL = ("1 0 0", "0 1 0", "0 0 1"), ("0 1 0", "1 0 0")
