import sys
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentexp.errors import MissingDependency, UserError
from agentexp.wise.core import Encoder
from agentexp.wise.encoders import ConceptEncoder, Fitted, best_threshold, fit, statistics
from agentexp.wise.mineclip import THRESHOLDS, MineClipEncoder

CONCEPTS = ("log", "water", "cow")
COLOURS = {"log": (110, 80, 30), "water": (30, 60, 220), "cow": (20, 15, 10)}


def scene(rng: np.random.Generator, size: int = 10) -> tuple[np.ndarray, set[str]]:
    """Meadow and sky with noise; each concept with probability 1/3 as a rectangle somewhere in the lower part."""
    image = np.empty((32, 64, 3))
    image[:14], image[14:] = (130, 180, 250), (90, 160, 60)
    shown = {name for name in CONCEPTS if rng.random() < 1 / 3}
    for name in shown:
        x, z = rng.integers(0, 64 - size), rng.integers(14, 32 - size // 2)
        image[z : z + size // 2, x : x + size] = COLOURS[name]
    image = image * rng.uniform(0.8, 1.0) + rng.normal(0, 6, image.shape)
    return image.clip(0, 255).astype(np.uint8), shown


def fitted(count: int = 900) -> Fitted:
    rng = np.random.default_rng(0)
    images, shown = zip(*(scene(rng) for _ in range(count)), strict=True)
    return fit(images, shown, CONCEPTS)


FITTED = fitted()
ENCODER = ConceptEncoder.of(FITTED)


def test_it_learns_what_is_shown() -> None:
    assert (FITTED.f1 > 0.75).all()
    rng = np.random.default_rng(1)
    right = []
    for _ in range(200):
        image, shown = scene(rng)
        for name in CONCEPTS:
            text = f"near {name}"
            similar = float(ENCODER.picture(image) @ ENCODER.text(text)) >= ENCODER.threshold(text)
            right.append(similar == (name in shown))
    assert np.mean(right) > 0.85


def test_small_things_are_harder() -> None:
    def recall(size: int) -> float:
        rng = np.random.default_rng(2)
        scenes = [scene(rng, size) for _ in range(300)]
        k = CONCEPTS.index("cow")
        return float(np.mean([ENCODER.scores(image)[k] >= FITTED.thresholds[k] for image, shown in scenes if "cow" in shown]))

    assert recall(2) < recall(10)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from([(32, 64), (4, 4), (180, 320), (37, 51)]))
def test_pictures_are_unit_vectors_and_cosines_are_scores(seed: int, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (*shape, 3)).astype(np.uint8)
    vector = ENCODER.picture(image)
    assert vector.shape == (ENCODER.dimension,) and vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-4)
    for k, name in enumerate(CONCEPTS):
        assert float(vector @ ENCODER.text(name)) == pytest.approx(ENCODER.scores(image)[k] / 3**0.5, abs=1e-5)
    assert float(vector @ ENCODER.text("obtain beef")) == 0


def test_texts_name_concepts_or_nothing() -> None:
    assert np.array_equal(ENCODER.text("near cow"), ENCODER.text("Cows"))
    assert ENCODER.named("a tree by a pond") == [0, 1] and np.linalg.norm(ENCODER.text("a tree by a pond")) == pytest.approx(1)
    assert ENCODER.named("obtain beef") == [] and ENCODER.threshold("obtain beef") > 1
    assert ENCODER.named("obtain water_bucket") == [1]


def test_like_scenes_are_closer_than_others() -> None:
    rng = np.random.default_rng(3)
    image, _ = scene(rng)
    shaken = (image + rng.normal(0, 3, image.shape)).clip(0, 255).astype(np.uint8)
    other = np.roll(image, 24, axis=1)[::-1]
    here = ENCODER.picture(image)
    same, different = (float(here @ ENCODER.picture(one)) for one in (shaken, other))
    assert same > 0.85 > 0.7 > different  # the threshold of near-duplicates is between them


def test_weights_are_saved_and_loaded(tmp_path: Path) -> None:
    FITTED.save(tmp_path / "w.npz")
    again: Encoder = ConceptEncoder(path=str(tmp_path / "w.npz"))
    image, _ = scene(np.random.default_rng(4))
    assert np.array_equal(again.picture(image), ENCODER.picture(image))
    (tmp_path / "bad.npz").write_bytes(b"PK")
    with pytest.raises(UserError, match="fitted encoder"):
        ConceptEncoder(path=str(tmp_path / "bad.npz"))
    with pytest.raises(UserError, match=r"encoder\.path"):
        ConceptEncoder(path="none.npz")


def test_nothing_is_learnt_from_too_little() -> None:
    rng = np.random.default_rng(0)
    images, shown = zip(*(scene(rng) for _ in range(100)), strict=True)
    with pytest.raises(UserError, match="sheep always or never"):
        fit(images, shown, ["sheep"])
    with pytest.raises(UserError, match="frames"):
        fit(images[:20], shown[:20], CONCEPTS)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30))
def test_the_threshold_has_the_best_f1(rows: list[tuple[int, bool]]) -> None:
    scores, present = np.array([r[0] / 5 for r in rows], np.float32), np.array([r[1] for r in rows])
    threshold, best = best_threshold(scores, present)
    if not present.any():
        assert threshold == 0.5 and np.isnan(best)
        return
    f1 = {t: 2 * (present & (scores >= t)).sum() / ((scores >= t).sum() + present.sum()) for t in set(scores)}
    assert best == pytest.approx(max(f1.values())) == pytest.approx(f1[np.float32(threshold)])


def test_statistics_are_of_cells() -> None:
    image = np.zeros((8, 8, 3), np.uint8)
    image[:2, :2] = (255, 0, 51)
    first = statistics(image)[:12]
    assert first == pytest.approx([1, 0, 0.2, 0, 0, 0, 1, 0, 0.2, 1, 0, 0.2])
    assert not statistics(image)[12:].any()


# -------------------------------------------------------------------------------------------------------------- MineCLIP


def test_mineclip_needs_its_weights_and_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"attn\.pth"):
        MineClipEncoder(checkpoint=str(tmp_path / "attn.pth"))
    (tmp_path / "attn.pth").write_bytes(b"")
    encoder = MineClipEncoder(checkpoint=str(tmp_path / "attn.pth"), device="cpu")
    monkeypatch.setitem(sys.modules, "minestudio", types.ModuleType("minestudio"))
    with pytest.raises(MissingDependency, match="pip install minestudio"):
        encoder.text("near cow")


class Tensor:
    """The few operations of a torch tensor that the encoder uses, on numpy."""

    def __init__(self, array: object) -> None:
        self.array = np.asarray(array, np.float32)

    def __getitem__(self, key: object) -> "Tensor":
        return Tensor(self.array[key])  # type: ignore[index]

    def __add__(self, other: "Tensor") -> "Tensor":
        return Tensor(self.array + other.array)

    def __mul__(self, other: "Tensor") -> "Tensor":
        return Tensor(self.array * other.array)

    def __rsub__(self, other: float) -> "Tensor":
        return Tensor(other - self.array)

    def permute(self, *axes: int) -> "Tensor":
        return Tensor(self.array.transpose(axes))

    def view(self, *shape: int) -> "Tensor":
        return Tensor(self.array.reshape(shape))

    @staticmethod
    def cat(tensors: list["Tensor"], axis: int) -> "Tensor":
        return Tensor(np.concatenate([tensor.array for tensor in tensors], axis))

    def sigmoid(self) -> "Tensor":
        return Tensor(1 / (1 + np.exp(-self.array)))

    def float(self) -> "Tensor":
        return self

    cpu = float

    def numpy(self) -> np.ndarray:
        return self.array


class FakeMineCLIP:
    """Forms and call order of the real one: 512 numbers a frame, 16 frames a video, adapters with residual weights."""

    def __init__(self, **config: object) -> None:
        assert config["resolution"] == [160, 256]
        double = types.SimpleNamespace(video_adapter=self.double, text_adapter=self.double)
        self.reward_head = types.SimpleNamespace(**vars(double), video_residual_weight=Tensor(0.0), text_residual_weight=None)
        self.asked = 0

    @staticmethod
    def double(tensor: Tensor) -> Tensor:
        return tensor + tensor

    def load_ckpt(self, path: str, strict: bool) -> None:
        assert path.endswith("attn.pth") and strict

    def to(self, device: str) -> "FakeMineCLIP":
        return self

    def eval(self) -> "FakeMineCLIP":
        return self

    def forward_image_features(self, frames: Tensor) -> Tensor:
        assert frames.array.shape == (1, 3, 160, 256)
        return Tensor(np.full((1, 512), frames.array.mean()))

    def forward_video_features(self, features: Tensor) -> Tensor:
        assert features.array.shape == (1, 16, 512)
        return Tensor(features.array.mean(axis=1))

    def encode_text(self, texts: list[str]) -> Tensor:
        self.asked += 1
        if texts == ["offline"]:
            raise OSError("no connection to the hub")
        return Tensor(np.eye(512)[len(texts[0])][None])


def fake_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import nullcontext

    torch = types.SimpleNamespace(no_grad=nullcontext, as_tensor=lambda array, device: Tensor(array), cat=Tensor.cat)
    monkeypatch.setitem(sys.modules, "torch", torch)
    for name in ("minestudio", "minestudio.utils", "minestudio.utils.mineclip_lib"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    package = types.SimpleNamespace(MineCLIP=FakeMineCLIP)
    monkeypatch.setitem(sys.modules, "minestudio.utils.mineclip_lib.mineclip", package)


def test_mineclip_calls_its_package_as_mrsteve_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_package(monkeypatch)
    (tmp_path / "attn.pth").write_bytes(b"")
    encoder: Encoder = MineClipEncoder(checkpoint=str(tmp_path / "attn.pth"), device="cpu")
    picture = encoder.picture(np.full((64, 64, 3), 90, np.uint8))
    assert picture.shape == (512,) and np.allclose(picture, 512**-0.5)
    assert np.array_equal(encoder.text("near cow"), np.eye(512, dtype=np.float32)[8])
    encoder.text("near cow")
    assert encoder._model.asked == 1  # type: ignore[attr-defined]
    assert encoder.threshold("near cow") == 0.2355 and encoder.threshold("obtain beef") is None  # type: ignore[attr-defined]


def test_mineclips_window_repeats_one_picture_or_takes_the_last_16(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_package(monkeypatch)
    monkeypatch.setattr("agentexp.wise.mineclip._unit", lambda tensor: tensor.array.reshape(-1))
    (tmp_path / "attn.pth").write_bytes(b"")
    seen = {}
    for window in ("repeat", "last"):
        encoder = MineClipEncoder(checkpoint=str(tmp_path / "attn.pth"), device="cpu", window=window)  # type: ignore[arg-type]
        seen[window] = [float(encoder.picture(np.full((160, 256, 3), k, np.uint8))[0]) for k in range(40)]
        encoder.begin()
        assert encoder.picture(np.full((160, 256, 3), 7, np.uint8))[0] == pytest.approx(seen["repeat"][7])
    scale = seen["repeat"][1]  # the fake's adapters double, halfway
    assert seen["repeat"] == pytest.approx([k * scale for k in range(40)])
    assert seen["last"][39] == pytest.approx(scale * np.mean(range(24, 40)))
    assert seen["last"][3] == pytest.approx(scale * (1 + 2 + 3) / 16)  # the first picture, black, fills the rest
    with pytest.raises(UserError, match="window"):
        MineClipEncoder(checkpoint=str(tmp_path / "attn.pth"), window="all")  # type: ignore[arg-type]


def test_mineclips_tokenizer_and_weights_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_package(monkeypatch)
    (tmp_path / "attn.pth").write_bytes(b"")
    encoder = MineClipEncoder(checkpoint=str(tmp_path / "attn.pth"), device="cpu")
    with pytest.raises(UserError, match="tokenizer"):
        encoder.text("offline")

    def wrong(self: FakeMineCLIP, path: str, strict: bool) -> None:
        raise KeyError("state_dict")

    monkeypatch.setattr(FakeMineCLIP, "load_ckpt", wrong)
    with pytest.raises(UserError, match=r"attn\.pth is meant"):
        MineClipEncoder(checkpoint=str(tmp_path / "attn.pth"), device="cpu").text("near cow")


def test_mrsteves_thresholds_are_those_of_its_texts() -> None:
    assert THRESHOLDS["near cow"] == 0.2355 and THRESHOLDS["near tree"] == 0.231 and THRESHOLDS["near water"] == 0.2214
