from lignn.studies import published, study


def test_table_2_is_whole():
    rows = ["GCN", "GCN + C&S", "L-GCN", "LI-GCN", "IGNN*", "SotA", "SotA + C&S", "L-SotA", "LI-SotA"]
    cells = [published.accuracy("table2", row, dataset) for row in rows for dataset in study.load("table2").datasets]
    assert len(cells) == 54
    # sums over the table of the paper
    assert round(sum(mean for mean, _ in cells), 2) == 3236.80
    assert round(sum(deviation for _, deviation in cells), 2) == 126.51
    assert published.accuracy("table2", "LI-GCN", "chameleon") == (42.18, 2.72)
    assert published.accuracy("table2", "LI-GCN (β 0.5)", "chameleon") is None
    assert published.accuracy("ablation", "LI-GCN", "chameleon") is None


def test_the_searchs_choices_are_the_settings_of_table_2():
    for planned in study.load("table2").plan(1):
        chosen = published.chosen("table3", planned.row, planned.dataset)
        assert chosen is None or chosen.items() <= planned.method.items()


def test_the_papers_choices_are_among_the_searched():
    tried = study.load("table3").plan(1)
    for planned in tried:
        chosen = published.chosen("table3", planned.row, planned.dataset)
        others = [other for other in tried if other.cell == planned.cell]
        assert chosen is None or any(chosen.items() <= (c.method | c.backbone).items() for c in others)


def test_claims_and_chance():
    claims = [published.claim(name) for name in ("figure1", "figure2", "figure3", "figure4", "table2")]
    assert all(claim and "(Section 4." in claim for claim in claims)
    assert published.claim("ablation") is None
    assert published.chance("weekday") == round(100 / 7, 2)
    assert "Deep Equilibrium" in published.citation()


def test_rows_of_another_reading_stand_beside_the_published_row():
    others = {row: published.reading_of(row) for row in study.load("table2").rows()}
    assert {row: of for row, of in others.items() if of != row} == {
        "L-GCN (α input)": "L-GCN",
        "L-SotA (α input)": "L-SotA",
        "GCN + C&S (accumulating)": "GCN + C&S",
        "SotA + C&S (accumulating)": "SotA + C&S",
    }
