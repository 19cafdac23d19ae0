"""Table 1, executable: for every row the published iteration, the rewritten equilibrium, and what the code computes.

The published and the rewritten forms are plain loops over dense matrices. `docs/how_it_works/family.md` has the words.
"""

import pytest
import torch

from lignn.backbones import GCN, SGC
from lignn.equilibrium import LastStep
from lignn.equilibrium.solvers import Picard
from lignn.methods import LPA, LabelInput, LabelReuse, Problem, ResLPA, ThreeFerence
from lignn.methods.correct_and_smooth import correct, iterate
from tests.methods.small import dense_operator, gradients, patchwork

KINDS = [{}, {"weighted": True}, {"directed": True, "weighted": True}, {"multilabel": True}]


@pytest.fixture(params=range(len(KINDS)))
def parts(request):
    """A graph in pieces, and its problem, matrices and random weights in the symbols of the paper."""
    graph, known, reached = patchwork(seed=request.param, **KINDS[request.param])
    return Parts(graph, known, reached, torch.Generator().manual_seed(request.param))


class Parts:
    def __init__(self, graph, known, reached, generator):
        self.graph, self.known, self.reached, self.generator = graph, known, reached, generator
        self.problem = Problem.of(graph, known, torch.float64)
        self.A = dense_operator(graph)
        self.M = torch.diag(known.double())
        self.rest = torch.eye(21, dtype=torch.float64) - self.M
        self.Y = graph.y.double() if graph.is_multilabel else torch.eye(3, dtype=torch.float64)[graph.y]
        self.activation = torch.sigmoid if graph.is_multilabel else lambda logits: logits.softmax(1)

    def gcn(self, label_inputs=3):
        network = GCN(5, 3, label_inputs, hidden=8, generator=self.generator).double()
        for conv in network.convs:
            torch.nn.init.uniform_(conv.bias, -1, 1, generator=self.generator)
        return network

    def sgc(self, hops):
        """The network and its one weight and bias."""
        network = SGC(5, 3, 3, hops=hops, generator=self.generator).double()
        return network, network.head.first.weight.detach().T, network.head.first.bias.detach()

    def logits(self, gcn, labels):
        """`Ã ReLU(Ã [labels | X] W_0 + b_0) W_1 + b_1`, dense."""
        first, second = ((conv.lin.weight.detach().T, conv.bias.detach()) for conv in gcn.convs)
        hidden = self.A @ torch.cat([labels, self.graph.x], 1) @ first[0] + first[1]
        return self.A @ hidden.relu() @ second[0] + second[1]

    def random(self):
        return torch.rand(21, 3, generator=self.generator, dtype=torch.float64)


def steps(f, start, count=6):
    states = [start]
    for _ in range(count):
        states.append(f(states[-1]))
    return states


def k_steps(method, problem, k, start=None):
    """What the code computes in k plain steps."""
    method.inference = Picard(tol=0, max_steps=k)
    return method.on(problem).solve(start).solution.value


def check(published, rewritten, method, p, rows=slice(None)):
    """All three from the same start, step by step: the code computes `Ŷ`, and `Ỹ = (I - M_t) Ŷ + M_t Y`."""
    for start in (torch.zeros(21, 3, dtype=torch.float64), p.random()):
        ours = [k_steps(method, p.problem, k, start)[rows] for k in range(7)]
        y_hat = steps(published, start)
        y_tilde = steps(rewritten, p.rest @ start + p.M @ p.Y)
        for k in range(7):
            torch.testing.assert_close(ours[k], y_hat[k][rows], rtol=0, atol=1e-12)
            torch.testing.assert_close(y_tilde[k], p.rest @ y_hat[k] + p.M @ p.Y, rtol=0, atol=1e-12)


@pytest.mark.parametrize("lam", [0.3, 0.9, 1.0])
def test_lpa(parts, lam):
    p, A = parts, dense_operator(parts.graph, lam)
    check(
        lambda y: A @ (p.rest @ y + p.M @ p.Y),
        lambda y: p.rest @ A @ y + p.M @ p.Y,
        LPA(lam),
        p,
    )


def test_reslpa(parts):
    """On the rows that labels reach; elsewhere the published sum of residuals grows for ever, ours stays zero."""
    p, lam = parts, 0.7
    A = dense_operator(p.graph, lam)
    network = p.gcn(label_inputs=0)
    g = p.logits(network, torch.zeros(21, 0, dtype=torch.float64))
    check(
        lambda y: A @ (p.rest @ y + p.M @ p.Y) + lam * g,
        lambda y: p.rest @ A @ y + lam * p.rest @ g + p.M @ p.Y,
        ResLPA(network, lam),
        p,
        p.reached,
    )
    assert not k_steps(ResLPA(network, lam), p.problem, 5)[~p.reached].any()


def test_threeference(parts):
    """A node's own features are used, its own label is not; the labels' weight and the features' are random."""
    p = parts
    network, W, b = p.sgc(hops=1)
    neighbours = p.A - torch.diag(p.A.diagonal())

    def f(labels):
        return p.activation(neighbours @ labels @ W[:3] + p.A @ p.graph.x @ W[3:] + b)

    check(lambda y: f(p.rest @ y + p.M @ p.Y), lambda y: p.rest @ f(y) + p.M @ p.Y, ThreeFerence(network), p)


@pytest.mark.parametrize("lam", [0.2, 0.9])
def test_correct(parts, lam):
    p, A = parts, dense_operator(parts.graph, lam)
    base = p.activation(5 * p.random())
    y_hat = steps(lambda y: A @ (p.rest @ (y - base) + p.M @ (p.Y - base)) + base, base)
    eye = torch.eye(21, dtype=torch.float64)
    y_tilde = steps(
        lambda y: p.rest @ A @ y + p.rest @ (eye - A) @ base + p.M @ p.Y,
        p.rest @ base + p.M @ p.Y,
    )
    residuals = steps(lambda e: A @ (p.rest @ e + p.M @ (p.Y - base)), torch.zeros_like(base))
    ours = list(iterate(correct(p.problem.adjacency().lazy(lam), p.problem.labels, base), base, 6))
    for k in range(7):
        torch.testing.assert_close(ours[k], y_hat[k], rtol=0, atol=1e-12)
        torch.testing.assert_close(ours[k], base + residuals[k], rtol=0, atol=1e-12)
        torch.testing.assert_close(y_tilde[k], p.rest @ y_hat[k] + p.M @ p.Y, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours[6][~p.reached], base[~p.reached])


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_label_input_sgc(parts, hops):
    """Predictions agree on unlabelled rows when all training labels are input; on labelled rows they do not."""
    p = parts
    power = torch.linalg.matrix_power(p.A, hops)
    network, W, b = p.sgc(hops)
    off_diagonal = power - torch.diag(power.diagonal())

    def rewritten(y):
        return p.rest @ p.activation(off_diagonal @ p.M @ y @ W[:3] + power @ p.graph.x @ W[3:] + b) + p.M @ p.Y

    published = p.activation(power @ torch.cat([p.M @ p.Y, p.graph.x], 1) @ W + b)
    ours = LabelInput(network).predict(p.problem).probabilities
    torch.testing.assert_close(ours, published, rtol=0, atol=1e-12)
    equilibrium = rewritten(p.rest @ p.random() + p.M @ p.Y)
    assert torch.equal(rewritten(equilibrium), equilibrium)
    torch.testing.assert_close(ours[~p.known], equilibrium[~p.known], rtol=0, atol=1e-12)
    assert (ours - equilibrium)[p.known].abs().max() > 1e-3


def test_label_input_gnn(parts):
    """The input never changes, so the equilibrium is one pass from anywhere; training supervises that pass."""
    p = parts
    network = p.gcn()
    method = LabelInput(network, 0.4)
    loss, _ = gradients(method, p.problem, seed=3)
    hidden = p.problem.labels.hide(0.4, torch.Generator().manual_seed(3))
    M_i = torch.diag((p.known & ~hidden.hidden).double())
    rest = torch.eye(21, dtype=torch.float64) - M_i
    y_hat = p.activation(p.logits(network, M_i @ p.Y))

    def rewritten(y):
        return rest @ p.activation(p.logits(network, M_i @ y)) + M_i @ p.Y

    y_tilde = rewritten(rest @ p.random() + M_i @ p.Y)
    assert torch.equal(rewritten(y_tilde), y_tilde)
    torch.testing.assert_close(y_tilde, rest @ y_hat + M_i @ p.Y, rtol=0, atol=1e-14)
    assert loss == pytest.approx(p.problem.labels.loss(y_tilde, hidden.supervised).item(), rel=1e-12)


def test_label_reuse(parts):
    p = parts
    network = p.gcn()
    hidden = p.problem.labels.hide(0.4, torch.Generator().manual_seed(3))
    M_i = torch.diag((p.known & ~hidden.hidden).double())
    rest = torch.eye(21, dtype=torch.float64) - M_i

    def f(labels):
        return p.activation(p.logits(network, labels))

    y_hat = steps(lambda y: f(rest @ y + M_i @ p.Y), torch.zeros(21, 3, dtype=torch.float64))
    y_tilde = steps(lambda y: rest @ f(y) + M_i @ p.Y, M_i @ p.Y)
    for k in range(6):
        torch.testing.assert_close(y_tilde[k], rest @ y_hat[k] + M_i @ p.Y, rtol=0, atol=1e-14)
        loss, _ = gradients(LabelReuse(network, 0.4, iterations=k), p.problem, seed=3)
        assert loss == pytest.approx(p.problem.labels.loss(y_hat[k + 1], hidden.supervised).item(), rel=1e-12)


def test_label_reuse_ends_in_the_equilibrium(parts):
    """Both forms converge, to the same fixed point, and it is where the code's prediction goes as k grows."""
    p = parts
    network = p.gcn()

    def f(labels):
        return p.activation(p.logits(network, labels))

    y_hat = steps(lambda y: f(p.rest @ y + p.M @ p.Y), p.random(), 100)[-1]
    y_tilde = steps(lambda y: p.rest @ f(y) + p.M @ p.Y, p.random(), 100)[-1]
    torch.testing.assert_close(y_tilde, p.rest @ y_hat + p.M @ p.Y, rtol=0, atol=1e-10)
    ours = LabelReuse(network, iterations=100).eval().predict(p.problem).probabilities
    torch.testing.assert_close(ours, y_hat, rtol=0, atol=1e-10)


def test_label_reuse_differentiates_the_last_pass_only(parts):
    assert LabelReuse(parts.gcn(), iterations=3).gradient == LastStep()
