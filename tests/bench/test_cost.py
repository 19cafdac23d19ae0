"""The cost model is that of the page on larger graphs, at the rates of the records."""

import pytest

from lignn.bench import cost
from lignn.bench.cost import Rates, Sizes

SIZES = {"nodes": 100, "entries": 1000, "classes": 5, "features": 32, "hidden": 64}


def record(case, side, **more):
    return {"case": case, "side": side, "config": SIZES | {"simulated": True}, **more}


def test_bytes_and_multiplications():
    sizes = Sizes(**SIZES)
    assert sizes.gathered == 2 * 4 * 5 * 1000
    assert sizes.multiplications == 100 * 64 * (32 + 10)


def test_a_step_takes_the_time_that_its_rates_were_measured_with():
    rates = Rates.measured(record("", "", product=0.1, step=0.5))
    assert rates.gathered == pytest.approx(4 * 5 * 1000 / 0.1)
    assert rates.step(Sizes(**SIZES)) == pytest.approx(0.5)
    tenfold = SIZES | {"nodes": 1000, "entries": 10_000}
    assert rates.step(Sizes(**tenfold)) == pytest.approx(5)


def test_the_page_has_epochs_of_model_and_record_and_larger_graphs():
    store = [
        record(f"epoch, 1e+0{power} edges", "streamed", median=seconds) for power, seconds in ((7, 43.0), (8, 215.0))
    ]
    cluster = [record("10⁷ edges", "1 process × 2 threads", product=0.1, step=0.5, median=21.5)]
    exchange = [record(f"coauthor_physics, {count} parts", "metis", halo_rows=count) for count in (8, 64)]
    text = cost.markdown(store, cluster, exchange)
    assert "| 10⁷ edges, 8 METIS parts | 21.5 s | 21.5 s | 1.00 |" in text
    assert "| 10⁷ edges, blocks | 21.5 s | 43 s | 0.50 |" in text
    assert "| 10⁸ edges, blocks | 215 s | 215 s | 1.00 |" in text
    rows = {
        tuple(row[:2]): row[2:]
        for row in ([cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines())
        if len(row) == 5
    }
    assert len(rows) == 2 + 2 * 3  # with the header and the line below it
    # 8 rows of 100 nodes travel, to 8 machines, in each of two products of 47 columns
    assert rows["ogbn-products", "8"][0] == "9.2 MB"
    assert rows["ogbn-products", "1"][0] == "0 B"
