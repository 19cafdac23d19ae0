import pytest
import torch
from torch import nn

from lignn.backbones import GAT, GCN, GCNII, GIN, MLP, SAGE, SGC, Adapter, Dropout, JKNet, frozen_dropout, solving
from lignn.errors import ConfigError

NETWORKS = [GAT, GCN, GCNII, GIN, JKNet, MLP, SAGE, SGC]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_mask_has_the_right_values_and_rate():
    dropout = Dropout(0.25)
    with frozen_dropout(dropout, generator()):
        out = dropout(torch.ones(200, 200))
    assert out.unique().tolist() == pytest.approx([0, 4 / 3])
    assert (out == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)  # 4.6 standard deviations


def test_mask_is_frozen_inside_and_new_in_the_next_context():
    dropout, x, draws = Dropout(0.5), torch.ones(50, 4), generator()
    outs = []
    for _ in range(2):
        with frozen_dropout(dropout, draws):
            outs.append(dropout(x))
            torch.rand(7)
            assert torch.equal(dropout(x), outs[-1])
    assert not torch.equal(*outs)
    assert dropout._mask is None


def test_mask_does_not_touch_the_global_random_state():
    dropout, before = Dropout(0.5), torch.get_rng_state()
    with frozen_dropout(dropout, generator()):
        dropout(torch.ones(50, 4))
    assert torch.equal(torch.get_rng_state(), before)


def test_mask_depends_on_the_seed_only_and_not_on_what_else_is_called():
    pair = nn.ModuleList([Dropout(0.5), Dropout(0.5)])
    x = torch.ones(50, 4)
    with frozen_dropout(pair, generator()):
        first, second = pair[0](x), pair[1](x)
    with frozen_dropout(pair, generator()):
        assert torch.equal(pair[1](x), second)
        pair[0](torch.ones(3, 3))
        assert torch.equal(pair[0](x), first)
    assert not torch.equal(first, second)


def test_an_inner_context_gives_way_to_the_outer_one():
    dropout, x = Dropout(0.5), torch.ones(50, 4)
    with frozen_dropout(dropout, generator(0)):
        outer = dropout(x)
        with frozen_dropout(dropout, generator(1)):
            assert not torch.equal(dropout(x), outer)
        assert torch.equal(dropout(x), outer)


def test_a_failure_inside_ends_the_context():
    dropout = Dropout(0.5)
    with pytest.raises(KeyError), frozen_dropout(dropout, generator()):
        raise KeyError
    assert dropout.seed is None


def test_outside_of_a_context_masks_are_fresh_and_global():
    dropout, x = Dropout(0.5), torch.ones(50, 4)
    torch.manual_seed(5)
    first, second = dropout(x), dropout(x)
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(dropout(x), first)


def test_a_mask_drawn_in_inference_mode_can_be_taped():
    dropout, x = Dropout(0.5), torch.ones(50, 4, requires_grad=True)
    with frozen_dropout(dropout, generator()):
        with torch.inference_mode():
            solved = dropout(x)
        out = dropout(x)
    out.sum().backward()
    assert torch.equal(x.grad, solved)


def test_eval_mode_and_zero_are_the_identity():
    x = torch.ones(5, 4)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


@pytest.mark.parametrize("p", [-0.1, 1.0])
def test_impossible_probabilities_are_refused(p):
    with pytest.raises(ConfigError, match="dropout: a probability of at least 0 and below 1 is needed"):
        Dropout(p)


@pytest.mark.parametrize("network", NETWORKS)
def test_every_backbone_is_one_function_inside_the_context(network, graph, state):
    options = {"head": "mlp"} if network is SGC else {}
    backbone = network(9, 3, 3, dropout=0.5, **options).double()
    adj = backbone.adjacency(graph, torch.float64)

    def step():
        return backbone.step(backbone.features(graph.x, adj), state, adj)

    with frozen_dropout(backbone, generator(0)):
        first = step()
        torch.testing.assert_close(step(), first, atol=0, rtol=0)
    with frozen_dropout(backbone, generator(1)):
        assert not torch.allclose(step(), first)
    assert not torch.allclose(step(), step())
    backbone.eval()
    assert torch.equal(step(), step())


@pytest.mark.parametrize("network", [MLP, GCN])
def test_the_frozen_function_has_the_derivatives_of_finite_differences(network, graph, state):
    backbone = network(9, 3, 3, hidden=8, dropout=0.5).double()
    adj = backbone.adjacency(graph, torch.float64)
    with frozen_dropout(backbone, generator()):
        features = backbone.features(graph.x, adj).detach()
        assert torch.autograd.gradcheck(lambda s: backbone.step(features, s, adj), state.requires_grad_())


def test_foreign_dropout_is_frozen_too(graph, state):
    module = nn.Sequential(nn.Linear(12, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    backbone = Adapter(module, 9, 3, 3).double()
    adj = backbone.adjacency(graph, torch.float64)

    def step():
        return backbone.step(graph.x, state, adj)

    before = torch.get_rng_state()
    with frozen_dropout(backbone, generator(0)):
        first = step()
        assert torch.equal(step(), first)
    assert torch.equal(torch.get_rng_state(), before)
    with frozen_dropout(backbone, generator(1)):
        assert not torch.equal(step(), first)
    assert not torch.equal(step(), step())


@pytest.mark.parametrize("training", [True, False])
def test_a_solve_leaves_running_statistics_alone(training):
    norm = nn.BatchNorm1d(4)
    x = 3 * torch.randn(30, 4, generator=generator()) + 1
    norm(x)
    norm.train(training)
    statistics = {key: value.clone() for key, value in norm.state_dict().items()}
    with solving(norm):
        inside = norm(x)
    assert all(torch.equal(value, statistics[key]) for key, value in norm.state_dict().items())
    torch.testing.assert_close(inside, norm(x))
    changed = not torch.equal(norm.running_mean, statistics["running_mean"])
    assert changed == training
