from agentexp.training.checkpoints import keep_newest, mark, newest, remove_incomplete


def made(folder, *steps):
    for step in steps:
        path = folder / f"checkpoint-{step}"
        path.mkdir(parents=True)
        (path / "weights").write_text("x")
        mark(path, {"step": step})


def test_the_newest_complete_one_counts(tmp_path):
    assert newest(tmp_path / "none") is None
    made(tmp_path, 2, 10)
    (tmp_path / "checkpoint-20").mkdir()  # killed while it was written
    (tmp_path / "checkpoint-x").mkdir()
    assert newest(tmp_path) == (tmp_path / "checkpoint-10", {"step": 10})


def test_torn_ones_are_removed(tmp_path):
    made(tmp_path, 2)
    (tmp_path / "checkpoint-3").mkdir()
    assert remove_incomplete(tmp_path) == [tmp_path / "checkpoint-3"]
    assert remove_incomplete(tmp_path) == []
    assert newest(tmp_path)[1] == {"step": 2}


def test_old_ones_go_by_step_not_by_name(tmp_path):
    made(tmp_path, 2, 10, 9)
    (tmp_path / "checkpoint-11").mkdir()
    keep_newest(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-10", "checkpoint-11", "checkpoint-9"]
