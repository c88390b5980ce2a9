"""`ffwd play` in a real browser: typing, errors, colours, the cursor, and what the buttons do.

Screenshots stay in `build/play/`.
"""

import json
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest
from browsers import BUILD, needs_browser, resize, screenshot, started
from playing import SCHEMA, served, state
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

import ffwd.model
from ffwd.play import share
from ffwd.play.session import Session

SHOTS = BUILD / "play"
NASTY = "<img src=x onerror=alert(1)>"

pytestmark = needs_browser


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def browser(downloads):
    # The page is served here; nothing else may be fetched.
    with started(blocked=("https://*",), downloads=downloads) as found:
        yield found


@pytest.fixture(scope="module")
def server():
    with served() as found:
        yield found


@pytest.fixture
def page(browser, server):
    """The page as it begins; afterwards it has no message, and fetched only from its server."""
    resize(browser, 1280)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(server.address)
    idle(browser)
    yield browser
    idle(browser)
    assert browser.get_log("browser") == []
    fetched = {urllib.parse.urlsplit(url) for url in requested(browser)}
    assert {(url.scheme, url.netloc) for url in fetched if url.scheme == "http"} <= {
        ("http", f"127.0.0.1:{server.server_port}")
    }
    assert {url.scheme for url in fetched} <= {"http", "data", "blob"}


def requested(browser):
    """The addresses that were asked for since the last call."""
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]


def idle(browser):
    """Wait until all that was edited is answered."""
    WebDriverWait(browser, 120, 0.02).until(
        lambda found: (
            found.execute_script("return document.body.dataset.idle") == "yes"
            and found.execute_script("return document.body.dataset.ready") == "yes"
        )
    )


def of(browser, name):
    return browser.find_element(By.ID, name)


def shown(browser, name):
    idle(browser)
    return of(browser, name).text


def write(browser, name, text):
    """Replace the text of an editor by typing."""
    browser.execute_script(f"Editors.{name}.setValue(''); Editors.{name}.focus()")
    ActionChains(browser).send_keys(text).perform()
    idle(browser)


def put(browser, name, text):
    """Replace the text of an editor at once, as pasting does."""
    browser.execute_script(f"Editors.{name}.setValue(arguments[0]); Editors.{name}.focus()", text)
    browser.execute_script(f"Editors.{name}.execCommand('goDocEnd')")
    idle(browser)


def value(browser, name):
    return browser.execute_script(f"return Editors.{name}.getValue()")


def coloured(browser):
    """The tokens of the text as they are drawn: the characters and the kind."""
    return browser.execute_script(
        "return [...document.querySelectorAll('#text [class*=tok-]')].map(span => "
        "[span.textContent, span.className.match(/tok-(accepted|forced|healed|refused)/)[1],"
        " getComputedStyle(span).backgroundColor])"
    )


def test_typing_colours_each_token(page):
    write(page, "text", '{"name": "Ada", "status": "p')
    drawn = coloured(page)
    assert "".join(text for text, _, _ in drawn) == '{"name": "Ada", "status": "p'
    kinds = {kind: colour for _, kind, colour in drawn}
    assert set(kinds) == {"accepted", "forced"}
    assert len(set(kinds.values())) == 2
    assert shown(page, "reading") == "Accepted so far."
    page.find_element(By.CSS_SELECTOR, "#text textarea").send_keys('aid"}')
    assert shown(page, "reading") == "Accepted, and whole."
    page.find_element(By.CSS_SELECTOR, "#text textarea").send_keys("x")
    assert shown(page, "reading").startswith("Refused at byte 33.")
    assert coloured(page)[-1][:2] == ["x", "refused"]


def test_a_refusal_says_who_asks_and_leads_there(page):
    write(page, "text", '{"name": "ada"')
    refused = [text for text, kind, _ in coloured(page) if kind == "refused"]
    assert refused == ['ada"']
    assert "only this may come" in of(page, "refusal").text
    link = page.find_element(By.CSS_SELECTOR, "#refusal .link")
    assert link.text == "#/properties/name (line 4)"
    link.click()
    position = page.execute_script("return Editors.grammar.getCursor()")
    assert position["line"] == 3
    assert page.execute_script("return Editors.grammar.hasFocus()")


def test_errors_are_marked_where_they_are(page):
    put(page, "grammar", '{\n  "type": "objec"\n}')
    assert of(page, "verdict").text == "The grammar is refused."
    mark = page.find_element(By.CSS_SELECTOR, "#grammar .mark.error")
    line = page.execute_script(
        "return Editors.grammar.lineInfo(1).gutterMarkers.marks === arguments[0]", mark
    )
    assert line
    assert mark.get_attribute("title") in of(page, "problems").text
    assert page.find_element(By.CSS_SELECTOR, "#grammar .at-error").text
    page.find_element(By.CSS_SELECTOR, "#problems .link").click()
    assert page.execute_script("return Editors.grammar.getCursor().line") == 1
    assert "The grammar is refused." in shown(page, "cursor")
    put(page, "grammar", SCHEMA)
    assert of(page, "verdict").text.startswith("The grammar is good")
    assert page.find_elements(By.CSS_SELECTOR, "#grammar .mark") == []


def test_the_keywords_of_a_schema_stand_in_the_margin(page):
    put(page, "grammar", '{\n"title": "x",\n"propertees": {},\n"type": "object"\n}')
    marks = page.find_elements(By.CSS_SELECTOR, "#grammar .mark")
    assert [mark.get_attribute("class") for mark in marks] == ["mark ignored", "mark warning"]
    assert "did you mean `properties`?" in of(page, "problems").text
    summary = page.find_element(By.CSS_SELECTOR, "#fidelity summary")
    assert summary.text == "Keywords: 2 ignored, 1 enforced"
    summary.click()
    assert "`title` is ignored" in of(page, "fidelity").text


@pytest.mark.parametrize(
    ("language", "grammar", "text", "bad"),
    [
        ("lark", 'start: "a" b*\nb: /[0-9]/', "a12", 'start: "a" b'),
        ("gbnf", 'root ::= "a" [0-9]*', "a12", "root ::= ["),
        ("ebnf", 'root ::= "a" [0-9]*', "a12", "root ::= ("),
        ("regex", "a[0-9]*", "a12", "a("),
    ],
)
def test_every_notation_is_read(page, language, grammar, text, bad):
    Select(of(page, "language")).select_by_value(language)
    put(page, "grammar", bad)
    assert page.find_elements(By.CSS_SELECTOR, "#grammar .mark.error")
    put(page, "grammar", grammar)
    write(page, "text", text)
    assert shown(page, "reading") == "Accepted, and whole."


def test_the_options_of_a_schema_count(page):
    put(page, "grammar", '{"type": "integer"}')
    write(page, "text", "1e3")
    assert shown(page, "reading").startswith("Refused")
    of(page, "any-numbers").click()
    assert shown(page, "reading") == "Accepted, and whole."


def test_a_click_appends_a_token_and_the_completion_ends_the_text(page):
    put(page, "grammar", SCHEMA)
    put(page, "text", '{"name": "Ada", "status": "')
    panel = of(page, "cursor").text
    assert "5 of 2,048 tokens allowed after 10 tokens" in panel
    assert '"new", "paid" or "shipped"' in panel
    chip = page.find_element(By.XPATH, "//ul[@id='allowed']//button[text()='paid']")
    chip.click()
    idle(page)
    assert value(page, "text") == '{"name": "Ada", "status": "paid'
    assert "Forced next" in of(page, "cursor").text
    page.find_element(By.ID, "complete").click()
    idle(page)
    assert value(page, "text") == '{"name": "Ada", "status": "paid"}'
    assert shown(page, "reading") == "Accepted, and whole."
    assert "the text may end here" in of(page, "cursor").text


def test_the_panel_follows_the_cursor(page):
    put(page, "grammar", SCHEMA)
    put(page, "text", '{"name": "Ada", "status": "paid"}')
    page.execute_script("Editors.text.setCursor({line: 0, ch: 2})")
    idle(page)
    panel = of(page, "cursor").text
    assert "allowed after 1 token" in panel
    assert 'name":' in panel
    chip = page.find_element(By.XPATH, "//div[@id='cursor']//button[text()='name\":']")
    chip.click()
    idle(page)
    # At the cursor, and not at the end.
    assert value(page, "text").startswith('{"name":name"')


def test_random_documents_are_offered_and_used(page):
    put(page, "grammar", SCHEMA)
    of(page, "ten").click()
    idle(page)
    rows = page.find_elements(By.CSS_SELECTOR, "#documents tbody tr")
    assert len(rows) == 10
    first = rows[0].find_element(By.TAG_NAME, "button")
    text = first.text
    first.click()
    idle(page)
    assert value(page, "text") == text
    assert shown(page, "reading") == "Accepted, and whole."
    assert of(page, "seed").get_attribute("value") == "1"


def test_the_cost_of_a_text_is_shown(page):
    put(page, "grammar", SCHEMA)
    put(page, "text", '{"name": "Ada", "status": "paid"}')
    cells = [cell.text for cell in page.find_elements(By.CSS_SELECTOR, "#cost td")]
    drawn = coloured(page)
    forced = sum(kind == "forced" for _, kind, _ in drawn)
    assert cells[0] == str(len(drawn))
    assert cells[1].startswith(f"{forced} (")
    assert cells[2] == f"{len(drawn) - forced}, {forced} saved"


def test_the_model_in_the_box_generates_from_the_cursor(page):
    put(page, "grammar", SCHEMA)
    put(page, "text", '{"name": "Ada", "status": "')
    of(page, "prompt").send_keys("Ada has paid.")
    of(page, "generate").click()
    idle(page)
    written = json.loads(value(page, "text"))
    assert written["name"] == "Ada"
    kinds = {kind: colour for _, kind, colour in coloured(page)}
    assert set(kinds) == {"accepted", "forced", "healed"}
    assert len(set(kinds.values())) == 3
    assert "forward pass" in of(page, "generated").text
    assert not of(page, "stop").is_enabled()
    # An edit makes it a text of the person, whose tokens are the tokenizer's.
    of(page, "text").find_element(By.TAG_NAME, "textarea").send_keys(" ")
    idle(page)
    assert "healed" not in {kind for _, kind, _ in coloured(page)}


def test_other_engines_are_compared(page):
    put(page, "grammar", SCHEMA)
    put(page, "text", '{"name": "Ada", "status": "')
    of(page, "compare").click()
    idle(page)
    rows = page.find_elements(By.CSS_SELECTOR, "#comparison tbody tr")
    assert [row.text.split()[0] for row in rows] == ["ffwd", "llguidance", "xgrammar"]
    for row in rows:
        cells = [cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
        assert cells[:2] == ["accepted", "no"]
        assert int(cells[2]) > 0
    Select(of(page, "tokenizer")).select_by_value("bytes")
    of(page, "compare").click()
    idle(page)
    assert "absent: it needs a tokenizer.json" in of(page, "comparison").text


def test_a_state_is_saved_and_opened(page, downloads, tmp_path):
    put(page, "grammar", SCHEMA)
    of(page, "lenient").click()
    put(page, "text", '{"name": "Ünï 😀')
    of(page, "prompt").clear()
    of(page, "prompt").send_keys("a prompt")
    idle(page)
    of(page, "save").click()
    WebDriverWait(page, 30).until(lambda _: (downloads / "play.ffwd.json").exists())
    text = (downloads / "play.ffwd.json").read_text(encoding="utf-8")
    (downloads / "play.ffwd.json").unlink()
    saved = share.load(text)
    assert saved["text"] == '{"name": "Ünï 😀'
    assert saved["cursor"] == len(saved["text"]) + 1
    assert saved["grammar"]["options"]["policy"] == "lenient"
    path = tmp_path / "a.ffwd.json"
    path.write_text(text, encoding="utf-8")
    put(page, "text", "")
    put(page, "grammar", "{}")
    of(page, "lenient").click()
    of(page, "open").send_keys(str(path))
    idle(page)
    assert value(page, "grammar") == SCHEMA
    assert value(page, "text") == '{"name": "Ünï 😀'
    assert of(page, "lenient").is_selected()
    assert of(page, "prompt").get_attribute("value") == "a prompt"
    # A bad file says what is wrong, and changes nothing.
    path.write_text('{"ffwd_play": 1, "state": {"text": 3}}', encoding="utf-8")
    of(page, "open").send_keys(str(path))
    assert "`/state` lacks `grammar`" in shown(page, "message")
    assert value(page, "grammar") == SCHEMA


def test_a_tokenizer_is_loaded_by_its_path(page, tmp_path):
    of(page, "path").send_keys("/no/such/place", Keys.ENTER)
    assert "no file or directory" in shown(page, "message")
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    source = Path(ffwd.model.path()) / "tokenizer.json"
    (folder / "tokenizer.json").write_bytes(source.read_bytes())
    of(page, "path").clear()
    of(page, "path").send_keys(str(folder))
    of(page, "load").click()
    assert f"Loaded {folder}" in shown(page, "message")
    assert of(page, "tokenizer").get_attribute("value") == str(folder)
    # A file of a stranger chooses none.
    path = tmp_path / "a.ffwd.json"
    path.write_text(share.dump(state(tokenizer="/elsewhere")), encoding="utf-8")
    of(page, "open").send_keys(str(path))
    assert "Its tokenizer is /elsewhere: load it" in shown(page, "message")
    assert of(page, "tokenizer").get_attribute("value") == str(folder)


def test_the_keyboard_reaches_everything(page):
    """Tab leaves the editors; a chosen token leaves the focus in the list."""
    put(page, "grammar", SCHEMA)
    put(page, "text", '{"name": "Ada", "status": "')
    # The next element after the one that was clicked comes first.
    page.find_element(By.TAG_NAME, "h1").click()
    reached = []
    for _ in range(60):
        ActionChains(page).send_keys(Keys.TAB).perform()
        found = page.execute_script(
            "const e = document.activeElement; const box = e.closest('.editor');"
            "return [box ? box.id : e.id || e.dataset.token || e.tagName,"
            " getComputedStyle(box || (e.type === 'file' ? e.parentElement : e)).outlineStyle]"
        )
        if found[0] in ("BODY", "tokenizer") and reached:
            break
        reached.append(found)
    names = [name for name, _ in reached]
    expected = [
        "tokenizer", "path", "load", "save", "open", "language", "whitespace", "any-order",
        "any-numbers", "any-escapes", "lenient", "grammar", "text", "complete", "ten", "seed",
        "prompt", "max-tokens", "temperature", "generate", "compare",
    ]  # fmt: skip
    assert [name for name in names if name in expected] == expected
    assert all(style != "none" for _, style in reached), reached
    chip = page.find_element(By.XPATH, "//ul[@id='allowed']//button[text()='paid']")
    page.execute_script("arguments[0].focus()", chip)
    ActionChains(page).send_keys(Keys.ENTER).perform()
    idle(page)
    assert value(page, "text").endswith('"paid')
    assert page.execute_script("return document.activeElement.closest('#cursor') !== null")
    ActionChains(page).send_keys(Keys.ENTER).perform()
    idle(page)
    assert len(value(page, "text")) > len('{"name": "Ada", "status": "paid')


def test_hostile_content_is_text(page):
    schema = json.dumps({NASTY: 1, "properties": {NASTY: {"enum": [NASTY]}}, "required": [NASTY]})
    put(page, "grammar", schema)
    put(page, "text", json.dumps({NASTY: ""})[:-2])
    page.find_element(By.CSS_SELECTOR, "#fidelity summary").click()
    of(page, "ten").click()
    idle(page)
    assert NASTY.replace(" ", "␣") in of(page, "cursor").text
    assert NASTY in of(page, "fidelity").text
    assert not page.find_elements(By.TAG_NAME, "img")
    put(page, "grammar", json.dumps({"$ref": f"https://example.com/{NASTY}"}))
    assert NASTY in of(page, "problems").text
    assert not page.find_elements(By.TAG_NAME, "img")


def test_line_ends_and_unusual_characters_are_kept(page):
    text = '{"name": "a\r\tb\u2028\u0000é😀'
    put(page, "text", text)
    assert value(page, "text") == text
    assert page.execute_script("return document.body.dataset.idle") == "yes"
    assert "Refused" in shown(page, "reading")


def large():
    """A schema of a megabyte."""
    properties = {
        f"k{i}": {"type": "string", "description": "x" * 20, "pattern": "^[a-z]{1,9}$"}
        for i in range(10_000)
    }
    return json.dumps({"type": "object", "properties": properties, "required": ["k1"]}, indent=1)


HOSTILE = json.dumps(
    {"allOf": [{"anyOf": [{"pattern": f"a{i}"}, {"pattern": f"b{i}"}]} for i in range(14)]}
)


def alive(browser):
    """Type beside an unfinished request: the page takes it at once."""
    browser.execute_script("Editors.text.focus()")
    ActionChains(browser).send_keys("[").perform()
    return value(browser, "text").endswith("[")


@pytest.mark.parametrize("kind", ["large", "one line", "hostile", "deep"])
def test_large_and_hostile_schemas_leave_the_page_usable(page, kind):
    texts = {
        "large": large(),
        "one line": json.dumps(json.loads(large())),
        "hostile": HOSTILE,
        "deep": "[" * 100_000,
    }
    text = texts[kind]
    assert kind not in ("large", "one line") or len(text) > 900_000
    page.execute_script("Editors.text.setValue('')")
    page.execute_script("Editors.grammar.setValue(arguments[0])", text)
    assert alive(page)
    idle(page)
    verdict = of(page, "verdict").text
    if kind in ("large", "one line"):
        assert verdict.startswith("The grammar is good")
        assert "10,000 ignored" in page.find_element(By.CSS_SELECTOR, "#fidelity summary").text
        assert shown(page, "reading").startswith("Refused at byte 0")
    else:
        assert verdict == "The grammar is refused."
        assert of(page, "problems").text
    put(page, "grammar", SCHEMA)
    assert of(page, "verdict").text.startswith("The grammar is good")


def test_two_tabs_do_not_disturb_each_other(page, server):
    put(page, "text", '{"name": "A')
    first = page.current_window_handle
    page.switch_to.new_window("tab")
    try:
        page.get(server.address)
        idle(page)
        put(page, "grammar", '{"type": "integer"}')
        put(page, "text", "12")
        assert shown(page, "reading") == "Accepted, and whole."
        page.switch_to.window(first)
        assert value(page, "text") == '{"name": "A'
        put(page, "text", '{"name": "Ab')
        assert shown(page, "reading") == "Accepted so far."
        page.switch_to.window(page.window_handles[1])
        assert shown(page, "reading") == "Accepted, and whole."
    finally:
        page.switch_to.window(page.window_handles[1])
        page.close()
        page.switch_to.window(first)


def test_a_server_that_ended_is_reported(browser, tmp_path):
    words = [sys.executable, "-m", "ffwd.cli", "play", "--no-open"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        resize(browser, 1280)
        browser.get(process.stdout.readline().strip())
        idle(browser)
        process.kill()
    put(browser, "text", "{")
    assert "ffwd play does not answer" in of(browser, "problems").text
    assert of(browser, "verdict").text == of(browser, "cursor").text == "Nothing can be shown."
    assert value(browser, "text") == "{"
    # The browser itself notes the refused connection.
    assert all("ERR_CONNECTION_REFUSED" in entry["message"] for entry in browser.get_log("browser"))


@pytest.mark.parametrize(("name", "width"), [("light", 1280), ("dark", 1280), ("narrow", 390)])
def test_pages_of_all_kinds_fit_and_are_kept(page, name, width):
    resize(page, width, "dark" if name == "dark" else "light")
    put(page, "text", '{"name": "Ada", "status": "')
    of(page, "ten").click()
    idle(page)
    # However long a time or a name is, the page does not scroll sideways.
    page.execute_script("document.querySelector('#cost td').textContent = '9'.repeat(99)")
    page.execute_script("document.querySelector('#tokenizer option').textContent = '/x'.repeat(99)")
    page.execute_script("document.getElementById('message').textContent = '/x'.repeat(99)")
    across = page.execute_script("return document.documentElement.scrollWidth")
    assert across == width
    again = "Editors.text.replaceSelection(' '); Editors.text.undo()"
    page.execute_script(again)
    idle(page)
    paper = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (name != "dark")
    left, right = (of(page, name).rect for name in ("left", "right"))
    assert (right["y"] > left["y"]) == (width == 390)
    assert len(screenshot(page, SHOTS / f"{name}.png", width)) > 20_000


def test_a_file_of_the_command_is_what_the_page_shows(browser):
    given = Session(state("a1", grammar='root ::= "a" [0-9]', language="gbnf", seed=5))
    with served(given) as server:
        resize(browser, 1280)
        browser.get(server.address)
        idle(browser)
        assert of(browser, "language").get_attribute("value") == "gbnf"
        assert value(browser, "text") == "a1"
        assert of(browser, "seed").get_attribute("value") == "5"
        assert not of(browser, "whitespace").is_displayed()
        assert shown(browser, "reading") == "Accepted, and whole."


# The schema of the example, with a misspelt keyword.
OF_THE_PICTURE = """{
  "type": "object",
  "properties": {
    "name": {"type": "string", "pattern": "^[A-Z][a-z]{1,9}$"},
    "status": {"enum": ["new", "paid", "shipped"]},
    "items": {
      "type": "array", "maxItem": 3,
      "items": {"type": "integer", "minimum": 1}
    }
  },
  "required": ["name", "status"],
  "additionalProperties": false
}
"""


@pytest.mark.parametrize(("name", "scheme"), [("play", "light"), ("play_dark", "dark")])
def test_the_pictures_of_the_documents(page, name, scheme):
    """`docs/play.png` and `docs/play_dark.png` are what this leaves in `build/play/`."""
    begun = '{"name": "Ada", "status": "'
    put(page, "grammar", OF_THE_PICTURE)
    put(page, "text", begun)
    of(page, "prompt").send_keys("Ada has paid.")
    of(page, "generate").click()
    idle(page)
    assert {kind for _, kind, _ in coloured(page)} == {"accepted", "forced", "healed"}
    page.execute_script("Editors.text.setCursor({line: 0, ch: arguments[0]})", len(begun))
    of(page, "ten").click()
    of(page, "compare").click()
    idle(page)
    assert "did you mean `maxItems`?" in of(page, "problems").text
    assert len(page.find_elements(By.CSS_SELECTOR, "#comparison tbody tr")) == 3
    resize(page, 1180, scheme)
    image = screenshot(page, SHOTS / f"{name}.png", 1180)
    documented = (BUILD.parent / f"docs/{name}.png").read_bytes()
    # Its width, of the size that a PNG begins with.
    assert documented[16:20] == image[16:20]
