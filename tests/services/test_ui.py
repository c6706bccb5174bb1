"""The page at /ui, in a real browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from service import PATIENCE_S, Running, running_service

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"

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
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("request", lambda asked: None if asked.url.startswith((url, "data:")) else wrong.append(asked.url))
    page.goto(f"{url}/ui")
    yield page
    expected = [text for text in wrong if "401" in text or "403" in text]  # a browser says so of each such answer
    assert wrong == expected
    context.close()


def score(url: str, *rollouts: dict[str, Any]) -> None:
    """Ask for verdicts."""
    httpx.post(f"{url}/v1/score", json={"recipe": "exact", "rollouts": list(rollouts)}).raise_for_status()


@pytest.fixture(scope="module")
def url() -> Iterator[Running]:
    """A service that has graded: two right, one wrong, and one that nobody can judge, under a hostile id."""
    with running_service() as running:
        score(
            running,
            {"completion": "a", "reference": "a"},
            {"completion": "b", "reference": "b"},
            {"completion": "a", "reference": "b"},
            {"id": HOSTILE, "completion": "a"},
        )
        yield running


def test_numbers_are_those_of_the_service(browser: Any, url: Running) -> None:
    """The page shows what /v1/status says: state, outcomes, chart."""
    status = httpx.get(f"{url}/v1/status").json()
    with opened(browser, url) as page:
        page.wait_for_selector("#outcomes table")
        assert status["version"] in page.inner_text("#state")
        assert page.inner_text("#state").startswith("ready")
        head = page.locator("#outcomes th").all_inner_texts()
        (row,) = [cells.split("\t") for cells in page.locator("#outcomes tbody tr").all_inner_texts()]
        shown = dict(zip(head, row, strict=True))
        assert shown.pop("scorer") == "exact"
        assert {name: int(count) for name, count in shown.items()} == status["scorers"]["exact"]
        assert "correct 2" in page.get_attribute("#charts svg", "aria-label")
        assert page.locator("#charts svg rect").count() >= 3
        assert page.locator("#queue-panel").is_hidden()


def test_what_was_sent_runs_no_script(browser: Any, url: Running) -> None:
    """Ids are shown as they are, as text."""
    with opened(browser, url) as page:
        page.wait_for_selector("#ungraded table")
        assert HOSTILE[:60] in page.inner_text("#ungraded")
        assert "bad_reference" in page.inner_text("#ungraded")
        assert page.locator("#ungraded img").count() == 0
        assert page.title() == "Rewarden"


@pytest.mark.parametrize(
    ("completion", "reference", "said"),
    [
        ("\\boxed{0.5}", "1/2", ["1", "correct"]),
        ("\\boxed{0.6}", '["1/2", "0.25"]', ["0", "incorrect"]),
        ("\\boxed{1}", "", ["none", "ungraded", "bad_reference"]),
        (HOSTILE, "7", ["0"]),
    ],
)
def test_a_rollout_can_be_tried(browser: Any, url: Running, completion: str, reference: str, said: list[str]) -> None:
    """The form grades one rollout and shows its verdict, with the evidence."""
    with opened(browser, url) as page:
        page.wait_for_selector("#recipe option[value=math]", state="attached")
        page.select_option("#recipe", "math")
        page.fill("#completion", completion)
        page.fill("#reference", reference)
        page.click("#try button")
        page.wait_for_selector("#verdict dd")
        found = page.locator("#verdict dd").all_inner_texts()
        assert found[: len(said)] == said
        assert page.title() == "Rewarden"


def test_errors_of_the_form_are_shown(browser: Any, url: Running) -> None:
    """What the service refuses is said in its words."""
    with opened(browser, url) as page:
        page.wait_for_selector("#recipe option", state="attached")
        page.evaluate("document.getElementById('recipe').options[0].value = 'nobody'")
        page.select_option("#recipe", "nobody")
        page.fill("#completion", "x")
        page.evaluate("console.error = () => {}")
        page.route("**/v1/score", lambda route: route.fulfill(status=200, body=httpx.post(
            f"{url}/v1/score", json={"recipe": "nobody", "rollouts": [{"completion": "x"}]}).text))  # fmt: skip
        page.click("#try button")
        page.wait_for_selector("#verdict .bad")


def test_a_key_is_asked_for(browser: Any, tmp_path: Path) -> None:
    """With API keys the page asks for one, says when it is refused, and keeps it in its tab."""
    file = tmp_path / "keys.json"
    command = [sys.executable, "-P", "-m", "rewarden.cli", "keys", "create", "--name", "a", "--file", str(file)]
    made = subprocess.run([*command, "--scopes", "admin,score"], capture_output=True, text=True, check=True)
    with running_service(ready=False, keys=file) as url, opened(browser, url) as page:
        page.wait_for_selector("#key-form", state="visible")
        page.fill("#key", "rw_wrong_key")
        page.click("#key-form button")
        page.locator("#key-why", has_text="refused").wait_for()
        page.fill("#key", made.stdout.strip())
        page.click("#key-form button")
        page.wait_for_selector("#key-form", state="hidden")
        page.wait_for_selector("#now dd")
        page.reload()
        page.wait_for_selector("#now dd")
        assert page.locator("#key-form").is_hidden()


def test_the_queue_is_shown(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Queues, workers and what they graded are on the page."""
    folder = tmp_path_factory.mktemp("q")
    with running_service(queue="embedded", queue_dir=folder) as url, opened(browser, url) as page:
        page.wait_for_selector("#workers table")
        rows = [{"completion": "a", "reference": "a"}] * 5
        httpx.post(f"{url}/v1/jobs", json={"recipe": "exact", "rollouts": rows}).raise_for_status()
        page.wait_for_selector("#queues tbody tr")
        page.locator("#outcomes tbody td", has_text="5").first.wait_for()
        assert "text" in page.inner_text("#queues")
        assert page.locator("#charts svg").count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_on_a_phone(browser: Any, url: Running, scheme: str) -> None:
    """At 360 pixels the page does not scroll sideways, whatever is on it."""
    with opened(browser, url, viewport={"width": 360, "height": 740}, color_scheme=scheme) as page:
        page.wait_for_selector("#ungraded table")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_nothing_but_its_own_files(url: Running) -> None:
    """The page is three files under a strict policy; other names under it are not there."""
    for name, kind in (("", "text/html"), ("/style.css", "text/css"), ("/script.js", "text/javascript")):
        answer = httpx.get(f"{url}/ui{name}")
        assert answer.headers["content-type"].startswith(kind)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    for name in ("/app.py", "/../app.py", "/%2e%2e/app.py", "/index.html/x"):
        assert httpx.get(f"{url}/ui{name}").status_code == 404
