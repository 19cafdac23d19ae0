import pytest

from lignn.errors import ConfigError
from lignn.studies.case import StudyCase

VALUES = {"dataset": "karate", "split": {"kind": "public", "number": 0}, "method": {"name": "backbone"}}


def test_identity_depends_on_every_value_and_not_on_their_order():
    config = StudyCase.of(VALUES, "here")
    assert StudyCase.of(dict(reversed(VALUES.items())), "here").id == config.id
    changed = [{"seed": 1}, {"precision": "float64"}, {"method": {"name": "lpa"}}, {"training": {"lr": 0.1}}]
    identities = {StudyCase.of(VALUES | change, "here").id for change in changed}
    assert len(identities | {config.id}) == 5


def test_plain_values_give_the_config_back():
    config = StudyCase.of(VALUES, "here")
    assert StudyCase.of(config.plain(), "here") == config


def test_records_without_a_metric_have_the_default_one():
    config = StudyCase.of(VALUES | {"metric": "f1_micro"}, "here")
    assert "metric" not in config.plain()
    assert config.id == StudyCase.of(VALUES, "here").id
    other = StudyCase.of(VALUES | {"metric": "roc_auc"}, "here")
    assert other.plain()["metric"] == "roc_auc"
    assert other.id != config.id


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"datset": "x"}, "here: there is no setting 'datset'; did you mean 'dataset'?"),
        ({"seed": "one"}, "here: seed must be a int, got 'one'"),
        ({"method": {}}, "here: method has no name"),
        ({"split": {"kind": "publik"}}, "here: split.kind 'publik' is unknown; did you mean 'public'?"),
        ({"precision": "float16"}, "here: precision 'float16' is unknown; did you mean"),
        ({"task": "tran"}, "here: task 'tran' is unknown"),
    ],
)
def test_wrong_values_are_named(change, message):
    with pytest.raises(ConfigError) as error:
        StudyCase.of(VALUES | change, "here")
    assert str(error.value).startswith(message)
