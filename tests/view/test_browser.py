"""The pages in headless Chromium, opened as files: what a person does with them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from browser_kit import Browser
from view_kit import episode, make_run

from agentexp.records import episode_to_json
from agentexp.store import RunFolder
from agentexp.view import write_comparison, write_page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(make_run(tmp_path_factory.mktemp("runs") / "map", 24))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pair")
    return write_comparison(make_run(root / "a", 24), make_run(root / "b", 24, paradigm="react", luck=1, first=2))


def shown(browser: Browser) -> int:
    return len(browser.all("#rows a.row"))


def open_row(browser: Browser, n: int) -> None:
    browser.run(f"document.querySelectorAll('#rows a.row')[{n}].click()")
    browser.wait(lambda: browser.all("#main .episode"))


def test_overview_tells_rate_interval_and_errors(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    text = desktop.text("#main")
    for words in ("57.1 %", "36.5 – 75.5 %, n = 21", "21 / 24", "3 harness errors", "pick_and_place_simple", "General rules"):
        assert words in text
    assert desktop.errors() == []


def test_filters_narrow_the_list(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    for words, n in (("Failed", 9), ("Harness error", 3), ("Won", 12), ("All", 24)):
        desktop.click("#filters .choice", words)
        assert shown(desktop) == n
    desktop.click("#filters .choice", "Invalid replies")
    assert 0 < shown(desktop) < 24
    desktop.click("#count button", "Clear")
    desktop.run(
        "const s = document.querySelector('select'); s.value = 'look_at_obj_in_light'; s.dispatchEvent(new Event('change'))"
    )
    assert shown(desktop) == 6
    assert desktop.errors() == []


def test_episode_reads_as_a_conversation_with_its_stages(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    open_row(desktop, 1)
    heads = desktop.run("return [...document.querySelectorAll('.stage-head')].map(x => x.innerText.split('\\n')[0].trim())")
    assert [head.split()[0] for head in heads] == ["Mapping", "Acting"]
    assert len(desktop.all(".turn.model")) == len(desktop.all(".turn.world")) == 24
    order = desktop.run("return [...document.querySelectorAll('.turn')].slice(0, 6).map(x => x.className.split(' ')[1])")
    assert order == ["system", "start", "model", "world", "model", "world"]
    text = desktop.text("#main")
    for words in (
        "Map M",
        "Spatial layout",
        "✗ no",
        "5 of 7 covered",
        "step limit",
        "written as",
        "number added",
        "As received",
    ):
        assert words in text
    assert desktop.all("svg.trace .bar") and desktop.all("svg.trace .dot")
    colours = desktop.run(
        "return ['model', 'world'].map(c => getComputedStyle(document.querySelector('.turn.' + c)).backgroundColor)"
    )
    assert colours[0] != colours[1]
    assert desktop.errors() == []


def test_recalled_exploration_reads_like_one_that_was_made(desktop: Browser, tmp_path: Path) -> None:
    done = episode(2, paradigm="react", steps=6)
    calls, chat = done.calls, done.chats.pop("acting")
    done.chats = {"exploring": chat}
    done.notes = {
        "summary": "Mugs are <b>often</b> in cabinets.",
        "checkpoints": [{"kind": "object", "name": "mug", "step": 2}],
    }
    for step in done.trajectory:
        step.phase, step.call = "exploring", None
    calls.clear()
    with RunFolder(tmp_path / "run") as run:
        run.append(episode_to_json(done))
    desktop.open(write_page(tmp_path / "run"))
    open_row(desktop, 0)
    assert len(desktop.all(".turn.model")) == len(desktop.all(".turn.world")) == 6
    text = desktop.text("#main")
    for words in ("from an earlier session", "Mugs are <b>often</b> in cabinets.", "object: mug", "1 of 1 covered"):
        assert words in text
    assert text.index("exploring 2") < text.index("object: mug") < text.index("exploring 3")
    assert desktop.errors() == []


def test_harness_error_is_shown_as_text(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    open_row(desktop, 7)
    assert "at step 3 <b>bold</b>" in desktop.text(".trouble")


def test_script_in_a_reply_stays_text(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    open_row(desktop, 0)
    assert "</script><script>window.owned = 1</script><img src=x" in desktop.text("#main")
    assert desktop.run("return window.owned ?? null") is None
    assert not desktop.all("#main img") and not desktop.all("#main script")
    assert desktop.errors() == []


def test_search_finds_message_text_and_marks_it(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    desktop.all("#search")[0].send_keys("WINDOW.OWNED = 1")
    desktop.wait(lambda: shown(desktop) == 1)
    open_row(desktop, 0)
    desktop.wait(lambda: desktop.all("#main mark"))
    assert desktop.all("#main mark")[0].text == "window.owned = 1"
    desktop.all("#search")[0].clear()
    desktop.all("#search")[0].send_keys("no such words anywhere")
    desktop.wait(lambda: shown(desktop) == 0)
    assert desktop.errors() == []


def test_keyboard_alone_is_enough(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    desktop.keys("j")
    desktop.wait(lambda: "1 / 24" in desktop.text(".crumbs"))
    desktop.keys("j")
    desktop.wait(lambda: "2 / 24" in desktop.text(".crumbs"))
    desktop.keys("k")
    desktop.wait(lambda: "1 / 24" in desktop.text(".crumbs"))
    desktop.keys("/")
    assert desktop.run("return document.activeElement.id") == "search"
    desktop.keys("\ue00c")  # Escape
    desktop.keys("?")
    assert desktop.run("return document.getElementById('keys').open")
    desktop.keys("\ue00c")
    desktop.keys("o")
    desktop.wait(lambda: "Success rate" in desktop.text("#main"))
    assert desktop.errors() == []


def test_address_leads_to_the_episode(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    open_row(desktop, 5)
    fragment = desktop.run("return location.hash")
    head = desktop.text(".crumbs h2")
    desktop.open(page, fragment)
    desktop.wait(lambda: desktop.text(".crumbs h2") == head)


def test_light_and_dark(desktop: Browser, page: Path) -> None:
    desktop.open(page)
    seen = set()
    for _ in range(3):
        seen.add(desktop.run("return getComputedStyle(document.body).backgroundColor"))
        desktop.click("#theme")
    assert len(seen) == 2


def test_comparison_filters_by_who_won(desktop: Browser, pair: Path) -> None:
    desktop.open(pair)
    total = shown(desktop)
    counts = {}
    for words in ("Only A won", "Only B won", "Both won", "Neither won", "Harness error", "Different"):
        desktop.click("#filters .choice", words)
        counts[words] = shown(desktop)
    assert (
        sum(counts[words] for words in ("Only A won", "Only B won", "Both won", "Neither won", "Harness error")) == total == 22
    )
    odd = len(desktop.all("#rows a.row.odd"))
    assert odd == counts["Different"] > 0
    assert desktop.errors() == []


def test_comparison_shows_a_task_side_by_side(desktop: Browser, pair: Path) -> None:
    desktop.open(pair)
    open_row(desktop, 0)
    left, right = desktop.all(".column")
    assert abs(left.rect["y"] - right.rect["y"]) < 2 and right.rect["x"] > left.rect["x"] + 200
    assert len(desktop.all(".turn.apart")) == 2
    assert desktop.errors() == []


def test_phone_width(phone: Browser, page: Path, pair: Path) -> None:
    for file in (page, pair):
        phone.open(file)
        for view in ("overview", "list", "episode"):
            if view == "episode":
                open_row(phone, 3)
            else:
                phone.click(f"#tab-{view}")
            assert phone.run("return document.documentElement.scrollWidth") <= 390
        phone.click(".back")
        phone.wait(lambda: phone.all("#rows")[0].is_displayed())
    open_row(phone, 3)
    phone.click(".pair-tabs button", "B")
    assert [column.is_displayed() for column in phone.all(".column")] == [False, True]
    assert phone.errors() == []


@pytest.mark.slow
def test_a_thousand_episodes_open_fast(desktop: Browser, tmp_path: Path) -> None:
    page = write_page(make_run(tmp_path / "big", 1000, steps=30))
    started = time.monotonic()
    desktop.open(page)
    assert time.monotonic() - started < 50
    started = time.monotonic()
    open_row(desktop, 120)
    assert time.monotonic() - started < 30
    desktop.all("#search")[0].send_keys("mug-none-777/")
    desktop.wait(lambda: desktop.text("#count").startswith("1 of 1,000"), 60)
    assert desktop.errors() == []
