"""Every machine of the gallery against something that is not Tauloop: a closed form in NumPy, or a published figure."""

from __future__ import annotations

import numpy as np
import pytest
from gallery_machines import at_rest, column, figures, model, origins, placed, rotations, stroke_of
from scipy.spatial.transform import Rotation

#: Positions, m or rad, by two routes.
SAME = 1e-9
#: Forces, relative, by virtual work with central differences.
WORK = 1e-6
GRAVITY = 9.81


def about_z(angle: float) -> np.ndarray:
    return Rotation.from_euler("z", angle).as_matrix()


def meet(P: np.ndarray, r: float, Q: np.ndarray, s: float, side: int) -> np.ndarray:
    """Where circles about P (radius r) and Q (radius s) meet in the plane, left (+1) or right (-1) of P to Q."""
    d = Q - P
    n = np.linalg.norm(d)
    x = (n**2 + r**2 - s**2) / (2 * n)
    along = d / n
    return P + x * along + side * np.sqrt(r**2 - x**2) * np.array([-along[1], along[0]])


def test_the_agile_eye_turns_as_gosselin_and_hamel_say() -> None:
    """An elbow's axis is at right angles to its motor's axis and to the camera's: tan(theta) = -w_y / w_z."""
    Q = rotations("agile_eye", "eye")
    for leg, (y, z) in enumerate([(1, 2), (2, 0), (0, 1)], start=1):
        w = Q[:, :, z]  # the camera's axis of this leg
        assert (
            np.abs(column("agile_eye", f"leg{leg}.shoulder") - np.arctan2(-w[:, y], w[:, z])).max()
            < SAME
        )
    home = model("agile_eye").platform_position(model("agile_eye").assembly.q)
    assert np.allclose(model("agile_eye").platform.actuator_jacobian(home), np.eye(3))


def test_bennett_s_half_angles_have_a_constant_product() -> None:
    p = figures("bennett")
    crank, coupler = column("bennett", "crank_hinge"), column("bennett", "coupler_hinge")
    product = np.sin((p["alpha"] + p["beta"]) / 2) / np.sin((p["beta"] - p["alpha"]) / 2)
    assert np.abs(np.tan(crank / 2) * np.tan(coupler / 2) + product).max() < SAME
    # opposite angles are equal
    assert np.abs(column("bennett", "closing_hinge") + coupler).max() < SAME


def cable_wrenches(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Wrenches per tension (N, 6, k) about the platform's origin, and tensions (N, k) that hold the machine at rest."""
    machine, q = model(name), stroke_of(name)
    ends = placed(name).of_kind("rod")
    pull = ends[:, :, 0] - ends[:, :, 1]
    pull /= np.linalg.norm(pull, axis=-1, keepdims=True)
    arm = ends[:, :, 1] - origins(name, machine.mechanism.platform.body)[:, None]
    still = np.zeros((len(q), machine.platform.ports.velocity.size))
    forces = machine.platform.inverse_dynamics(machine.platform_position(q), still, still, start=q)
    return np.concatenate([pull, np.cross(arm, pull)], axis=-1).mT, np.asarray(forces.tension)


@pytest.mark.parametrize(
    ("name", "mass", "rows"), [("cable_robot", "plate_mass", 6), ("cable_camera", "camera_mass", 3)]
)
def test_cables_carry_the_weight_within_their_bounds_all_along_the_stroke(
    name: str, mass: str, rows: int
) -> None:
    W, tension = cable_wrenches(name)
    weight = figures(name)[mass] * GRAVITY
    carried = (W @ tension[:, :, None])[:, :rows, 0]
    assert np.abs(carried - weight * np.eye(6)[2, :rows]).max() < 1e-8 * weight
    for rod, pulls in zip(model(name).mechanism.rods, tension.T, strict=True):
        assert rod.tension is not None
        assert (pulls > rod.tension.least - 1e-6).all()
    q = stroke_of(name)
    assert (
        model(name).platform.tension_margin(model(name).platform_position(q), start=q) > 0.0
    ).all()


def test_four_cables_in_the_middle_share_the_weight() -> None:
    """In the middle each pulls m g length / (4 height under the masts)."""
    p = figures("cable_camera")
    drop = p["mast"] - 10.0
    length = np.linalg.norm([p["length"] / 2, p["width"] / 2, drop])
    _, tension = cable_wrenches("cable_camera")
    assert tension[0] == pytest.approx(p["camera_mass"] * GRAVITY * length / (4 * drop), rel=1e-9)


def excavator_energy(boom: float) -> tuple[float, float]:
    """Potential energy (J) of what the boom lifts, cylinders included, and the length of its cylinder (m).

    Arm, bucket, rocker and their cylinders turn with the boom as one piece: angles of the arm and
    below stay.
    """
    p, up = figures("excavator"), np.array([0.0, 1.0])

    def turned(angle: float, *point: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, -s], [s, c]]) @ np.array(point)

    foot, arm_at, bucket_at = (
        np.array([0.10, 1.65]),
        boom - np.radians(95.0),
        boom - np.radians(145.0),
    )
    elbow = foot + turned(boom, p["boom"], 0.0)
    wrist = elbow + turned(arm_at, p["arm"], 0.0)
    rocker_pin, bucket_pin = (
        elbow + turned(arm_at, 2.50, 0.02),
        wrist + turned(bucket_at, 0.0, 0.46),
    )
    top = meet(rocker_pin, p["rocker"], bucket_pin, 0.60, 1)
    lifted = [
        (p["boom_mass"], foot + turned(boom, 2.75, 0.55)),
        (p["arm_mass"], elbow + turned(arm_at, 0.85, 0.15)),
        (p["bucket_mass"], wrist + turned(bucket_at, 0.65, 0.35)),
        (p["rocker_mass"], (rocker_pin + top) / 2),
        (p["tipping_mass"], (top + bucket_pin) / 2),
    ]
    A = np.array([0.95, 1.05])
    B = foot + turned(boom, 2.35, 0.60)
    for start, end, barrel, rod in (
        (A, B, 0.75, 0.70),
        (foot + turned(boom, 2.80, 0.95), elbow + turned(arm_at, -0.72, 0.28), 0.80, 0.75),
        (elbow + turned(arm_at, 0.35, 0.62), top, 0.65, 0.60),
    ):
        along = (end - start) / np.linalg.norm(end - start)
        lifted += [(p["barrel_mass"], start + barrel * along), (p["rod_mass"], end - rod * along)]
    return GRAVITY * sum(mass * float(point @ up) for mass, point in lifted), float(
        np.linalg.norm(B - A)
    )


def test_the_boom_cylinder_of_an_excavator_pushes_what_virtual_work_says() -> None:
    home, step = np.radians(30.0), 1e-5
    (high, longer), (low, shorter) = excavator_energy(home + step), excavator_energy(home - step)
    push = at_rest("excavator", stroke_of("excavator")[:1])[0]
    names = [actuator.name for actuator in model("excavator").mechanism.actuators]
    assert push[names.index("boom_valve")] == pytest.approx(
        (high - low) / (longer - shorter), rel=WORK
    )
    assert np.abs(column("excavator", "boom_cylinder")[0] - excavator_energy(home)[1]) < SAME


def test_carriages_of_the_hexaglide_follow_from_its_rods() -> None:
    p = figures("hexaglide")
    side = [1, -1, 1, -1, -1, 1]
    for leg in range(6):
        B = placed("hexaglide").of_kind("rod")[:, leg, 1]
        rail = [-0.45, -0.35, -0.05, 0.05, 0.35, 0.45][leg]
        slide = B[:, 0] + side[leg] * np.sqrt(p["rod"] ** 2 - (B[:, 1] - rail) ** 2 - B[:, 2] ** 2)
        assert np.abs(column("hexaglide", f"leg{leg + 1}.slide") - slide).max() < SAME


@pytest.mark.parametrize(
    ("place", "angles"),
    [((0.0, 0.0, -0.9), (-20.5, -20.5, -20.5)), ((0.3, 0.5, -1.1), (47.5, -11.6, 21.4))],
)
def test_the_irb_360_reaches_where_williams_says(
    place: tuple[float, float, float], angles: tuple[float, ...]
) -> None:
    """Inverse kinematics printed in Williams, The Delta parallel robot; his first leg lies along -y, ours along x."""
    x, y, z = place
    q = model("irb360").platform.follow(np.array([-y, x, z, 0.0])).q
    arms = model("irb360").actuator_position(q)[1:] / 30.0
    assert np.degrees(arms) == pytest.approx(angles, abs=0.051)


@pytest.mark.parametrize(
    ("angles", "place"),
    [((0.0, 0.0, 0.0), (0.0, 0.0, -1.065)), ((10.0, 20.0, 30.0), (0.108, -0.180, -1.244))],
)
def test_the_irb_360_stands_where_williams_says(
    angles: tuple[float, ...], place: tuple[float, float, float]
) -> None:
    motors = np.concatenate([[0.0], 30.0 * np.radians(angles)])
    y, x, z, _ = model("irb360").platform_position(model("irb360").actuators.follow(motors).q)
    assert (x, -y, z) == pytest.approx(place, abs=0.00061)


def test_a_shaft_with_parallel_ends_turns_the_gripper_as_its_motor() -> None:
    fourth = column("irb360", "fourth")
    assert np.abs((fourth - column("irb360", "spin") + np.pi) % (2 * np.pi) - np.pi).max() < SAME
    assert np.ptp(fourth) > 5.0


def jansen_foot(turn: float) -> np.ndarray:
    """Jansen's leg, circle by circle."""
    p = figures("jansen")
    pivot = np.array([p["a"], -p["l"]])
    pin = p["m"] * np.array([np.cos(turn), np.sin(turn)])
    top, knee = meet(pin, p["j"], pivot, p["b"], 1), meet(pin, p["k"], pivot, p["c"], -1)
    corner = meet(pivot, p["d"], top, p["e"], -1)
    ankle = meet(corner, p["f"], knee, p["g"], 1)
    return meet(knee, p["i_bar"], ankle, p["h"], -1)


def test_jansen_s_foot_walks_flat_for_a_part_of_its_way() -> None:
    foot = placed("jansen").tool
    expected = np.array([jansen_foot(turn) for turn in column("jansen", "turn")])
    assert np.abs(foot[:, :2] - expected).max() < SAME
    path = np.array(
        [jansen_foot(turn) for turn in np.linspace(0.0, 2 * np.pi, 720, endpoint=False)]
    )
    on_ground = path[:, 1] < path[:, 1].min() + 0.01  # 1 cm of a leg of 1 m
    assert 0.4 < on_ground.mean() < 0.6
    assert np.ptp(path[on_ground, 0]) > 0.55  # a stride of more than half a metre


def orthoglide_factors(place: np.ndarray) -> np.ndarray:
    """Velocity of the plate per velocity of the motors: singular values at a place (3,), by rods of length L."""
    L = figures("orthoglide")["rod"]
    inverse = np.eye(3)
    for i in range(3):
        across = np.delete(np.arange(3), i)
        run = np.sqrt(L**2 - (place[across] ** 2).sum())
        inverse[i, across] = place[across] / run  # a rod along (run, y, z)
    return np.linalg.svd(np.linalg.inv(inverse), compute_uv=False)


def test_the_orthoglide_keeps_chablat_and_wenger_s_bounds_in_its_cube() -> None:
    low, high = -0.07321, 0.12679
    machine = model("orthoglide")
    assert orthoglide_factors(np.zeros(3)) == pytest.approx(np.ones(3))
    assert orthoglide_factors(np.full(3, low)).max() == pytest.approx(2.0, rel=1e-4)
    assert orthoglide_factors(np.full(3, high)).min() == pytest.approx(0.5, rel=1e-4)
    for place in np.random.default_rng(3).uniform(low, high, (20, 3)):
        factors = (
            1.0 / np.linalg.svd(machine.platform.actuator_jacobian(place), compute_uv=False)[::-1]
        )
        assert factors == pytest.approx(orthoglide_factors(place), rel=1e-9)
        assert 0.5 - 1e-4 < factors.min()
        assert factors.max() < 2.0 + 1e-4


def test_bars_keep_the_gripper_of_a_palletiser_level() -> None:
    up = rotations("palletiser", "gripper")[:, :, 2]
    assert np.abs(up - [0.0, 0.0, 1.0]).max() < SAME
    shoulder, lever = column("palletiser", "shoulder"), column("palletiser", "lever_pin")
    assert np.abs(column("palletiser", "elbow") - (lever - shoulder)).max() < SAME
    p = figures("palletiser")
    reach = p["shoulder_x"] + p["arm"] * np.sin(shoulder) + p["reach"] * np.cos(lever) + 0.12
    assert (
        np.abs(np.linalg.norm(origins("palletiser", "gripper")[:, :2], axis=1) - reach).max() < SAME
    )


def test_halves_of_par4_translate_and_its_arms_follow_in_closed_form() -> None:
    p = figures("par4")
    for half in ("front", "back"):
        assert np.abs(rotations("par4", half) - np.eye(3)).max() < SAME
    assert np.abs(column("par4", "spin") - p["gear"] * column("par4", "turn")).max() < SAME
    middles = {"front": [p["reach"], -p["reach"]], "back": [-p["reach"], p["reach"]]}
    for leg, half in enumerate(["front", "front", "back", "back"]):
        phi = np.radians(45.0 + 90.0 * leg)
        end = (origins("par4", half) + np.array([middles[half][leg % 2], 0.0, 0.0])) @ about_z(phi)
        across, out, down = end[:, 1], end[:, 0] - p["base_radius"], end[:, 2]
        # (out - L cos)^2 + (down + L sin)^2 = l^2 - across^2
        k = (p["arm"] ** 2 + out**2 + down**2 - p["forearm"] ** 2 + across**2) / (2 * p["arm"])
        angle = np.arctan2(-down, out) - np.arccos(k / np.hypot(out, down))
        assert np.abs(column("par4", f"leg{leg + 1}.shoulder") - angle).max() < SAME


def test_peaucellier_s_pen_runs_straight() -> None:
    p = figures("peaucellier")
    pen = placed("peaucellier").tool
    assert np.abs(pen[:, 0] - (p["long"] ** 2 - p["short"] ** 2) / (2 * p["crank"])).max() < 1e-12
    # the inverse of the inner corner: along a line at half the crank's angle
    assert np.abs(pen[:, 1] - pen[:, 0] * np.tan(column("peaucellier", "turn") / 2)).max() < SAME
    assert np.ptp(pen[:, 1]) > 0.3


def test_cranks_of_a_3_rrr_follow_from_circles() -> None:
    p = figures("planar_3rrr")
    plate, turned = origins("planar_3rrr", "plate"), column("planar_3rrr", "platform.angle")
    for leg, phi in enumerate(np.radians([90.0, 210.0, 330.0]), start=1):
        for k in range(0, len(plate), 5):
            wrist = about_z(-phi) @ (
                plate[k] + about_z(turned[k] + phi) @ [p["plate_radius"], 0.0, 0.0]
            )
            motor = np.array([p["base_radius"], 0.0])
            elbow = meet(motor, p["proximal"], wrist[:2], p["distal"], -1) - motor
            assert (
                abs(column("planar_3rrr", f"leg{leg}.shoulder")[k] - np.arctan2(elbow[1], elbow[0]))
                < SAME
            )


def test_sarrus_table_rises_straight_and_its_motor_carries_what_virtual_work_says() -> None:
    p, slope = figures("sarrus"), column("sarrus", "leg1.foot")
    assert np.abs(rotations("sarrus", "table") - np.eye(3)).max() < SAME
    rise = np.stack([0 * slope, 0 * slope, 2 * p["link"] * np.sin(slope)], axis=1)
    assert np.abs(origins("sarrus", "table") - rise).max() < SAME
    q = stroke_of("sarrus")
    moment = GRAVITY * (2 * p["table_mass"] + 4 * p["link_mass"]) * p["link"] * np.cos(slope)
    assert at_rest("sarrus", q)[:, 0] * 50 == pytest.approx(moment, rel=1e-9)


def test_a_scissor_lift_s_pump_pushes_what_virtual_work_says() -> None:
    p, slope = figures("scissor_lift"), column("scissor_lift", "slope")
    assert np.abs(origins("scissor_lift", "deck")[:, 2] - 2 * p["arm"] * np.sin(slope)).max() < SAME

    def height(masses: np.ndarray) -> np.ndarray:
        """Potential energy over g along slopes: arms at a quarter and three quarters, deck and shoe at the top."""
        s = np.sin(masses)
        foot, knee = 0.25 * np.cos(masses), 0.0 * s
        lower = np.stack([foot, 0.25 * s], axis=1)
        upper = np.stack([knee + 0.9 * np.cos(masses), p["arm"] * s + 0.9 * s], axis=1)
        along = upper - lower
        length = np.linalg.norm(along, axis=1)
        barrel = lower[:, 1] + 0.4 * along[:, 1] / length
        rod = upper[:, 1] - 0.4 * along[:, 1] / length
        arms = 2 * p["arm_mass"] * p["arm"] * (0.5 * s + 1.5 * s)
        return np.stack(
            [
                arms + (p["deck_mass"] + p["shoe_mass"]) * 2 * p["arm"] * s + 16 * barrel + 9 * rod,
                length,
            ]
        )

    step = 1e-5
    (energy, length) = height(slope + step) - height(slope - step)
    assert at_rest("scissor_lift", stroke_of("scissor_lift"))[:, 0] == pytest.approx(
        GRAVITY * energy / length, rel=WORK
    )


def test_a_piston_goes_as_the_cosine_rule_says() -> None:
    p, turn = figures("slider_crank"), column("slider_crank", "turn")
    place = p["crank"] * np.cos(turn) + np.sqrt(p["rod"] ** 2 - (p["crank"] * np.sin(turn)) ** 2)
    assert np.abs(column("slider_crank", "bore") - place).max() < SAME
    assert np.ptp(turn) > 6.0


def test_a_tilted_3_prs_head_shifts_as_joshi_and_tsai_say() -> None:
    """R_yx = R_xy, x = r (R_xx - R_yy) / 2, y = -r R_yx: each ball stays in the plane of its leg."""
    R, place = rotations("three_prs", "plate"), origins("three_prs", "plate")
    r = figures("three_prs")["plate_radius"]
    assert np.abs(R[:, 1, 0] - R[:, 0, 1]).max() < SAME
    assert np.abs(place[:, 0] - r * (R[:, 0, 0] - R[:, 1, 1]) / 2).max() < SAME
    assert np.abs(place[:, 1] + r * R[:, 1, 0]).max() < SAME
    assert np.ptp(place[:, 0]) > 1e-3


def test_tsai_s_3_upu_only_translates_and_its_legs_are_distances() -> None:
    p, place = figures("three_upu"), origins("three_upu", "plate")
    assert np.abs(rotations("three_upu", "plate") - np.eye(3)).max() < SAME
    for leg, phi in enumerate(np.radians([90.0, 210.0, 330.0]), start=1):
        offset = (p["plate_radius"] - p["base_radius"]) * about_z(phi)[:, 0]
        assert (
            np.abs(
                column("three_upu", f"leg{leg}.length") - np.linalg.norm(place + offset, axis=1)
            ).max()
            < SAME
        )


def test_legs_of_the_tricept_are_distances() -> None:
    p = figures("tricept")
    for k in range(0, len(stroke_of("tricept")), 5):
        first, second, extension = (
            column("tricept", name)[k] for name in ("tilt.first", "tilt.second", "extension")
        )
        R = Rotation.from_euler("XY", [first, second]).as_matrix()
        for leg, phi in enumerate(np.radians([90.0, 210.0, 330.0]), start=1):
            across = about_z(phi)[:, 0]
            ball = R @ (p["plate_radius"] * across - [0.0, 0.0, extension])
            length = np.linalg.norm(ball - p["base_radius"] * across)
            assert abs(column("tricept", f"leg{leg}.strut")[k] - length) < SAME


def three_spheres(centers: np.ndarray, radii: np.ndarray, near: np.ndarray) -> np.ndarray:
    """The common point of three spheres that lies nearer to a point."""
    ex = (centers[1] - centers[0]) / np.linalg.norm(centers[1] - centers[0])
    i = ex @ (centers[2] - centers[0])
    ey = centers[2] - centers[0] - i * ex
    ey /= np.linalg.norm(ey)
    d, j = np.linalg.norm(centers[1] - centers[0]), ey @ (centers[2] - centers[0])
    x = (radii[0] ** 2 - radii[1] ** 2 + d**2) / (2 * d)
    y = (radii[0] ** 2 - radii[2] ** 2 + i**2 + j**2 - 2 * i * x) / (2 * j)
    z = np.sqrt(radii[0] ** 2 - x**2 - y**2)
    both = [centers[0] + x * ex + y * ey + sign * z * np.cross(ex, ey) for sign in (1, -1)]
    return min(both, key=lambda point: float(np.linalg.norm(point - near)))


def test_camber_and_toe_of_a_wishbone_follow_from_circles_and_spheres() -> None:
    """The upper ball on its circle and the tie rod's end on three spheres; the wheel's axis turns with these points."""
    lower = np.array([0.0, 0.370, -0.010])
    upper_axis = Rotation.from_euler("y", -4.0, degrees=True)
    # points of the upright
    home = np.array([[0.0, -0.040, -0.130], [-0.025, -0.090, 0.165], [-0.140, -0.060, -0.090]])
    tie = np.linalg.norm([0.010, 0.330, 0.010])
    camber = []
    for k in range(0, len(stroke_of("wishbone")), 3):
        angle, rack = column("wishbone", "lower_hinge")[k], column("wishbone", "rack")[k]
        below = np.array([0.0, 0.350, 0.200]) + Rotation.from_euler("x", angle).apply(lower)
        reach = np.linalg.norm(home[1] - home[0])
        arm, pivot = (
            upper_axis.inv().apply([-0.015, 0.240, 0.005]),
            np.array([-0.010, 0.430, 0.480]),
        )
        # |pivot + U Rx(t) arm - below| = reach: A cos t + B sin t = C
        w = upper_axis.inv().apply(pivot - below)
        A, B = 2 * (arm[1:] @ w[1:]), 2 * (arm[1] * w[2] - arm[2] * w[1])
        C = reach**2 - w @ w - arm @ arm - 2 * arm[0] * w[0]
        turns = np.arctan2(B, A) + np.array([1, -1]) * np.arccos(C / np.hypot(A, B))
        turn = min((turns + np.pi) % (2 * np.pi) - np.pi, key=abs)
        above = pivot + upper_axis.apply(Rotation.from_euler("x", turn).apply(arm))
        inner = np.array([-0.130, 0.370 + rack, 0.240])
        radii = np.array(
            [np.linalg.norm(home[2] - home[0]), np.linalg.norm(home[2] - home[1]), tie]
        )
        outer = three_spheres(
            np.array([below, above, inner]), radii, inner + np.array([0.0, tie, 0.0])
        )
        points = np.array([below, above, outer])
        R, _ = Rotation.align_vectors(points - points.mean(axis=0), home - home.mean(axis=0))
        assert np.abs(rotations("wishbone", "upright")[k] - R.as_matrix()).max() < 1e-7
        camber.append(np.degrees(np.arcsin(R.as_matrix()[2, 1])))
    assert 1.0 < np.ptp(camber) < 10.0  # degrees over 160 mm of travel and full steering
