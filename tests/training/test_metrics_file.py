import pytest

from agentexp.training.metrics_file import MetricsFile, read_metrics


def written(folder, *steps, value=0.5):
    file = MetricsFile(folder / "metrics.jsonl")
    for step in steps:
        file.record(step, {"loss": value})
    file.close()


def test_each_step_counts_once_after_a_kill(tmp_path):
    written(tmp_path, 1, 2, 3, 4, 5)
    written(tmp_path, 4, 5, 6, value=0.25)  # the last checkpoint was that of step 3
    lines = read_metrics(tmp_path)
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [line["loss"] for line in lines] == [0.5, 0.5, 0.5, 0.25, 0.25, 0.25]


def test_what_lies_after_the_step_that_comes_again_is_gone_at_once(tmp_path):
    written(tmp_path, 1, 2, 3, 4, 5)
    written(tmp_path, 3)
    assert [line["step"] for line in read_metrics(tmp_path)] == [1, 2, 3]


def test_an_evaluation_of_a_step_joins_its_line(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.record(1, {"loss": 2.0})
    file.record(1, {"eval_loss": 1.5})
    file.record(2, {"loss": 1.0})
    assert read_metrics(tmp_path) == [{"step": 1, "loss": 2.0, "eval_loss": 1.5}, {"step": 2, "loss": 1.0}]


def test_a_shorter_line_leaves_no_rest_of_the_longer_one(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.record(1, {"loss": 1.23456789, "note": 1e-300})
    file.close()
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.record(1, {"loss": 1})
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step":1,"loss":1}\n'


def test_an_earlier_step_of_the_same_process_is_an_error(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.record(3, {})
    with pytest.raises(ValueError, match="Step 2 comes after step 3"):
        file.record(2, {})


def test_the_newest_line_is_known_when_training_goes_on(tmp_path):
    written(tmp_path, 1, 2)
    file = MetricsFile(tmp_path / "metrics.jsonl")
    assert (file.last, len(file)) == ({"step": 2, "loss": 0.5}, 2)


def test_a_torn_last_line_is_not_read(tmp_path):
    written(tmp_path, 1)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step":2,"lo')
    assert [line["step"] for line in read_metrics(tmp_path)] == [1]
