"""Adam against `torch.optim.Adam`."""

import pytest
import torch
from torch import nn

from lignn.training.adam import Adam


def updated(make, steps=4):
    generator = torch.Generator().manual_seed(0)
    weights = [nn.Parameter(torch.randn(shape, generator=generator).double()) for shape in ((3, 2), (4,), (2,))]
    optimizer = make(weights)
    for _ in range(steps):
        optimizer.zero_grad()
        (weights[0].square().sum() * 3 + weights[1].sin().sum()).backward()
        optimizer.step()
    return weights, optimizer


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_updates_are_those_of_pytorch(decay):
    """The third weight has no gradient and stays."""
    found, _ = updated(lambda weights: Adam(weights, 0.01, decay))
    wanted, _ = updated(lambda weights: torch.optim.Adam(weights, lr=0.01, weight_decay=decay))
    for weight, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(weight, other, rtol=1e-12, atol=1e-13)


def test_a_restored_state_goes_on_to_the_bit():
    weights, optimizer = updated(lambda weights: Adam(weights, 0.01))
    copies = [nn.Parameter(weight.detach().clone()) for weight in weights]
    other = Adam(copies, 0.01)
    other.load_state({str(number): slots for number, slots in optimizer.state().items()})
    for group, each in ((weights, optimizer), (copies, other)):
        for weight in group[:2]:
            weight.grad = weight.detach().cos()
        each.step()
    for weight, copied in zip(weights, copies, strict=True):
        assert torch.equal(weight, copied)


def test_a_state_is_a_copy():
    _, optimizer = updated(lambda weights: Adam(weights, 0.01))
    state = optimizer.state()
    optimizer.step()
    assert state[0]["step"] == 4
    assert optimizer.slots[0]["step"] == 5


def test_a_state_of_other_weights_is_refused():
    _, optimizer = updated(lambda weights: Adam(weights, 0.01))
    with pytest.raises(ValueError, match="do not fit"):
        Adam([nn.Parameter(torch.zeros(5))], 0.01).load_state({0: optimizer.state()[0]})
