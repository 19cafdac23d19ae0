"""A table with a column of every kind."""

import datetime as dt

import numpy as np
import pyarrow as pa

N = 120
START = dt.datetime(2021, 1, 1)


def messy(n=N, seed=0):
    rng = np.random.default_rng(seed)
    age = [None if i % 10 == 3 else int(value) for i, value in enumerate(rng.integers(18, 80, n))]
    country = [None if i % 40 == 0 else ("de", "fr", "it")[i % 3] for i in range(n - 2)] + ["xx", "yy"]
    words = ["red", "green", "blue", "dark", "light"]
    return pa.table(
        {
            "age": pa.array(age),
            "income": rng.normal(size=n) ** 9,
            "account": pa.array([10**16 + i for i in range(n)]),
            "active": pa.array([None if i % 6 == 0 else i % 2 == 0 for i in range(n)]),
            "country": pa.array(country),
            "joined": pa.array([(START + dt.timedelta(days=int(d))).date() for d in rng.integers(0, 900, n)]),
            "seen": pa.array([START + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 10**6, n)]),
            "note": pa.array([" ".join(rng.choice(words, 4)) + f" number {i}" for i in range(n)], pa.large_string()),
            "name": [f"user{i}" for i in range(n)],
            "currency": ["EUR"] * n,
            "age again": pa.array(age),
            "nothing": pa.nulls(n, pa.float64()),
            "tags": [[1, 2]] * n,
        }
    )
