"""Make examples/fraud: 720 invented payments with 60 cards in 24 shops, half of them without a label.

Some cards are copied, and a copy pays several times within hours, ordinary amounts in any shop. What tells a fraud are
the payments with the same card just before and after it.

`cards.csv` beside it says of half of the cards whether they were copied.
"""

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

CARDS, SHOPS, PAYMENTS = 60, 24, 720
DAYS = 60
COPIED = 12
BURST = 4, 9
"""Payments with a copied card: the least number, and the first one that is too large."""
LABELLED = 0.5


def main() -> None:
    rng = np.random.default_rng(0)
    copied = rng.choice(CARDS, COPIED, replace=False)
    frauds = []
    for card in copied:
        start = rng.uniform(10, DAYS - 1)
        hours = np.sort(rng.uniform(0, 5, rng.integers(*BURST)))
        frauds += [(start + hour / 24, card, rng.integers(SHOPS), True) for hour in hours]
    honest = PAYMENTS - len(frauds)
    usual = rng.integers(SHOPS, size=(CARDS, 4))
    rows = [
        (rng.uniform(0, DAYS), card, rng.choice(usual[card]), False)
        for card in rng.integers(CARDS, size=honest).tolist()
    ]
    lines = ["time,card,shop,amount,fraud"]
    for day, card, shop, fraud in sorted(rows + frauds):
        time = datetime(2026, 3, 1) + timedelta(days=day)
        label = ("yes" if fraud else "no") if rng.random() < LABELLED else ""
        amount = rng.lognormal(3.4 if fraud else 3.2, 0.8)
        lines.append(f"{time:%Y-%m-%d %H:%M},C{card:02},S{shop:02},{amount:.2f},{label}")
    folder = Path(__file__).parent / "fraud"
    folder.mkdir(exist_ok=True)
    (folder / "payments.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    known = rng.permutation(CARDS)[: int(CARDS * LABELLED)]
    cards = [f"C{c:02},{('yes' if c in copied else 'no') if c in known else ''}" for c in range(CARDS)]
    (folder / "cards.csv").write_text("\n".join(["id,copied", *cards]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
