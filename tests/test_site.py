"""The site that `make docs` has built, in a browser without a network."""

import functools
import http.server
import json
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browsers import needs_browser, resize, started
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SITE = Path(__file__).resolve().parent.parent / "build/site"

pytestmark = [
    needs_browser,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="no site: make docs"),
]

PAGES = sorted(page.parent.relative_to(SITE) for page in SITE.rglob("index.html"))


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Nothing is printed."""


@pytest.fixture(scope="module")
def url():
    handler = functools.partial(Handler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(url):
    with started(blocked=("https://*",)) as browser:
        resize(browser, 1280)
        yield browser


def asked_for(browser):
    """The hosts that the browser has asked for something since the last time."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    return {urlsplit(found).hostname for found in urls if not found.startswith("data:")}


def test_the_search_box_finds_pages(url, browser):
    browser.get(f"{url}/quickstart/")
    ActionChains(browser).send_keys("/").perform()
    ActionChains(browser).send_keys("uniqueItems").perform()
    WebDriverWait(browser, 120).until(
        lambda _: browser.find_elements(By.CSS_SELECTOR, ".md-search-result__item a")
    )
    found = browser.find_elements(By.CSS_SELECTOR, ".md-search-result__item a")
    targets = [link.get_attribute("href") for link in found]
    assert any(urlsplit(target).path == "/json_schema/" for target in targets), targets
    assert asked_for(browser) == {"127.0.0.1"}


def test_every_page_is_shown(url, browser):
    """Without an error, a request elsewhere, or an image that is missing."""
    assert len(PAGES) > 60
    for page in PAGES:
        browser.get(f"{url}/{page.as_posix()}/")
        assert browser.find_element(By.TAG_NAME, "h1").text
        missing = browser.execute_script(
            "return [...document.images].filter(i => !i.naturalWidth).map(i => i.src)"
        )
        assert missing == [], page
        errors = [m["message"] for m in browser.get_log("browser") if m["level"] == "SEVERE"]
        assert errors == [], page
    assert asked_for(browser) == {"127.0.0.1"}
