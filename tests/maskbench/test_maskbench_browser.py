"""The HTML report in a real browser: what it drew, what it says under the pointer, how it sorts.

Debian's `chromium` and `chromium-driver` are enough; nothing is fetched. Screenshots stay in
`build/report/`.
"""

import pytest
from browsers import BUILD, needs_browser, resize, screenshot, started
from maskbench_runs import many, record, run_of
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from maskbench.report.html import page
from maskbench.verdicts import Verdict

SHOTS = BUILD / "report"
NASTY = "<img src=x onerror=alert(1)>"

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser():
    with started() as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page of 300 schemas, one with a name that would be an element."""
    found = many(300)
    found["ffwd"].records[0] = record(0, id=NASTY, documents=[[0.5, 700.0]], first=9e5)
    found["peer"].records[0] = record(0, id=NASTY, documents=[[2.0, 9000.0]], first=9e5)
    found["peer"].records[11] = record(11, Verdict.TIMED_OUT, id="schema-11")
    earlier = many(300, seed=1)
    earlier["ffwd"].records[5] = record(5, Verdict.REFUSED, id="schema-5")
    path = tmp_path_factory.mktemp("report") / "report.html"
    text = page([run_of(found)], run_of(earlier, "earlier.json"))
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def opened(browser, report):
    resize(browser, 1280)
    browser.get_log("browser")
    browser.get(report.as_uri())
    yield browser
    assert browser.get_log("browser") == []


def test_plots_drew_what_they_should(opened):
    """Lines have a length, and every point lies within its box."""
    curves = opened.execute_script(
        "return [...document.querySelectorAll('svg[data-curves]')].map(svg => {"
        " const box = svg.querySelector('.grid').getBBox();"
        " return [svg.dataset.curves, [...svg.querySelectorAll('.curve')].map(path => {"
        "  const b = path.getBBox();"
        "  const style = getComputedStyle(path);"
        "  return {length: path.getTotalLength(), stroke: style.stroke,"
        "   inside: b.x >= box.x - 1 && b.y >= box.y - 1 &&"
        "    b.x + b.width <= box.x + box.width + 20 && b.y + b.height <= box.y + box.height + 30};"
        " })]; })"
    )
    assert {key for key, _ in curves} == {
        "r0-mask_common", "r0-mask_own", "r0-first_mask_common", "r0-first_mask_own"
    }  # fmt: skip
    for _, lines in curves:
        assert len(lines) == 2
        assert all(line["length"] > 400 and line["inside"] for line in lines)
        # The colours come from the style sheet, and differ.
        assert len({line["stroke"] for line in lines}) == 2
        assert not {"none", ""} & {line["stroke"] for line in lines}
    dots = opened.execute_script(
        "return [...document.querySelectorAll('svg[data-scatter]')].map(svg => {"
        " const view = svg.viewBox.baseVal;"
        " const paths = [...svg.querySelectorAll('.dots')].map(path => path.getAttribute('d'));"
        " return paths.join('').split('M').slice(1).map(point => {"
        "  const [x, y] = point.split(/[ h]/).map(Number);"
        "  return x > 0 && x < view.width && y > 0 && y < view.height; }); })"
    )
    assert [len(inside) for inside in dots] == [256, 256]
    assert all(all(inside) for inside in dots)


def centre(browser, element):
    """Away from what sticks to the upper edge."""
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)


def test_the_pointer_shows_names_and_times(opened):
    svg = opened.find_element(By.CSS_SELECTOR, "svg[data-scatter]")
    centre(opened, svg)
    # From the middle of the picture to its first point.
    dx, dy = opened.execute_script(
        "const svg = arguments[0], view = svg.viewBox.baseVal;"
        "const scale = svg.getBoundingClientRect().width / view.width;"
        "const [x, y] = svg.querySelector('.dots').getAttribute('d').slice(1).split(/[ h]/);"
        "return [(x - view.width / 2) * scale, (y - view.height / 2) * scale];",
        svg,
    )
    tip = opened.find_element(By.ID, "tip")
    assert not tip.is_displayed()
    ActionChains(opened).move_to_element_with_offset(svg, round(dx), round(dy)).perform()
    lines = tip.text.splitlines()
    assert lines[0] == NASTY
    assert lines[1:] == ["ffwd: 350 µs", "peer: 4.5 ms", "peer takes 12.9 times as long"]
    assert not opened.find_elements(By.CSS_SELECTOR, "#tip img")
    curve = opened.find_element(By.CSS_SELECTOR, "svg[data-curves]")
    ActionChains(opened).move_to_element(curve).perform()
    assert tip.text.startswith("percentile ")
    assert "ffwd: " in tip.text
    assert "peer: " in tip.text
    ActionChains(opened).move_to_element(opened.find_element(By.TAG_NAME, "h1")).perform()
    assert not tip.is_displayed()


def test_plots_answer_to_keys(opened):
    svg = opened.find_element(By.CSS_SELECTOR, "svg[data-scatter]")
    svg.send_keys(Keys.ARROW_RIGHT)
    first = opened.find_element(By.ID, "tip").text
    svg.send_keys(Keys.ARROW_RIGHT)
    assert first
    assert opened.find_element(By.ID, "tip").text != first
    svg.send_keys(Keys.ESCAPE)
    assert not opened.find_element(By.ID, "tip").is_displayed()


def cells(browser, table, number):
    return [
        row.find_elements(By.XPATH, "./*")[number].text
        for row in browser.find_elements(By.CSS_SELECTOR, f"#{table} tbody tr")
    ]


def test_headers_sort_their_table(opened):
    """By value and not by text, with the mouse and by keys, and what is missing comes last."""
    table = "r0-table-slowest_first_masks_0"
    centre(opened, opened.find_element(By.ID, table))
    buttons = opened.find_elements(By.CSS_SELECTOR, f"#{table} thead button")
    assert cells(opened, table, 0) == [str(rank) for rank in range(1, 21)]
    assert cells(opened, table, 2)[0] == NASTY
    buttons[1].click()
    times = [float(text.replace(",", "")) for text in cells(opened, table, 1)]
    assert times == sorted(times)
    heads = opened.find_elements(By.CSS_SELECTOR, f"#{table} thead th")
    assert heads[1].get_attribute("aria-sort") == "ascending"
    buttons[1].send_keys(Keys.ENTER)
    assert heads[1].get_attribute("aria-sort") == "descending"
    assert cells(opened, table, 0) == [str(rank) for rank in range(1, 21)]
    buttons[0].send_keys(Keys.SPACE)
    assert heads[1].get_attribute("aria-sort") is None
    forced = "r0-table-forced_own"
    button = opened.find_elements(By.CSS_SELECTOR, f"#{forced} thead button")[1]
    centre(opened, button)
    button.click()
    assert set(cells(opened, forced, 1)) == {"n/a"}


def test_long_lists_are_filtered(opened):
    figure = "#r0-table-differences"
    opened.find_element(By.CSS_SELECTOR, f"{figure} input").send_keys("timed")
    rows = opened.find_elements(By.CSS_SELECTOR, f"{figure} tbody tr")
    assert [row.text for row in rows if row.is_displayed()] == ["schema-11 passed timed out"]
    assert opened.find_element(By.CSS_SELECTOR, f"{figure} output").text == f"1 of {len(rows)}"


@pytest.mark.parametrize(("name", "width"), [("light", 1280), ("dark", 1280), ("narrow", 390)])
def test_pages_of_all_kinds_fit_and_are_kept(opened, name, width):
    resize(opened, width, "dark" if name == "dark" else "light")
    across = opened.execute_script("return document.documentElement.scrollWidth")
    assert across == width
    paper = opened.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (name != "dark")
    assert len(screenshot(opened, SHOTS / f"{name}.png", width)) > 50_000
