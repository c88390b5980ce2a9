"""A headless browser for tests of HTML: Debian's `chromium` and `chromium-driver` are enough."""

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
BUILD = Path(__file__).resolve().parents[1] / "build"

needs_browser = pytest.mark.skipif(
    BROWSER is None or DRIVER is None,
    reason="no browser: apt-get install chromium chromium-driver",
)


@contextmanager
def started(
    *, blocked: tuple[str, ...] = ("http://*", "https://*"), downloads: Path | None = None
) -> Iterator[webdriver.Chrome]:
    """A browser that keeps its messages and fetches nothing of the blocked addresses."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    # A sandbox needs what containers do not give.
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ):
        options.add_argument(argument)
    if downloads is not None:
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        found.execute_cdp_cmd("Network.enable", {})
        found.execute_cdp_cmd("Network.setBlockedURLs", {"urls": list(blocked)})
        yield found
    finally:
        found.quit()


def resize(browser, width, scheme="light", height=900):
    """Set the size of the window and the colour scheme, and stop motion."""
    device = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def screenshot(browser, path, width):
    """The whole page as a PNG, which is kept at a path."""
    down = browser.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": down, "scale": 1}
    shot = browser.execute_cdp_cmd(
        "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    image = base64.b64decode(shot["data"])
    path.write_bytes(image)
    assert image.startswith(b"\x89PNG")
    return image
