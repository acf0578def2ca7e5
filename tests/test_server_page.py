"""The page in a real browser: everything a person does with it.

With MICOL_PICTURES=docs/pictures the screenshots of the documentation are made anew.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Route, expect, sync_playwright

from conftest import write_lines
from serving import Server, Start

CHESS = """A board-game server for playing chess over a network
Two people play chess against each other in a web browser. The server keeps the state of each game in an SQL \
database, speaks the Universal Chess Interface, and can let a computer opponent take either side. Games are \
stored as PGN text files and can be replayed, annotated and printed."""
HOSTILE = '<script>document.title = "taken over"</script><img src=x onerror="document.title=1">'

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path, "the tests of the page need Chromium: make chromium"
    with sync_playwright() as playwright:
        # Without its own sandbox, which needs rights that a container does not have.
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Browser, debian_server: Server) -> Iterator[Open]:
    """Opens the page in a window of its own; what it complains of, or asks elsewhere for, is a failure."""
    complaints: list[str] = []
    contexts = []

    def begin(
        path: str = "/",
        width: int = 1360,
        height: int = 860,
        scheme: Any = "light",
        url: str = debian_server.url,
        refusals: bool = False,
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console", lambda line: complaints.append(line.text) if is_complaint(line, refusals) else None
        )
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((url, "blob:")) else complaints.append(request.url)
            ),
        )
        page.goto(url + path)
        page.wait_for_selector("[data-ready]")
        return page

    yield begin
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def packages(debian_files: Path) -> Path:
    """A file of twelve packages, audio tools most of them."""
    lines = (debian_files / "docs.jsonl").read_text(encoding="utf-8").splitlines()[198:210]
    return write_lines(debian_files / "packages.jsonl", map(json.loads, lines))


def is_complaint(line: ConsoleMessage, refusals: bool) -> bool:
    """Chromium notes in its console that a request was refused, even where that is shown to the person."""
    return line.type == "error" and not (refusals and "Failed to load resource" in line.text)


def picture(page: Page, name: str, *, whole: bool = False) -> None:
    if folder := os.environ.get("MICOL_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)


def paste(page: Page, text: str) -> None:
    page.fill("#text", text)
    page.click("#suggest")
    page.wait_for_selector(
        "#results:not([aria-busy]) #suggestions li, #results:not([aria-busy]) #empty:not([hidden])"
    )


def names(page: Page) -> list[str]:
    return [
        name.split("\n")[0]
        for name in page.locator("#suggestions .name").evaluate_all(
            "all => all.map(one => one.firstChild.textContent)"
        )
    ]


def open_files(page: Page, *files: Path) -> None:
    page.set_input_files("#file", [str(file) for file in files])
    page.wait_for_selector("#status:has-text('tagged')", state="attached")
    page.wait_for_selector("#results:not([aria-busy])")


def check_accessible(page: Page) -> None:
    violations = Axe().run(page).response["violations"]
    serious = [
        (violation["id"], [node["html"][:200] for node in violation["nodes"]])
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_a_pasted_document_gets_labels_with_bars(open_page: Open, debian_server: Server) -> None:
    page = open_page()
    picture(page, "start")
    paste(page, CHESS)
    title, abstract = CHESS.split("\n", 1)
    [expected] = debian_server.suggest({"title": title, "abstract": abstract}, limit=10)
    assert names(page) == [label["name"] for label in expected["labels"]]
    widths = page.locator("#suggestions .bar > span").evaluate_all(
        "bars => bars.map(bar => bar.offsetWidth / bar.parentElement.offsetWidth)"
    )
    assert widths == pytest.approx([label["strength"] for label in expected["labels"]], abs=0.01)
    page.select_option("#limit", "5")
    expect(page.locator("#suggestions li")).to_have_count(5)
    page.locator("#threshold").fill("0.4")
    expect(page.locator("#suggestions li")).to_have_count(
        sum(label["strength"] >= 0.4 for label in expected["labels"][:5])
    )


def test_a_label_says_why(open_page: Open) -> None:
    page = open_page()
    paste(page, CHESS)
    expect(page.locator("#to-network")).to_be_hidden()
    row = page.locator("#suggestions .row", has_text="Chess").first
    row.hover()
    expect(page.locator("#document-text mark.named").first).to_have_text("chess", ignore_case=True)
    row.click()
    assert row.get_attribute("aria-expanded") == "true"
    panel = page.locator("#suggestions li.open .why")
    expect(panel.locator(".breadcrumb")).to_contain_text("Games and Amusement › Chess")
    expect(panel.locator(".description")).to_contain_text("Kind of games")
    expect(panel.locator(".reasons")).to_contain_text("Named")
    marked = page.locator("#document-text mark.named").all_inner_texts()
    assert {text.lower() for text in marked} == {"chess"}
    picture(page, "why")
    row.click()
    assert row.get_attribute("aria-expanded") == "false"


EXPLAINED = """async () => {
    const {why} = await import("/static/why.js");
    const {marked} = await import("/static/highlight.js");
    const text = "👩‍🔬 Women play chess. They win at it.";
    const explanation = {
        named_at: [[15, 20]], shared_words: ["win"], best_sentence: [4, 21],
        contributions: {"exact name": 1.5, "sentence": -0.5},
        neighbours: [{id: "d9", title: "A <b>bold</b> game", via: "cites it"}],
    };
    const suggestion = {id: "game::board:chess", name: "Chess", explanation};
    const article = document.createElement("article");
    article.id = "explained";
    article.append(...marked(text, explanation), await why(suggestion, text, {}));
    document.getElementById("main").append(article);
}"""


def test_every_kind_of_reason(open_page: Open) -> None:
    """The whole of what an explanation may hold, with characters that JavaScript counts as two."""
    page = open_page()
    page.evaluate(EXPLAINED)
    article = page.locator("#explained")
    assert article.locator("> mark.named").all_inner_texts() == ["chess"]
    assert "".join(article.locator("> mark.sentence").all_inner_texts()) == "Women play chess."
    assert article.locator("> mark.word").all_inner_texts() == ["win"]
    expect(article.locator(".reasons")).to_contain_text("“Women play chess.”")
    assert article.locator(".contributions li").all_inner_texts() == ["exact name\n+1.50", "sentence\n−0.50"]
    widths = article.locator(".contributions .bar > span").evaluate_all(
        "bars => bars.map(bar => bar.style.width)"
    )
    assert [float(width.strip("%")) for width in widths] == pytest.approx([100, 100 / 3], abs=0.01)
    expect(article.locator(".evidence")).to_have_text("A <b>bold</b> game cites it")


def test_branches_filter(open_page: Open, debian_server: Server) -> None:
    page = open_page()
    paste(page, CHESS)
    page.fill("#branch input", "games")
    page.wait_for_selector("[role=option]")
    page.keyboard.press("Enter")
    expect(page.locator("#chips li")).to_have_text("Games and Amusement×")
    expect(page.locator("#suggestions .name .hint").first).to_have_text("Games and Amusement")
    page.wait_for_selector("#results:not([aria-busy])")
    branches = page.locator("#suggestions .name .hint").all_inner_texts()
    assert {branch.strip() for branch in branches} == {"Games and Amusement"}
    page.click("#chips button")
    expect(page.locator("#chips li")).to_have_count(0)
    page.locator("#suggestions .row", has_text="Chess").first.click()
    page.click("button:has-text('Without Games and Amusement')")
    expect(page.locator("#suggestions .row", has_text="Chess")).to_have_count(0)


def test_enter_picks_from_what_was_typed_however_slow_the_server(open_page: Open) -> None:
    page = open_page()
    paste(page, CHESS)
    page.focus("#branch input")
    page.wait_for_selector("[role=option]")

    def late(route: Route) -> None:
        page.wait_for_timeout(400)
        route.continue_()

    page.route("**/*games*", late)
    page.fill("#branch input", "games")
    page.keyboard.press("Enter")
    expect(page.locator("#chips li")).to_have_text("Games and Amusement×")


def test_a_file_of_documents(open_page: Open, packages: Path) -> None:
    page = open_page(scheme="dark")
    open_files(page, packages)
    expect(page.locator("#documents li")).to_have_count(12)
    first = names(page)
    page.locator("#documents .row").nth(5).click()
    expect(page.locator("#documents [aria-current]")).to_contain_text(
        page.locator("#documents .title").nth(5).inner_text()
    )
    page.wait_for_selector("#suggestions li")
    assert names(page) != first
    expect(page.locator("#document-metadata")).to_contain_text("authors")
    page.locator("#suggestions .row").first.click()
    page.wait_for_selector(".why .reasons")
    picture(page, "many-dark")
    check_accessible(page)


def test_dropped_files_and_bad_ones(open_page: Open, tmp_path: Path) -> None:
    page = open_page()
    page.evaluate(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(["A chess engine\\nIt plays chess."], "engine.txt"));
            const how = {dataTransfer: transfer, bubbles: true, cancelable: true};
            window.dispatchEvent(new DragEvent("drop", how));
        }"""
    )
    expect(page.locator("#document-text")).to_contain_text("It plays chess.")
    page.wait_for_selector("#suggestions li")
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"title": "fine"}\n{"title": \n')
    page.set_input_files("#file", str(bad))
    expect(page.locator("#status.error")).to_have_text("bad.jsonl, line 2: not valid JSON")


def test_export(open_page: Open, packages: Path) -> None:
    page = open_page()
    open_files(page, packages)
    with page.expect_download() as download:
        page.click("#export-json")
    results = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert len(results) == 12
    assert [label["name"] for label in results[0]["labels"]] == names(page)
    with page.expect_download() as download:
        page.click("#export-csv")
    with Path(download.value.path()).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["document"], row["label"], float(row["score"])) for row in rows] == [
        (result["id"], label["id"], label["score"]) for result in results for label in result["labels"]
    ]


def test_a_new_label_and_who_takes_it(open_page: Open, packages: Path, debian_server: Server) -> None:
    page = open_page()
    open_files(page, packages)
    page.click("nav a[href='#labels']")
    page.fill("#label-name", "ALSA utilities")
    page.fill("#label-description", "Tools for the Advanced Linux Sound Architecture.")
    page.fill("#parent input", "works with")
    page.wait_for_selector("#parent [role=option]:has-text('Works with')")
    page.keyboard.press("Enter")
    page.click("#add")
    expect(page.locator("#takers-summary")).to_contain_text("of 12 loaded documents take “ALSA utilities”")
    takers = page.locator("#takers-list .title").all_inner_texts()
    assert takers
    assert all("alsa" in title.lower() for title in takers[:2])
    picture(page, "new-label")
    check_accessible(page)
    label = debian_server.client.get("/v1/labels/alsa-utilities").json()
    assert label["description"] == "Tools for the Advanced Linux Sound Architecture."
    assert len(label["parents"]) == 1
    page.click("#undo")
    expect(page.locator("#takers")).to_be_hidden()
    assert debian_server.client.get("/v1/labels/alsa-utilities").status_code == 404
    page.fill("#label-search", "chess")
    expect(page.locator("#label-list li")).to_have_count(1)


def test_names_and_texts_stay_text(open_page: Open, debian_server: Server) -> None:
    label = {"id": HOSTILE, "names": [HOSTILE, "scripted"], "description": HOSTILE, "parents": ["game"]}
    debian_server.client.post("/v1/labels", json={"labels": [label]}).raise_for_status()
    try:
        page = open_page()
        paste(page, f"{HOSTILE} scripted\n{HOSTILE} scripted and named {HOSTILE}")
        row = page.locator("#suggestions .row", has_text="<script>").first
        row.click()
        expect(page.locator(".why .description")).to_have_text(HOSTILE)
        expect(page.locator("#document-text")).to_contain_text("<script>document.title")
        page.click("nav a[href='#labels']")
        page.fill("#label-search", "<script>")
        expect(page.locator("#label-list .name").first).to_contain_text(HOSTILE)
        page.click("nav a[href='#tag']")
        page.fill("#branch input", "games")
        page.wait_for_selector("[role=option]")
        assert page.title() == "debtags · micol"
        assert page.locator("main script, main img").count() == 0
    finally:
        from urllib.parse import quote

        debian_server.client.delete(f"/v1/labels/{quote(HOSTILE, safe='')}").raise_for_status()


def test_the_network(open_page: Open, debian_server: Server) -> None:
    page = open_page("/#network", refusals=True)
    page.fill("#corpus-search input", "ancient warfare")
    page.wait_for_selector("[role=option]:has-text('0ad-data')")
    page.keyboard.press("Enter")
    expect(page.locator("#neighbours-summary")).to_contain_text("Real-time strategy game of ancient warfare")
    page.check("input[name=path][value='PAP']", force=True)
    expect(page.locator("#neighbours-summary code")).to_have_text("PAP")
    answer = debian_server.client.get(
        "/v1/documents/0ad/neighbours", params={"path": "PAP", "limit": 24}
    ).json()
    assert page.locator("#neighbours .row .hint").all_inner_texts() == [
        other["id"] for other in answer["neighbours"]
    ]
    expect(page.locator("#graph .node")).to_have_count(min(14, len(answer["neighbours"])))
    picture(page, "network")
    check_accessible(page)
    page.fill("#other-path", "P->X")
    page.keyboard.press("Enter")
    expect(page.locator("#status.error")).to_contain_text("no letter 'X'")
    page.locator("#neighbours .row").first.click()
    expect(page.locator("#graph figcaption")).to_have_text(answer["neighbours"][0]["title"])
    page.click("#tag-this")
    expect(page.locator("#document-text")).to_contain_text(answer["neighbours"][0]["title"])
    page.wait_for_selector("#suggestions li")
    page.click("#to-network")
    expect(page.locator("#neighbours-title")).to_be_visible()


def test_without_a_corpus_and_with_a_token(open_page: Open, start: Start, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-good-length")
    server = start("--token-file", token)
    page = open_page("/#network", url=server.url)
    expect(page.locator("#no-corpus")).to_contain_text("--docs")
    page.click("nav a[href='#labels']")
    page.fill("#label-name", "Sailing")
    page.fill("#token", "a-token-of-good-length")
    page.click("#add")
    expect(page.locator("#status")).to_have_text("Sailing was added.")
    assert server.client.get("/v1/labels/sailing").status_code == 200


def test_by_keyboard_alone(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.locator("#text").focus()
    page.keyboard.insert_text(CHESS)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#suggestions li")
    page.wait_for_selector("#results:not([aria-busy])")
    page.locator("#suggestions .row").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#suggestions .row").nth(1)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("End")
    expect(page.locator("#suggestions .row").last).to_be_focused()


@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "light"), (390, "dark"), (1360, "light"), (1920, "dark")]
)
def test_any_screen_light_and_dark(open_page: Open, width: int, scheme: str) -> None:
    page = open_page(width=width, height=844, scheme=scheme)
    check_accessible(page)
    paste(page, CHESS)
    page.locator("#suggestions .row").first.click()
    page.wait_for_selector(".why .reasons")
    check_accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if width == 390:
        picture(page, f"phone-{scheme}")
    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    shade = sum(int(part) for part in background.strip("rgb()").split(","))
    assert (shade < 200) == (scheme == "dark")
    page.click("#theme")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_description_of_the_api(open_page: Open) -> None:
    page = open_page("/api")
    operation = page.locator("details", has_text="/v1/suggest").first
    operation.locator("summary").click()
    expect(operation).to_contain_text("documents")
    check_accessible(page)
    assert page.locator("details").count() == 18
