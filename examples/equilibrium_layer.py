"""An equilibrium layer of one's own.

`fixed_point` is a layer: it solves `z = tanh(z W + x U)` and is differentiable to W and U, in memory that does not
depend on the number of steps. Here it tells two moons apart.
"""

import sys

import torch
from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

import lignn

QUICK = "--quick" in sys.argv  # as the tests run it

torch.manual_seed(0)
points, label = make_moons(300, noise=0.15, random_state=0)
x, y = torch.tensor(points, dtype=torch.float32), torch.tensor(label)
w, u, v = (torch.randn(shape, requires_grad=True) for shape in ((16, 16), (3, 16), (16, 2)))
solver = lignn.solvers.Anderson(tol=1e-5)


def equilibrium(x):
    inputs = torch.cat([x, torch.ones(len(x), 1)], 1) @ u
    weight = 0.9 * w / torch.linalg.matrix_norm(w, 2)  # the map contracts
    return lignn.fixed_point(lambda z: torch.tanh(z @ weight + inputs), torch.zeros(len(x), 16), solver)


optimizer = torch.optim.Adam([w, u, v], lr=0.03)
for _ in range(3 if QUICK else 200):
    solution = equilibrium(x)
    loss = torch.nn.functional.cross_entropy(solution.value @ v, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}; {solution.message}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
grid = torch.cartesian_prod(torch.linspace(-1.5, 2.5, 60), torch.linspace(-1.2, 1.7, 60))
with torch.no_grad():
    share = (equilibrium(grid).value @ v).softmax(1)[:, 1].view(60, 60)
left.contourf(grid[:, 0].view(60, 60), grid[:, 1].view(60, 60), share, cmap="coolwarm", alpha=0.6)
left.scatter(*points.T, c=label, cmap="coolwarm", s=12)
equilibrium(x).plot_residuals(right)
plt.show()
