"""The picture in a real browser: what it draws, what it says of a token, and that text stays text.

Debian's `chromium` and `chromium-driver` are enough; nothing is fetched. Screenshots stay in
`build/view/`.
"""

import json

import pytest
from browsers import BUILD, needs_browser, resize, screenshot, started
from click.testing import CliRunner
from recordings import CONTROL, NASTY, generated, hostile
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

import ffwd.model
from ffwd.cli.commands import group
from ffwd.cli.demo.ways import tasks

SHOTS = BUILD / "view"

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser():
    with started() as found:
        yield found


def opened(browser, path, width=1280, scheme="light"):
    resize(browser, width, scheme)
    browser.get_log("browser")
    browser.get(path.as_uri())
    return browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("view")
    return {
        "generated": generated().save(folder / "generated.html"),
        "hostile": hostile().save(folder / "hostile.html"),
    }


def token(browser, place):
    return browser.find_element(By.ID, f"token-{place}")


def panel(browser):
    return browser.find_element(By.ID, "panel").text


def test_every_token_is_drawn_in_the_colour_of_its_kind(browser, pages):
    recording = generated()
    opened(browser, pages["generated"])
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('#text .token')].map(span => "
        "[span.textContent, span.classList[1], getComputedStyle(span).backgroundColor])"
    )
    assert [kind for _, kind, _ in drawn] == [step.kind for step in recording.steps]
    assert [text for text, _, _ in drawn[:-1]] == [s.text.decode() for s in recording.steps[:-1]]
    assert drawn[-1][0] == CONTROL
    colours = {(kind, colour) for _, kind, colour in drawn}
    assert len(colours) == len({colour for _, colour in colours}) == 3
    assert browser.get_log("browser") == []


def test_bars_are_as_high_as_the_masks_are_large(browser, pages):
    recording = generated()
    opened(browser, pages["generated"])
    bars = browser.execute_script(
        "return [...document.querySelectorAll('#sizes rect[class^=fill]')]"
        ".map(bar => [bar.getAttribute('class'), bar.getBBox().height])"
    )
    assert [kind for kind, _ in bars] == [f"fill-{step.kind}" for step in recording.steps]
    sizes = [0 if step.allowed is None else step.allowed.count for step in recording.steps]
    heights = [height for _, height in bars]
    by_size = [height for _, height in sorted(zip(sizes, heights, strict=True))]
    assert by_size == sorted(heights)
    assert len(set(heights)) == len({max(size, 1) for size in sizes})
    # Of 264 tokens: a logarithm.
    strings = {h for s, h in zip(sizes, heights, strict=True) if s > 100}
    assert all(90 < height < 120 for height in strings)
    times = "return document.querySelectorAll('#times .fill-model').length"
    assert browser.execute_script(times) == sum(step.time.model > 0 for step in recording.steps)


def test_pointer_click_and_keys_show_what_was_allowed(browser, pages):
    recording = generated()
    opened(browser, pages["generated"])
    chosen = [place for place, step in enumerate(recording.steps) if step.kind == "sampled"]
    step = recording.steps[chosen[0]]
    ActionChains(browser).move_to_element(token(browser, chosen[0])).perform()
    said = panel(browser)
    assert said.startswith(f"{chosen[0] + 1}. {step.text.decode()}")
    assert f"{step.allowed.count} of {recording.vocab_size} tokens" in said
    assert "63%" in said
    assert "Before the mask it gave 50% to what was allowed." in said
    assert f"It would have written {CONTROL} (44%), which was refused." in said
    assert "model and sampling: 3.0 ms" in said
    # A click holds it, and the next one on it lets go.
    token(browser, chosen[1]).click()
    held = panel(browser)
    assert held != said
    ActionChains(browser).move_to_element(token(browser, 0)).perform()
    assert panel(browser) == held
    token(browser, chosen[1]).click()
    ActionChains(browser).move_to_element(token(browser, 0)).perform()
    assert "healed: spells the end of the prompt again; the model chose how" in panel(browser)
    text = browser.find_element(By.ID, "text")
    text.send_keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert panel(browser).startswith("3. ")
    assert "No mask was needed." in panel(browser)
    active = browser.find_element(By.CSS_SELECTOR, "[aria-selected=true]")
    assert active.get_attribute("id") == text.get_attribute("aria-activedescendant") == "token-2"
    text.send_keys(Keys.END)
    assert panel(browser).startswith(f"{len(recording.steps)}. {CONTROL}")
    bar = browser.find_elements(By.CSS_SELECTOR, "#sizes .hit")[chosen[0]]
    bar.click()
    assert panel(browser) == said
    assert browser.get_log("browser") == []


def unfolded(browser):
    """Open all that is folded, and return the rows of the table.

    The page makes the table when it hears that it is open, which is some time after the click.
    """
    for summary in browser.find_elements(By.TAG_NAME, "summary"):
        summary.click()
    found = (By.CSS_SELECTOR, "tbody tr")
    return WebDriverWait(browser, 120, 0.02).until(lambda _: browser.find_elements(*found))


def test_the_prompt_and_the_table_open(browser, pages):
    opened(browser, pages["generated"])
    rows = unfolded(browser)
    assert "AB> " in browser.find_element(By.CSS_SELECTOR, "details .text").text + " "
    assert len(rows) == len(generated().steps)
    assert rows[0].text.split()[2] == "healed"


def test_hostile_content_is_text(browser, pages):
    opened(browser, pages["hostile"])
    assert browser.find_element(By.TAG_NAME, "h1").text == NASTY
    assert NASTY in browser.find_element(By.ID, "text").text
    assert CONTROL in browser.find_element(By.ID, "text").text
    recording = hostile()
    (place,) = (i for i, step in enumerate(recording.steps) if step.text == NASTY.encode())
    token(browser, place).click()
    assert NASTY in panel(browser)
    assert len(unfolded(browser)) == len(recording.steps)
    assert not browser.find_elements(By.TAG_NAME, "img")
    assert len(browser.find_elements(By.TAG_NAME, "script")) == 2
    # An alert would have been an error here, and a refused script in the log.
    assert browser.get_log("browser") == []


def test_it_runs_in_the_frame_that_notebooks_show(browser, pages, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><p>cell</p>{hostile()._repr_html_()}", encoding="utf-8")
    opened(browser, path)
    browser.switch_to.frame(browser.find_element(By.TAG_NAME, "iframe"))
    assert NASTY in browser.find_element(By.ID, "text").text
    assert browser.find_element(By.ID, "allowed").text
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []


@pytest.fixture(scope="module")
def of_the_box(tmp_path_factory):
    """What the model in the box writes where its answer was begun in the middle of a token."""
    folder = tmp_path_factory.mktemp("box")
    (task,) = tasks(1, seed=0)
    messages = [*task.messages, {"role": "assistant", "content": '{"order'}]
    (folder / "messages.json").write_text(json.dumps(messages), encoding="utf-8")
    (folder / "order.json").write_text(json.dumps(task.schema), encoding="utf-8")
    words = [
        "generate", str(ffwd.model.path()), "order.json", "--messages", "messages.json",
        "--view", "order.html", "--whitespace", "compact",
    ]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        # The picture has the name of the schema as it is given.
        patch.chdir(folder)
        done = CliRunner().invoke(group, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(task.right)
    return folder / "order.html"


def test_the_picture_of_the_documents(browser, of_the_box):
    """`docs/view.png` is what this leaves in `build/view/box.png`."""
    opened(browser, of_the_box, 1180)
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('#text .token')].map(span => "
        "[span.textContent, span.classList[1]])"
    )
    # The end of what was begun is given up for the token that the model knows.
    assert ["orderId", "healed"] in drawn
    assert [kind for text, kind in drawn if text == "customer"] == ["forced"]
    chosen = next(place for place, (text, _) in enumerate(drawn) if text == "paid")
    assert drawn[chosen] == ["paid", "sampled"]
    token(browser, chosen).click()
    said = panel(browser)
    assert "sampled: the model chose" in said
    assert "What the model made of it" in said
    image = screenshot(browser, SHOTS / "box.png", 1180)
    documented = (BUILD.parent / "docs/view.png").read_bytes()
    # Its width, of the size that a PNG begins with.
    assert documented[16:20] == image[16:20]


@pytest.fixture(scope="module")
def of_the_readme(tmp_path_factory):
    """The picture of the README's first example."""
    text = (BUILD.parent / "README.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    names = {"__name__": "example"}
    exec(compile(code, "README.md", "exec"), names)
    folder = tmp_path_factory.mktemp("readme")
    schema = names["Person"].model_json_schema()
    (folder / "person.json").write_text(json.dumps(schema), encoding="utf-8")
    (asked,) = names["messages"]
    words = [
        "generate", str(ffwd.model.path()), "person.json", "--prompt", asked["content"],
        "--view", "person.html",
    ]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(group, words)
    assert done.exit_code == 0, done.output
    return names["generation"], folder / "person.html"


def test_the_picture_of_the_readme(browser, of_the_readme):
    """`docs/first_example.png` is what this leaves in `build/view/first_example.png`."""
    generation, page = of_the_readme
    opened(browser, page, 1180)
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('#text .token')].map(span => "
        "[span.textContent, span.classList[1]])"
    )
    assert "".join(text for text, _ in drawn).startswith(generation.text)
    kinds = [kind for _, kind in drawn]
    assert kinds.count("forced") == generation.stats.forced_tokens
    image = screenshot(browser, SHOTS / "first_example.png", 1180)
    documented = (BUILD.parent / "docs/first_example.png").read_bytes()
    assert documented[16:20] == image[16:20]


@pytest.mark.parametrize(("name", "width"), [("light", 1280), ("dark", 1280), ("narrow", 390)])
def test_pictures_of_all_kinds_fit_and_are_kept(browser, pages, name, width):
    opened(browser, pages["generated"], width, "dark" if name == "dark" else "light")
    across = browser.execute_script("return document.documentElement.scrollWidth")
    assert across == width
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (name != "dark")
    assert len(screenshot(browser, SHOTS / f"{name}.png", width)) > 20_000
