"""Functions for PyTorch: values and Jacobians of Tauloop's own, autograd to the second order, batches, and floats."""

from __future__ import annotations

import numpy as np
import pytest
from extras import extra, is_here

import tauloop as tl
from tauloop.common.errors import EngineError

#: The same machine code, called in another way; and single precision.
SAME, SINGLE = 1e-12, 1e-6
#: Of differences in the checks of autograd: of first order, and of slopes.
FIRST, SECOND = {"eps": 1e-6, "atol": 1e-6, "rtol": 1e-6}, {"eps": 1e-6, "atol": 1e-5, "rtol": 1e-5}
DELTA = tl.Model(tl.load("delta"))
STATE = [0.05, 0.0, -0.5], [0.1, 0.2, 0.3], [1.0, 2.0, 3.0]
#: PyTorch's own forward mode.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.torch.jit.script. is deprecated:DeprecationWarning"
)


@pytest.mark.skipif(is_here("torch"), reason="PyTorch is installed")
def test_without_pytorch_its_face_says_so() -> None:
    with pytest.raises(EngineError, match=r"(?s)PyTorch: is not installed.*tauloop\[torch\]"):
        DELTA.as_torch()


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
def test_values_and_jacobians_are_tauloops_own(function: str) -> None:
    torch = extra("torch")
    call, exact = DELTA.as_torch(function), DELTA.platform.derivatives(function, *STATE)
    (output,) = (name for name in exact.values if name in ("force", "acceleration"))
    state = tuple(torch.tensor(part, dtype=torch.float64) for part in STATE)
    assert call(*state).numpy() == pytest.approx(exact.values[output], rel=SAME)
    names = ("position", "velocity", "force" if function == "forward_dynamics" else "acceleration")
    for transform in (torch.func.jacrev, torch.func.jacfwd):
        for name, jacobian in zip(names, transform(call, argnums=(0, 1, 2))(*state), strict=True):
            expected = exact.jacobian(output, name)
            assert jacobian.numpy() == pytest.approx(
                expected, abs=SAME * max(np.abs(expected).max(), 1.0)
            )


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("name", ["delta", pytest.param("hexapod", marks=pytest.mark.nightly)])
def test_autograd_finds_differences_of_values_and_of_slopes(name: str, function: str) -> None:
    torch, model = extra("torch"), tl.Model(tl.load(name))
    call, rng, ports = model.as_torch(function), np.random.default_rng(4), model.platform.ports
    count, turns = len(model.mechanism.actuators), ports.position.size > ports.velocity.size
    last = count if function == "forward_dynamics" else ports.velocity.size
    state = [
        ports.at(model.assembly.q),
        rng.normal(size=ports.velocity.size),
        rng.normal(size=last),
    ]
    tensors = [torch.tensor(part, requires_grad=True) for part in state]

    def whole(position: object, velocity: object, last: object) -> object:
        """With a quaternion of length one, which differences do not keep."""
        parts = position.split([3, 4]) if turns else ()
        return call(
            torch.cat([parts[0], parts[1] / parts[1].norm()]) if turns else position, velocity, last
        )

    assert torch.autograd.gradcheck(whole, tensors, check_forward_ad=True, **FIRST)
    assert torch.autograd.gradgradcheck(whole, tensors, check_fwd_over_rev=True, **SECOND)
    motion = [tensor.detach() for tensor in tensors]
    exact = torch.func.hessian(lambda *motion: whole(*motion).sum())(*motion).numpy()
    again = torch.func.jacrev(torch.func.jacfwd(lambda *motion: whole(*motion).sum()))(
        *motion
    ).numpy()
    assert again == pytest.approx(exact, abs=SAME * np.abs(exact).max())


def test_batches_are_one_call_and_what_is_out_of_reach_is_no_number() -> None:
    torch, call = extra("torch"), DELTA.as_torch()
    positions = STATE[0] + np.random.default_rng(1).normal(size=(4, 2, 3)) * 0.02
    flat = positions.reshape(-1, 3)
    expected = DELTA.platform.inverse_dynamics(
        flat, *(np.tile(part, (len(flat), 1)) for part in STATE[1:])
    ).force
    state = [torch.tensor(part, dtype=torch.float64) for part in (positions, *STATE[1:])]
    mapped = torch.func.vmap(torch.func.vmap(call, (0, None, None)), (0, None, None))(*state)
    for values in (call(*state), mapped):
        assert values.reshape(-1, 3).numpy() == pytest.approx(expected, rel=SAME)
    floats = call(*(part.to(torch.float32) for part in state))
    assert floats.dtype == torch.float32
    assert floats.reshape(-1, 3).numpy() == pytest.approx(
        expected, abs=SINGLE * np.abs(expected).max()
    )
    assert call(torch.tensor([2.0, 0.0, 0.0]), *state[1:]).isnan().all()


def test_training_moves_a_force_to_where_it_is_wanted() -> None:
    """Two steps of Newton's method by autograd alone, from the force of the pose beside."""
    torch, call = extra("torch"), DELTA.as_torch("forward_dynamics")
    position, rest = (
        torch.tensor(STATE[0], dtype=torch.float64),
        torch.zeros(3, dtype=torch.float64),
    )
    force = torch.zeros(3, dtype=torch.float64)
    slope = torch.func.jacrev(lambda u: call(position, rest, u))(force)
    force = force - torch.linalg.solve(slope, call(position, rest, force))
    assert force.numpy() == pytest.approx(
        DELTA.platform.inverse_dynamics(STATE[0], [0.0] * 3, [0.0] * 3).force
    )


def test_what_does_not_fit_is_refused() -> None:
    torch = extra("torch")
    with pytest.raises(tl.InputError, match="unknown"):
        DELTA.as_torch("regressor")
    call = DELTA.as_torch()
    state = [torch.tensor(part, dtype=torch.float64) for part in STATE]
    with pytest.raises(tl.InputError, match=r"(?s)position.*needs \(\.\.\., 3\)"):
        call(torch.zeros(2), *state[1:])
    forward = torch.func.jacfwd(lambda x: call(x, *state[1:]))
    with pytest.raises(tl.InputError, match="nested forward mode"):
        torch.func.jacfwd(forward)(state[0])
