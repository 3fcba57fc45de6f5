"""Supervised fine-tuning of a tiny random model, end to end and token by token."""

import json
import os
import signal

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("trl", reason="needs trl")

from agentexp.config import Overrides  # noqa: E402
from agentexp.core import Message  # noqa: E402
from agentexp.errors import FatalError, UserError  # noqa: E402
from agentexp.tracking import NoLogger  # noqa: E402
from agentexp.training import checkpoints  # noqa: E402
from agentexp.training.base import Base  # noqa: E402
from agentexp.training.job import Job  # noqa: E402
from agentexp.training.metrics_file import read_metrics  # noqa: E402
from agentexp.training.sft import SftTrainer, labels  # noqa: E402
from agentexp.training.sft_data import Conversation, Demo  # noqa: E402


class Talks:
    """Conversations that are given, each an instance of its own."""

    def __init__(self, *talks):
        self.talks = talks

    def conversations(self):
        return [Conversation(list(talk), str(i)) for i, talk in enumerate(self.talks)]

    def versions(self):
        return {"data": "given"}


def talk(*contents):
    return [Message("user" if i % 2 == 0 else "assistant", content) for i, content in enumerate(contents)]


TALKS = Talks(*(talk("Where? " * (i + 1), f"Here {i}.", "And now?", "There. " * (i % 3 + 1)) for i in range(7)))


def trainer(**settings):
    given = {"data": TALKS, "epochs": 2, "global_batch": 3, "lr": 1e-3, "save_every": 2, "max_len": 4096} | settings
    return SftTrainer(Base(path="tiny", device="cpu"), **given)


def job(folder, made, **more):
    settings = {"command": "train-sft", "config": {"seed": 0}, "label": "tiny", "seed": 0, "logger": NoLogger(), "threads": 1}
    return Job(folder=folder, trainer=made, progress="off", **(settings | more))


def trained(folder, **settings):
    made = trainer(**settings)
    assert job(folder, made).run() == 0
    return made, read_metrics(folder), json.loads((folder / "summary.json").read_text())


def losses(lines):
    return [line["loss"] for line in lines]


def by_hand(model, rows):
    """Mean negative log-likelihood of the trained tokens of all rows."""
    total, count = 0.0, 0
    with torch.no_grad():
        for row in rows:
            logprobs = model(torch.tensor([row.ids])).logits[0].log_softmax(-1)
            for i in range(1, len(row.ids)):
                if row.trained[i]:
                    total, count = total - logprobs[i - 1, row.ids[i]].item(), count + 1
    return total / count, count


def test_the_loss_is_the_mean_over_trained_tokens_and_nothing_else(tmp_path):
    made, lines, summary = trained(tmp_path, epochs=1)
    course = made.course(0)
    first = [course.prepared.rows[row] for sequence in course.order[:3] for row in sequence]
    loss, count = by_hand(made.base.load_model(), first)
    assert lines[0]["loss"] == pytest.approx(loss, rel=1e-5)
    assert lines[0]["trained_tokens"] == count
    assert summary["trained_tokens"] == course.trained_tokens == sum(row.n_trained for row in course.prepared.rows)
    assert summary["tokens"] == course.tokens
    assert summary["steps"] == len(lines) == course.steps == 3


def test_labels_are_the_ids_of_trained_tokens():
    row = trainer().course(0).prepared.rows[0]
    kept = [label for label in labels(row) if label != -100]
    assert kept == [token for token, is_trained in zip(row.ids, row.trained, strict=True) if is_trained]
    assert Base(path="tiny").load_tokenizer().decode(kept) == "Here 0.<|im_end|>There. <|im_end|>"


def test_training_learns_and_the_model_comes_back_whole(tmp_path):
    made, lines, summary = trained(tmp_path, epochs=12, lr=5e-3)
    assert lines[-1]["loss"] < 0.7 * lines[0]["loss"]
    base = Base(path=str(tmp_path / "model"), device="cpu")
    model, tokenizer = base.load_model(), base.load_tokenizer()
    assert tokenizer.chat_template and model.config.use_cache
    loss, _ = by_hand(model, made.course(0).prepared.rows)
    assert loss < 0.7 * lines[0]["loss"]
    assert summary["first_loss"] == lines[0]["loss"] and summary["last_loss"] == lines[-1]["loss"]
    assert sorted(path.name for path in (tmp_path / "model").iterdir() if path.suffix in (".bin", ".pt", ".md")) == []


@pytest.mark.parametrize(
    "settings", [{}, {"full": False, "lora_dropout": 0.2}, {"packing": True, "max_len": 256, "global_batch": 1}]
)
def test_an_interrupted_training_ends_like_an_uninterrupted_one(tmp_path, settings):
    _, whole, summary = trained(tmp_path / "whole", **settings)
    stopped = trainer(**settings)
    halves = job(tmp_path / "halves", stopped)
    record = Job.metrics

    def stop_after_three(self, step, values):
        record(self, step, values)
        if step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "metrics", stop_after_three)
        assert halves.run() == 130
    assert not (tmp_path / "halves" / "model").exists()
    _, resumed, again = trained(tmp_path / "halves", **settings)
    assert [line["step"] for line in resumed] == [line["step"] for line in whole]
    assert losses(resumed) == losses(whole)
    assert [line["trained_tokens"] for line in resumed] == [line["trained_tokens"] for line in whole]
    same = ("steps", "trained_tokens", "tokens", "first_loss", "last_loss")
    assert {key: again[key] for key in same} == {key: summary[key] for key in same}


def test_a_checkpoint_in_the_middle_of_which_the_process_died_is_not_used(tmp_path):
    _, whole, _ = trained(tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "mark", die_at(4))
        with pytest.raises(FatalError):
            job(tmp_path / "dead", trainer()).run()
    assert checkpoints.newest(tmp_path / "dead" / "checkpoints")[1]["step"] == 2
    _, resumed, _ = trained(tmp_path / "dead")
    assert losses(resumed) == losses(whole)


def die_at(step):
    mark = checkpoints.mark

    def marks(path, values):
        if values["step"] == step:
            raise FatalError("killed")
        mark(path, values)

    return marks


def test_packed_rows_do_not_see_each_other(tmp_path):
    common = {"epochs": 1, "max_steps": 1}
    _, [alone], _ = trained(tmp_path / "alone", global_batch=7, **common)
    made, [packed], _ = trained(tmp_path / "packed", global_batch=1, packing=True, max_len=4096, **common)
    assert len(made.course(0).order) == 1
    assert packed["loss"] == pytest.approx(alone["loss"], rel=1e-5)
    assert packed["trained_tokens"] == alone["trained_tokens"] and packed["tokens"] == alone["tokens"]
    assert packed["grad_norm"] == pytest.approx(alone["grad_norm"], rel=1e-4)


def test_micro_batches_only_change_the_speed(tmp_path):
    _, one, _ = trained(tmp_path / "one")
    _, three, _ = trained(tmp_path / "three", micro_batch=3)
    assert losses(three) == pytest.approx(losses(one), rel=1e-4)
    assert [line["tokens"] for line in three] == [line["tokens"] for line in one]


def test_lora_trains_adapters_and_saves_them_apart_and_merged(tmp_path):
    made, lines, _ = trained(tmp_path, full=False, epochs=8, lr=1e-2)
    assert lines[-1]["loss"] < lines[0]["loss"]
    from peft import PeftModel

    adapted = PeftModel.from_pretrained(made.base.load_model(), tmp_path / "adapter").eval()
    merged = Base(path=str(tmp_path / "model"), device="cpu").load_model()
    row = made.course(0).prepared.rows[0]
    with torch.no_grad():
        outputs = [model(torch.tensor([row.ids])).logits for model in (adapted, merged, made.base.load_model())]
    assert torch.allclose(outputs[0], outputs[1], atol=1e-4)
    assert not torch.allclose(outputs[0], outputs[2], atol=1e-2)
    with pytest.raises(UserError, match="lm_head"):
        job(tmp_path / "head", trainer(full=False, lora_targets=["lm_head"])).run()


def test_a_token_budget_replaces_the_epochs(tmp_path):
    made, lines, summary = trained(tmp_path, token_budget=150)
    rows = made.course(0).prepared.rows
    assert 150 <= summary["trained_tokens"] < 150 + max(row.n_trained for row in rows)
    assert lines[-1]["trained_tokens"] == summary["trained_tokens"]
    every = trainer(token_budget=1000, budget_counts="all").course(0)
    assert 1000 <= every.tokens < 1000 + max(len(row.ids) for row in rows)


def test_held_out_instances_give_a_loss_and_are_not_trained(tmp_path):
    made, lines, summary = trained(tmp_path, held_out=0.4, epochs=1)
    course = made.course(0)
    assert course.prepared.held_out and len(course.prepared.rows) + len(course.prepared.held_out) == 7
    assert summary["eval_loss"] > 0 and any("eval_loss" in line for line in lines)
    assert [line["step"] for line in lines] == list(range(1, course.steps + 1))


@pytest.mark.parametrize("precision", ["bf16", "bf16_weights"])
def test_half_precision_trains(tmp_path, precision):
    _, lines, _ = trained(tmp_path, precision=precision, lr=1e-2, epochs=6, gradient_checkpointing=True)
    assert lines[-1]["loss"] < lines[0]["loss"]
    kept = torch.float32 if precision == "bf16" else torch.bfloat16
    assert Base(path=str(tmp_path / "model"), device="cpu", dtype="auto").load_model().dtype is kept


def test_a_loss_that_is_no_number_stops_the_training(tmp_path):  # R06's kind: never an adapter full of NaN with exit code 0
    with pytest.raises(FatalError, match=r"loss of step \d+ is nan"):
        job(tmp_path, trainer(lr=1e30, max_grad_norm=1e30, epochs=5)).run()
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("save_every", [1, 50])
def test_a_last_update_that_breaks_the_model_is_noticed(tmp_path, save_every, monkeypatch):  # R06: the loss is from before it
    from agentexp.training.sft_follow import Follow

    count = Follow.on_step_end

    def broken(self, *given, **more):
        next(self.trainer.model.parameters()).data[0, 0] = float("nan")
        return count(self, *given, **more)

    monkeypatch.setattr(Follow, "on_step_end", broken)
    with pytest.raises(FatalError, match=r"parameter \S+ is not finite any more"):
        job(tmp_path, trainer(max_steps=1, save_every=save_every)).run()
    assert not (tmp_path / "model").exists()
    assert checkpoints.newest(tmp_path / "checkpoints") is None  # nothing to go on from


def test_a_row_is_shown_with_what_is_trained_of_it(tmp_path):  # R02
    trained(tmp_path, epochs=1, data=Talks(talk("Where?", "Here.", "Now?", "There.")), global_batch=1)
    shown = (tmp_path / "samples" / "first-row.txt").read_text()
    assert "»Here.<|im_end|>«" in shown and "»There.<|im_end|>«" in shown and shown.count("»") == 2


def test_rows_that_cannot_be_trained_are_named(tmp_path):  # R06: a short one, one that is too long, one that is cut
    talks = Talks(talk("Where?", "Here."), talk("Where? " * 50, "Here."), talk("Where?", "Here.", "And? " * 50, "There."))
    made, _, summary = trained(tmp_path, epochs=1, max_len=80, data=talks, global_batch=1)
    assert (summary["rows"], summary["cut"], summary["refused"], summary["unused"]) == (2, 1, 1, ["1"])
    said = made.course(0).sentences()
    assert any("Trained tokens of a conversation: " in line and "median" in line for line in said) and "Not trained: 1." in said


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "mark", die_at(4))
        with pytest.raises(FatalError):
            job(tmp_path, trainer()).run()
    other = Talks(*(talk(f"Who? {i}", "Me.") for i in range(7)))
    with pytest.raises(UserError, match="written for other data"):
        job(tmp_path, trainer(data=other)).run()


def test_the_batch_must_divide(tmp_path):
    with pytest.raises(UserError, match=r"global_batch=3 must be a multiple of trainer\.micro_batch=2"):
        job(tmp_path, trainer(micro_batch=2)).run()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0.0}, "lr must be greater than 0"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"token_budget": 0}, "token_budget must be at least 1, or null"),
        ({"held_out": 1.0}, "held_out must be from 0 to below 1"),
        ({"max_len": 2}, "leaves no room"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        trainer(**settings)


def test_episodes_are_played_on_the_way_by_agentexps_own_runner(tmp_path):
    from agentexp.training.evaluate import Evaluation

    config = {
        "output_root": str(tmp_path),
        "seed": 0,
        "evaluation": {"tasks": 2, "split": "dev", "max_steps": 2},
        "env": {"_target_": "agentexp.envs.toy.ToyRooms", "split": "test", "in_process": True},
        "paradigm": {"_target_": "agentexp.paradigms.react.ReAct", "style": "compact"},
        "model": {
            "_target_": "agentexp.models.transformers.TransformersModel",
            "style": "compact",
            "max_tokens": 4,
            "batch": 2,
        },
        "budget": {"mapping": 0, "acting": 2},
        "parsing": {"_target_": "agentexp.actions.ParseSettings"},
    }
    settings = {"epochs": 1, "data": Demo(episodes=4), "global_batch": 2, "eval_every": 2}
    assert job(tmp_path / "played", trainer(**settings), evaluation=Evaluation(config, Overrides())).run() == 0
    lines = read_metrics(tmp_path / "played")
    assert ["eval/success_rate" in line for line in lines] == [False, True]
    assert lines[-1]["eval/harness_errors"] == 0
    episodes = (tmp_path / "played" / "evaluations" / "step-2" / "episodes.jsonl").read_text().splitlines()
    assert [json.loads(line)["task"]["split"] for line in episodes] == ["dev", "dev"]
    _, alone, _ = trained(tmp_path / "alone", **settings)
    assert losses(alone) == losses(lines)  # playing changes nothing about the training
    bad = {**config, "evaluation": {"split": "nowhere"}}
    with pytest.raises(UserError, match="nowhere is not a split of toy"):
        Evaluation(bad, Overrides())


def test_killed_after_the_last_step_only_the_model_is_written(tmp_path):
    from agentexp.training import sft_loop

    def killed(*_):
        raise FatalError("killed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sft_loop, "save", killed)
        with pytest.raises(FatalError):
            job(tmp_path, trainer(epochs=1)).run()
    before = read_metrics(tmp_path)
    _, lines, summary = trained(tmp_path, epochs=1)
    assert lines == before and summary["status"] == "finished" and summary["trained_tokens"] == lines[-1]["trained_tokens"]
    assert (tmp_path / "model" / "model.safetensors").is_file()
