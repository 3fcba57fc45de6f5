"""Headless Chromium, for the page tests; skips where it is not installed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Browser:
    """Chromium with its window size, its console and waiting for what a page does by itself."""

    def __init__(self, width: int, height: int) -> None:
        webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (pip install selenium)")
        chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if not chromium or not driver:
            pytest.skip("chromium and chromedriver are not installed (apt-get install chromium chromium-driver)")
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.add_argument(f"--window-size={width},{height}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        if width < 500:  # headless windows are not made narrower than 500
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def open(self, page: Path, fragment: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(page.as_uri() + fragment)
        self.wait(lambda: not self.text("#main").startswith("Reading"))

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def text(self, selector: str) -> str:
        return str(self.run(f"return document.querySelector({selector!r})?.innerText.toWellFormed() ?? ''"))

    def click(self, selector: str, words: str = "") -> None:
        next(node for node in self.all(selector) if words in node.text).click()

    def keys(self, keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        # to the page, as a keyboard does: an element that has the focus may just be closing
        ActionChains(self.driver).send_keys(keys).perform()

    def wait(self, ready: Callable[[], Any], seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < end, "the page did not get there in time"
            time.sleep(0.02)

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]
