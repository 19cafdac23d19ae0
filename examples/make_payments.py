"""Make examples/payments: 400 invented accounts of a payment service, three in five without a label.

`new_labels.csv` beside it has the labels of two more.

Customers pay shops, shops pay suppliers, suppliers pay customers (wages): neighbours have different roles, so a method
that gives a node its neighbours' label is wrong, and one that learns how labels follow each other is right.
"""

from pathlib import Path

import numpy as np

ROLES = ("customer", "shop", "supplier")
PAYS = {"customer": "shop", "shop": "supplier", "supplier": "customer"}
COUNT = 400
LABELLED = 0.4
REGULAR = 0.9
"""Share of the payments that follow `PAYS`."""


def main() -> None:
    rng = np.random.default_rng(0)
    role = rng.choice(ROLES, COUNT, p=[0.4, 0.35, 0.25])
    label = np.where(rng.random(COUNT) < LABELLED, role, "")
    kind = [role == "customer", role == "shop"]
    # the features say a little: amounts and hours of different roles overlap
    amount = rng.normal(np.select(kind, [1.4, 1.6], 1.8), 0.4)
    night = rng.beta(2, np.select(kind, [5, 7], 9))
    ids = [f"acc{i:03}" for i in range(COUNT)]
    nodes = ["id,label,log_amount,share_at_night"]
    nodes += [f"{i},{y},{a:.2f},{s:.2f}" for i, y, a, s in zip(ids, label, amount, night, strict=True)]
    edges = ["source,target"]
    for payer in range(COUNT):
        for _ in range(rng.integers(2, 6)):
            wanted = PAYS[role[payer]] if rng.random() < REGULAR else rng.choice(ROLES)
            payee = rng.choice(np.flatnonzero((role == wanted) & (np.arange(COUNT) != payer)))
            edges.append(f"{ids[payer]},{ids[payee]}")
    folder = Path(__file__).parent / "payments"
    (folder / "nodes.csv").write_text("\n".join(nodes) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(dict.fromkeys(edges)) + "\n", encoding="utf-8")
    learnt = [f"{ids[i]},{role[i]}" for i in np.flatnonzero(label == "")[:2]]
    (folder.parent / "new_labels.csv").write_text("\n".join(["id,label", *learnt]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
