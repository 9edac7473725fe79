"""A real Chromium for the tests of the HTML report."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

#: As root in a container, and without what Chromium would ask the network for by itself.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The Chromium of the system; it is an error if there is none."""
    found = os.environ.get("DRAFTAUDIT_TEST_CHROMIUM") or shutil.which("chromium")
    if found is None:
        pytest.fail("no chromium on PATH: on Debian, apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Reader:
    """Opens pages, and keeps what they complained of and asked for."""

    browser: Browser
    folder: Path
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def open(self, text: str, address: str = "", **how: Any) -> Page:
        """A page from a file, in a context of its own."""
        file = self.folder / "report.html"
        file.write_text(text, "utf-8")
        context = self.browser.new_context(**{"viewport": {"width": 1600, "height": 1000}, **how})
        page = context.new_page()
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url.partition("#")[0]))
        page.goto(f"{file.as_uri()}{address}")
        return page

    def check(self) -> None:
        """No page said anything on its console, and none asked for more than itself."""
        assert self.complaints == []
        outside = [url for url in self.asked if not url.startswith(("file:", "data:"))]
        assert outside == []
        assert {url for url in self.asked if url.startswith("file:")} <= {
            (self.folder / "report.html").as_uri()
        }


#: The contrast of every visible text with what is behind it (WCAG 2.2, 1.4.3), lowest first.
CONTRASTS = """
() => {
  const parse = (color) => {
    const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
    return { rgb: [r, g, b], a };
  };
  const light = (rgb) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const { rgb, a } = parse(getComputedStyle(e).backgroundColor);
      if (a === 1) return rgb;
      if (a !== 0) throw new Error(`half transparent: ${e.outerHTML}`);
    }
    return [255, 255, 255];
  };
  const found = {};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(parse(style.color).rgb), light(behind(element))].sort((x, y) => y - x);
    const key = `${element.tagName}.${element.className} ${style.color}`;
    found[key] = Math.min(found[key] ?? 99, (a + 0.05) / (b + 0.05));
  }
  return found;
}
"""
