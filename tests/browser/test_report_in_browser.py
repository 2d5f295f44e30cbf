"""report.html in a real browser: light and dark, by keyboard, on paper, and with a large plan."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import pytest
from axe_core_python.selenium import Axe
from large_plans import HOSTILE, hostile, large
from plan_documents import typed
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from planner.report import html

pytestmark = pytest.mark.browser

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A real, headless Chromium with its own profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    environment = {**os.environ, "SE_OFFLINE": "true"}
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"), env=environment)
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Writes a plan's files and returns the page's address."""

    def write(name, plan) -> str:
        folder = tmp_path_factory.mktemp(name)
        for path, content in html.files(typed(plan)).items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(content)
        return (folder / "report.html").as_uri()

    return write


PLAN = large(6, 3, 12, 5, 4)


@pytest.fixture(scope="module")
def address(pages) -> str:
    """The address of the page for a plan of nine brokers and twelve topics."""
    return pages("nine", PLAN)


@pytest.fixture
def opened(browser, address):
    """The page, just opened on a light screen."""
    media(browser, "screen", "light")
    browser.set_window_size(1280, 900)
    browser.get(address)
    return browser


def media(browser, kind: str, scheme: str) -> None:
    """Set the media type and color scheme that the page sees."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": features})


def said(browser) -> list[str]:
    """The messages in the browser's console since the last call."""
    return [entry["message"] for entry in browser.get_log("browser")]


def test_it_opens_in_silence_and_asks_for_nothing(opened):
    """The page opens without an error, a warning or a request."""
    assert [] == said(opened)
    assert [] == opened.execute_script("return performance.getEntriesByType('resource').map(each => each.name)")
    assert "Kafka plan for orders-eu" == opened.title


# Counted by hand from PLAN: in each of 4 batches, any of 6 brokers sends and each of 3 brokers receives.
MARKS = {
    "front": len(PLAN["pareto"]) + 1,
    "brokers": 9 * 3 * 2,
    "racks": 1 * 3 * 2,
    "movement": len({(row["leader_before"], row["replicas"][0]) for row in PLAN["partitions"]}),
    "batches": 4
    + len(
        {
            (at, side, broker)
            for at, batch in enumerate(PLAN["batches"])
            for step in batch["partitions"]
            for side, broker in (("out", step["replicas_before"][0]), ("in", step["replicas"][0]))
        }
    ),
    "held": 9,
}


@pytest.mark.parametrize("name", MARKS)
def test_every_plot_is_drawn_with_its_marks(opened, name):
    """Each plot has as many marks as the plan has. All are inside the plot, and visible unless their value is 0."""
    found = opened.execute_script(
        """const plot = document.getElementById('plot-' + arguments[0]), box = plot.getBoundingClientRect();
        return [...plot.querySelectorAll('.mark')].map(mark => {
          const own = mark.getBoundingClientRect();
          const inside = own.left >= box.left && own.right <= box.right &&
            own.top >= box.top && own.bottom <= box.bottom;
          return [mark.querySelector('title').textContent, inside, Math.max(own.width, own.height) >= 1];
        })""",
        name,
    )

    assert MARKS[name] == len(found)
    assert [] == [title for title, inside, _ in found if not inside]
    assert [] == [title for title, _, seen in found if not seen and ": 0 " not in title]


def test_no_text_of_a_plot_is_cut_off_or_on_another(opened):
    """Labels stay inside their plot, and no two labels of a plot overlap."""
    found = opened.execute_script(
        """const wrong = [];
        for (const plot of document.querySelectorAll('figure svg')) {
          const box = plot.getBoundingClientRect();
          const texts = [...plot.querySelectorAll("text")].map(one => [one.textContent, one.getBoundingClientRect()]);
          for (const [text, own] of texts)
            if (own.left < box.left || own.right > box.right || own.top < box.top || own.bottom > box.bottom)
              wrong.push([plot.id, 'outside', text]);
          texts.forEach(([text, one], at) => { for (const [other, two] of texts.slice(at + 1)) {
            const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
            const along = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
            if (across > 1 && along > 4) wrong.push([plot.id, text, other]);
          }});
        }
        return wrong"""
    )

    assert [] == found


def topics(browser) -> list[str]:
    """The shown names, from top to bottom."""
    return browser.execute_script(
        "return [...document.querySelectorAll('#topics-table tbody tr:not([hidden]) th')].map(each => each.textContent)"
    )


def tab_to(browser, wanted: str) -> None:
    """Press Tab until the selected element has the focus, and assert that the focus is visible."""
    for _ in range(60):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if browser.execute_script("return document.activeElement.matches(arguments[0])", wanted):
            break
    outline = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert (True, "solid") == (
        browser.execute_script("return document.activeElement.matches(arguments[0])", wanted),
        outline,
    )


def test_topics_are_searched_by_keyboard(opened):
    """Typed text filters the topics, and the count is shown. After clearing it, all topics are back."""
    tab_to(opened, "#topics-query")
    opened.switch_to.active_element.send_keys("PIC-00007")
    assert ["topic-00007"] == topics(opened)
    assert "1 of 12 topics" == opened.find_element(By.ID, "topics-status").text

    opened.switch_to.active_element.send_keys(Keys.CONTROL, "a")
    opened.switch_to.active_element.send_keys(Keys.DELETE)
    assert 12 == len(topics(opened))


def test_moves_are_found_by_broker(opened):
    """A number finds brokers and partitions with exactly this id. No id of the plan contains 99."""
    query = opened.find_element(By.ID, "moves-query")
    query.send_keys("9")
    at_nine = sum(9 in (*row["replicas_before"], *row["replicas"], row["partition"]) for row in PLAN["partitions"])
    assert f"{at_nine} of 60 partitions" == opened.find_element(By.ID, "moves-status").text

    query.send_keys(Keys.BACKSPACE, "99")
    assert "0 of 60 partitions" == opened.find_element(By.ID, "moves-status").text


@pytest.mark.parametrize("key", [Keys.ENTER, Keys.SPACE], ids=["enter", "space"])
def test_topics_are_sorted_by_keyboard(opened, key):
    """The first key press sorts with the largest number first, the second reverses it. The head says which."""
    names = [f"topic-{number:05}" for number in range(12)]
    assert names[::-1] == topics(opened)

    tab_to(opened, "#topics-table th:last-child button")
    head = opened.find_element(By.CSS_SELECTOR, "#topics-table th:last-child")
    opened.switch_to.active_element.send_keys(key)
    assert ("descending", names[::-1]) == (head.get_attribute("aria-sort"), topics(opened))
    opened.switch_to.active_element.send_keys(key)
    assert ("ascending", names) == (head.get_attribute("aria-sort"), topics(opened))


def test_another_column_takes_over(opened):
    """Only one column is marked as sorted. Names sort from a to z first."""
    heads = opened.find_elements(By.CSS_SELECTOR, "#topics-table thead button")
    heads[-1].click()
    heads[0].click()

    assert [f"topic-{number:05}" for number in range(12)] == topics(opened)
    assert ["Topic"] == [head.text.split()[0] for head in opened.find_elements(By.CSS_SELECTOR, "[aria-sort]")]


def test_folded_numbers_open_by_keyboard(opened):
    """Enter opens each plot's table."""
    tab_to(opened, "#movement summary")
    opened.switch_to.active_element.send_keys(Keys.ENTER)

    assert opened.find_element(By.ID, "movement-table").is_displayed()


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_axe_finds_nothing_serious(opened, width):
    """axe-core finds no serious accessibility fault at the widths of a phone, a tablet and a desktop."""
    opened.set_window_rect(width=width, height=900)
    found = Axe().run(opened)["violations"]

    assert [] == [
        (each["id"], [node["html"][:200] for node in each["nodes"][:3]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def test_a_screen_reader_finds_names_on_everything(opened):
    """For assistive technology, plots are named images, and tables, fields and regions have names."""
    nodes = opened.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    seen = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    images = [name for role, name in seen if role in ("image", "img")]

    assert [
        "Today and after the plan, by rack",
        "Today and after the plan, by broker",
        "What each pair of brokers copies",
        "Batches over time, and what each broker copies",
        "What each broker stores while the plan runs",
        "What copying less or more would give",
    ] == images
    named = ("table", "region", "button", "searchbox", "link", "heading", "columnheader")
    nameless = [role for role, name in seen if role in named and not name]
    # Two tables have a column whose cells need no header.
    assert nameless.count("columnheader") == len(nameless)
    assert {"main", "navigation", "banner", "contentinfo"} <= {role for role, _ in seen}


CONTRASTS = """
const parse = color => color.match(/[\\d.]+/g).map(Number);
const light = color => { const [r, g, b] = color.map(each => (each /= 255) <= 0.04045 ? each / 12.92 :
  ((each + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const contrast = (one, two) => { const [a, b] = [light(one), light(two)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05); };
const page = parse(getComputedStyle(document.body).backgroundColor).slice(0, 3);
const worst = (elements, key) => Math.min(...elements.map(each =>
  contrast(parse(getComputedStyle(each)[key]).slice(0, 3), page)));
const plotPages = [...document.querySelectorAll('figure rect.fill-page')].map(each =>
  parse(getComputedStyle(each).fill));
const over = mark => { const style = getComputedStyle(mark), alpha = Number(style.opacity) * Number(style.fillOpacity);
  return parse(style.fill).slice(0, 3).map((each, at) => alpha * each + (1 - alpha) * page[at]); };
const label = parse(getComputedStyle(document.querySelector('#plot-movement text.fill-text')).fill);
return {
  page: page.join(),
  plots: [...new Set(plotPages.map(String))],
  text: worst([...document.querySelectorAll('body *:not(svg *, script, style)')].filter(each => each.checkVisibility()),
    'color'),
  labels: worst([...document.querySelectorAll('figure text')].filter(each => each.textContent !== '■'), 'fill'),
  cells: Math.min(...[...document.querySelectorAll('#plot-movement .mark')].map(each => contrast(label, over(each)))),
  bars: worst([...document.querySelectorAll('#plot-brokers .mark')], 'fill'),
};
"""


@pytest.mark.parametrize(("scheme", "page"), [("light", "255,255,255"), ("dark", "13,17,23")])
def test_light_and_dark_are_readable(opened, scheme, page):
    """WCAG contrasts in the browser: at least 4.5 for text, also in plots and on cells, and 3 for bars."""
    media(opened, "screen", scheme)
    found = opened.execute_script(CONTRASTS)

    assert (page, [page]) == (found["page"], [each.replace(" ", "") for each in found["plots"]])
    assert min(found["text"], found["labels"], found["cells"]) >= 4.5, found
    assert found["bars"] >= 3, found


def test_paper_is_white_and_holds_everything(opened):
    """Printed from a dark screen, the page is dark on white, without search fields, and no plot is too wide."""
    media(opened, "print", "dark")
    opened.set_window_size(794, 1123)
    found = opened.execute_script(CONTRASTS)

    assert "255,255,255" == found["page"]
    assert found["text"] >= 4.5
    assert not opened.find_element(By.CSS_SELECTOR, "#topics .search").is_displayed()
    assert [] == opened.execute_script(
        "return [...document.querySelectorAll('figure svg')].filter(each => each.getBoundingClientRect().right >"
        " document.documentElement.clientWidth).map(each => each.id)"
    )
    pdf = base64.b64decode(opened.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert b"%PDF" == pdf[:4]


def test_a_telephone_scrolls_plots_and_not_the_page(opened):
    """On a phone, wide parts scroll instead of the page, also by keyboard."""
    opened.set_window_size(500, 800)

    assert opened.execute_script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert [] == opened.execute_script(
        "return [...document.querySelectorAll('.scroll')].filter(each => each.tabIndex !== 0).map(each => each.id)"
    )


def test_a_telephone_shows_plots_that_can_be_read(opened):
    """On a phone, plots keep their size, and first columns and a long table's head stay while the rest scrolls."""
    opened.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        scales = opened.execute_script(
            "return [...document.querySelectorAll('figure svg')].map(each =>"
            " each.getBoundingClientRect().width / each.viewBox.baseVal.width)"
        )
        lefts = opened.execute_script(
            """const scroll = document.querySelector('#every-term .scroll'), cell = scroll.querySelector('tbody th');
            const before = cell.getBoundingClientRect().left; scroll.scrollLeft = 200;
            return [before, cell.getBoundingClientRect().left, scroll.scrollLeft]"""
        )
        tops = opened.execute_script(
            """const scroll = document.querySelector('#moves .scroll'), head = scroll.querySelector('thead th');
            scroll.scrollTop = 400; return [head.getBoundingClientRect().top - scroll.getBoundingClientRect().top]"""
        )
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    assert min(scales) >= 0.9
    assert (lefts[0], 200) == (lefts[1], lefts[2])
    assert [0] == [round(top) for top in tops]


def test_hostile_names_do_nothing(browser, pages):
    """Scripts in names don't run, nothing is requested, and names are shown as they are."""
    media(browser, "screen", "light")
    browser.get(pages("hostile", hostile()))

    assert [] == said(browser)
    assert [] == browser.execute_script("return performance.getEntriesByType('resource').map(each => each.name)")
    assert browser.find_element(By.TAG_NAME, "h1").text.startswith(HOSTILE[:50])


def test_a_million_replicas_open_and_can_be_searched(browser, pages):
    """The page of 336,000 partitions with three replicas on 150 brokers is small: in bytes, and in nodes drawn."""
    media(browser, "screen", "light")
    large_page = pages("million", large(120, 30, 6_000, 56, 200))
    size_bytes = Path(large_page.removeprefix("file://")).stat().st_size
    browser.get(large_page)
    drawn = browser.execute_script("return document.getElementsByTagName('*').length")

    # 6,000 topics are about 90,000 elements. With a row for each partition, a browser would need minutes.
    assert 6_000 < drawn < 100_000
    assert size_bytes < 4_000_000
    assert [] == said(browser)
    browser.find_element(By.ID, "topics-query").send_keys("05999")
    assert ["topic-05999"] == topics(browser)
