"""The page at /ui, in a real browser."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from service import PATIENCE_S, Running, running_service, until

from rewarden.services import keys

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u202eok"

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, without a window."""
    with playwright.sync_playwright() as engine:
        opened = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def opened(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """The page of a service in a tab of its own, where no error and no request to elsewhere may happen."""
    wrong: list[str] = []
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    page.on("request", lambda asked: None if asked.url.startswith((url, "data:")) else wrong.append(asked.url))
    try:
        page.goto(f"{url}/ui")
        yield page
    finally:
        context.close()
    refused = re.compile(r"Failed to load resource: .* status of (401|403)")  # a browser says so of each such answer
    assert [text for text in wrong if not refused.match(text)] == []


def score(url: str, *rollouts: dict[str, Any], recipe: str = "exact") -> None:
    """Ask for verdicts."""
    body = {"recipe": recipe, "rollouts": list(rollouts)}
    httpx.post(f"{url}/v1/score", json=body, timeout=PATIENCE_S).raise_for_status()


def cells(page: Any, table: str) -> list[list[str]]:
    """The rows of a table."""
    return [row.locator("th, td").all_inner_texts() for row in page.locator(f"{table} tbody tr").all()]


def fact(page: Any, name: str) -> str:
    """The number under a name."""
    found = page.locator(".facts div").filter(has=page.get_by_text(name, exact=True)).locator("dd")
    return str(found.inner_text()).partition("\n")[0]


@pytest.fixture(scope="module")
def url() -> Iterator[Running]:
    """A service that has graded: two right, one wrong, some that nobody can judge, under a hostile id; all slow."""
    with running_service(slow_s=0.0) as running:
        score(
            running,
            {"completion": "a", "reference": "a"},
            {"completion": "b", "reference": "b"},
            {"completion": "a", "reference": "b"},
            {"id": HOSTILE, "completion": "a"},
            {"completion": "x", "reference": "x", "scorer": HOSTILE},
            *({"id": f"lost-{row}", "completion": "a"} for row in range(15)),
        )
        score(running, {"completion": "\\boxed{2/4}", "reference": "1/2"}, recipe="math")
        yield running


def test_numbers_are_those_of_the_service(browser: Any, url: Running) -> None:
    """State, totals, legend, the chart's text and the scorers are what /v1/status says."""
    with opened(browser, url) as page:
        page.locator("#t-scorers table").wait_for()
        status = httpx.get(f"{url}/v1/status").json()
        assert page.inner_text("#version") == status["version"]
        assert page.inner_text("#state") == "Ready"
        totals: dict[str, int] = {}
        for bucket in status["buckets"]:
            for outcome, number in bucket["outcomes"].items():
                totals[outcome] = totals.get(outcome, 0) + number
        assert fact(page, "Rollouts, 15 min") == str(sum(totals.values()))
        assert fact(page, "Ungraded, 15 min") == str(totals["ungraded"])
        for outcome, number in totals.items():
            assert page.locator("#legend li", has=page.locator(f".{outcome}")).locator("b").inner_text() == str(number)
            assert f"{number} {outcome}" in page.locator("#chart desc").text_content()
            assert page.locator(f"#chart rect.{outcome}").count() >= 1
        head = page.locator("#t-scorers thead th").all_inner_texts()
        shown = {row[0]: dict(zip(head[1:-1], map(int, row[1:-1]), strict=True)) for row in cells(page, "#t-scorers")}
        for scorer, counts in status["scorers"].items():
            row = shown["(none was asked)" if scorer == "none" else scorer]
            assert {outcome: number for outcome, number in row.items() if number} == counts
        assert page.locator("#queue").is_hidden()
        page.locator("#minutes summary").click()
        page.locator("#t-minutes table").wait_for()
        assert sum(int(row[-1]) for row in cells(page, "#t-minutes")) == sum(totals.values())


def test_what_was_sent_runs_no_script(browser: Any, url: Running) -> None:
    """Ids and explanations are shown as text, with the characters that would turn it; ten first, then all."""
    with opened(browser, url) as page:
        page.locator("#t-ungraded table").wait_for()
        status = httpx.get(f"{url}/v1/status").json()
        assert len(cells(page, "#t-ungraded")) == 10
        page.locator("#t-ungraded button").click()
        rows = cells(page, "#t-ungraded")
        assert [(row[4], row[5]) for row in rows if "<" not in row[5]] == [
            (row["reason"], row["explanation"]) for row in status["ungraded"] if "<" not in row["explanation"]
        ]
        assert HOSTILE.replace("\u202e", "\\u202e") in [row[0] for row in rows]
        assert page.locator("main img, main script").count() == 0
        assert page.title() == "Rewarden"
        assert len(cells(page, "#t-slow")) == min(10, len(status["slow"]))


@pytest.mark.parametrize(
    ("completion", "reference", "json", "said"),
    [
        ("\\boxed{0.5}", "1/2", False, ["correct", "reward 1", "boxed", "math@1"]),
        ("\\boxed{0.6}", '["1/2", "0.25"]', True, ["incorrect", "reward 0"]),
        ("\\boxed{1}", "", False, ["ungraded", "no reward", "bad_reference"]),
        (f"\\boxed{{{HOSTILE}}}", "7", False, ["reward 0"]),
        ("\\boxed{1}", "[1", True, ["not JSON"]),
    ],
)
def test_a_rollout_can_be_tried(
    browser: Any, url: Running, completion: str, reference: str, json: bool, said: list[str]
) -> None:
    """The form grades one rollout, with the keyboard alone, and shows its verdict with the evidence."""
    with opened(browser, url) as page:
        page.locator("#recipe option[value=math]").wait_for(state="attached")
        page.get_by_label("Recipe").select_option("math")
        page.get_by_label("Completion").fill(completion)
        page.get_by_label("Reference", exact=True).fill(reference)
        page.get_by_label("The reference is JSON").set_checked(json)
        page.get_by_label("Prompt").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.locator("#verdict .result, #verdict .notice").wait_for()
        shown = page.inner_text("#verdict")
        for text in said:
            assert text in shown
        assert page.locator("#verdict img, #verdict script").count() == 0
        assert page.title() == "Rewarden"


def test_a_key_is_asked_for(browser: Any, tmp_path: Path) -> None:
    """With API keys the page asks for one, says why it is refused, keeps it in its tab, and forgets it when told."""
    file = tmp_path / "keys.json"
    scopes: list[tuple[keys.Scope, ...]] = [("admin", "score"), ("score",), ("admin",)]
    made = [keys.make("a", each, created=datetime.now(UTC)) for each in scopes]
    keys.save(file, {key.id: key for _, key in made})
    (both, scorer, admin) = (text for text, _ in made)
    with running_service(keys=file) as url, opened(browser, url) as page:

        def show(key: str) -> None:
            page.get_by_label("API key").fill(key)
            page.keyboard.press("Enter")

        why = page.locator("#ask-why")
        why.filter(has_text="only with an API key").wait_for()
        assert page.locator("#try").is_hidden()
        show("rw_wrong_key")
        why.filter(has_text="unknown, revoked").wait_for()
        assert page.evaluate("sessionStorage.length + localStorage.length + document.cookie.length") == 0
        show(scorer)
        why.filter(has_text="lacks the scope admin").wait_for()
        page.locator("#recipe").wait_for()
        show(admin)
        page.locator("#status").wait_for()
        page.locator("#verdict", has_text="needs a key with the scope score").wait_for()
        page.locator("#forget").click()
        why.filter(has_text="only with an API key").wait_for()
        show(both)
        page.locator("#status").wait_for()
        page.reload()
        page.locator("#status").wait_for()
        page.locator("#recipe").wait_for()
        assert page.locator("#ask").is_hidden()
        assert page.evaluate("localStorage.length + document.cookie.length") == 0
        with opened(browser, url) as other:
            other.locator("#ask-why", has_text="only with an API key").wait_for()


def test_the_queue_is_shown(browser: Any, tmp_path: Path) -> None:
    """Queues, workers and what they graded are on the page, beside what the service answered, each counted once."""
    with running_service(queue="embedded", queue_dir=tmp_path, routes={"*": "queue"}) as url:
        score(url, *[{"completion": "a", "reference": "a"}] * 5, {"id": "lost", "completion": "a"})
        until(lambda: httpx.get(f"{url}/v1/status").json()["queue"]["graded"]["scorers"])
        until(lambda: [one["graded"] for one in httpx.get(f"{url}/v1/status").json()["queue"]["workers"]] == [6])
        with opened(browser, url) as page:
            page.locator("#t-workers table").wait_for()
            (worker,) = httpx.get(f"{url}/v1/status").json()["queue"]["workers"]
            (row,) = cells(page, "#t-workers")
            assert row[:2] == [worker["name"], worker["host"]]
            assert row[2:5] == [", ".join(worker["kinds"]), f"{worker['busy']} of {worker['slots']}", "6"]
            assert ["text", "0", "–"] in cells(page, "#t-kinds")
            assert fact(page, "Dead letters") == "0"
            for source in ("queue", "here"):
                page.locator(f"[name=source][value={source}]").check()
                assert fact(page, "Rollouts, 15 min") == "6"
                assert cells(page, "#t-scorers") == [["exact", "5", "1", "6"]]
                assert [row[0] for row in cells(page, "#t-ungraded")] == ["lost"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_on_a_phone(browser: Any, url: Running, scheme: str) -> None:
    """At 360 pixels the page does not scroll sideways, whatever is on it."""
    with opened(browser, url, viewport={"width": 360, "height": 740}, color_scheme=scheme) as page:
        page.locator("#t-ungraded table").wait_for()
        page.locator("#minutes summary").click()
        page.locator("#t-minutes table").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.locator("#chart svg").evaluate("chart => chart.getBoundingClientRect().right") <= 360


def test_a_service_that_goes_away_is_missed(browser: Any) -> None:
    """The page says that what it shows is old, and of when."""
    with running_service() as url:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{url}/ui")
        page.locator("#status").wait_for()
    page.locator("#notice", has_text="does not answer").wait_for(timeout=PATIENCE_S * 1000)
    assert page.inner_text("#state") == "Away"
    context.close()


def test_a_hidden_page_asks_nothing(browser: Any, url: Running) -> None:
    """While its tab is hidden the page sends no request; seen again, it asks at once."""
    with opened(browser, url) as page:
        page.locator("#status").wait_for()
        hide = "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
        hide += " document.dispatchEvent(new Event('visibilitychange')) }"
        page.evaluate(hide, True)
        page.wait_for_timeout(500)  # an answer may be on its way
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.wait_for_timeout(5000)
        assert asked == []
        with page.expect_request("**/v1/status"):
            page.evaluate(hide, False)


def test_nothing_but_its_own_files(url: Running) -> None:
    """The page is three files under a strict policy, with links that lead to them; other names are not there."""
    for name, kind in (("", "text/html"), ("/style.css", "text/css"), ("/script.js", "text/javascript")):
        answer = httpx.get(f"{url}/ui{name}")
        assert answer.headers["content-type"].startswith(kind)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self';" in policy
        assert "require-trusted-types-for 'script'" in policy  # no text is ever made markup
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert httpx.get(f"{url}/ui/", follow_redirects=True).url.path == "/ui"
    for name in ("/app.py", "/../app.py", "/%2e%2e/app.py", "/index.html", "/index.html/x"):
        assert httpx.get(f"{url}/ui{name}").status_code == 404
