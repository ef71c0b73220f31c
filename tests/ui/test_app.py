"""The app in a real browser: run, turn, see, scrub; nothing is asked of any other machine."""

import re

import pytest

from tests.engine.core.chrome.traced import of_rank, written
from tests.ui.keys import all_by_keys, opens_and_shuts
from workbench.pages.shelf.allowance import PAGES

pytestmark = pytest.mark.ui
# At the run's end: a page without a moment replays its first run for a dozen seconds.
STUDY = "/study?slug=flover&executor=modelled&model=llama-2-7b&dtype=float16&pages=600&at=100%25"


# Whether a figure stands under that label with that value in any view.
SAYS = """(wanted) => {
  const walk = (root) => [...root.querySelectorAll('*')].some((e) =>
    (e.className === 'pw-label' && e.textContent === wanted[0]
      && e.nextElementSibling.textContent === wanted[1]) || (e.shadowRoot && walk(e.shadowRoot)))
  return walk(document) }"""
# Whether the first card's picture has come.
PICTURED = """() => {
  const walk = (root) => { for (const e of root.querySelectorAll('*')) {
    if (e.className === 'thumbnail') return e
    const found = e.shadowRoot && walk(e.shadowRoot)
    if (found) return found } }
  return walk(document)?.naturalWidth > 0 }"""
# What the views over time were told to show: the last seconds, 0 for all.
RECENT = """(seconds) => { const found = [...Bokeh.documents[0]._all_models.values()]
  .map((model) => model.data?.recent).filter((value) => value !== undefined)
  return found.length > 3 && found.every((value) => value === seconds) }"""


def pictures_by_keys(page):
    """What a pointer would be told of a page of the cache, and a range of the lanes, by keys."""
    lanes = page.locator(".pw-lanes canvas, .pw-surface canvas").first
    lanes.focus()
    for _ in range(2):
        page.keyboard.press("Shift+ArrowLeft")
    table = page.get_by_role("region", name="What lies in the chosen range")
    table.wait_for()
    page.keyboard.press("Escape")
    table.wait_for(state="hidden")
    page.locator(".pw-cells canvas").focus()
    page.keyboard.press("ArrowRight")
    tip = page.locator(".pw-tip", has_text="Page 0: ")
    tip.wait_for()
    page.keyboard.press("Escape")
    tip.wait_for(state="hidden")


def rest(page):
    """Let the live engine stop, which would go on for half a minute after its last visitor."""
    page.get_by_role("button", name="Stop all", exact=True).click()
    page.get_by_text("writing", exact=True).first.wait_for(state="detached")


def test_the_live_page_shows_a_model_decoding_and_answers(visit, tmp_path):
    seen = visit(width=1920, height=1080)
    page = seen.open("/live")
    page.get_by_text("What it writes").wait_for()
    page.get_by_text("writing", exact=True).first.wait_for()
    first = seen.picture()
    seen.changed(first)
    page.screenshot(path=tmp_path / "live.png")
    page.wait_for_function(RECENT, arg=30)  # a live page looks at the last half minute
    for name, span in (("2 min", 120), ("all", 0), ("last 30 s", 30)):
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_function(RECENT, arg=span)
    page.get_by_label("Prompt").fill("class Fountain:\n    def __init__(self):\n")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_text("class Fountain:").last.wait_for()
    rest(page)
    all_by_keys(page)
    assert seen.outside == []
    assert seen.faults == []


def test_a_knob_changes_the_picture_and_the_address_and_time_goes_back(visit, tmp_path):
    seen = visit()
    page = seen.open(STUDY)
    page.get_by_role("heading", name="Flover").wait_for()
    page.locator("canvas").first.wait_for()
    first = seen.settled()
    assert page.locator(".bk-Figure").count() == 0
    # A run that ends during the walk would take along what stops and follows it.
    page.get_by_role("button", name="Stop the run").wait_for(state="hidden")
    all_by_keys(page)
    page.locator(".bk-Figure canvas").first.wait_for()  # maps are made once somebody is near them
    pictures_by_keys(page)
    opens_and_shuts(page, page.get_by_label("Export and settings").first, "Save picture (PNG)")
    opens_and_shuts(page, page.get_by_role("button", name="Share"), "Command line")
    page.get_by_label("Export and settings").first.click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save data (CSV)").click()
    data = saved.value.path().read_text()  # all of it, under the names of the axes
    assert data.startswith("figure,value\nfinished,24 of 24\n") and "\nrequest,time (s)\n" in data
    page.get_by_label("Export and settings").first.click()
    page.get_by_role("button", name="Show data (table)").first.click()
    data = page.get_by_role("dialog", name="Data of this view")
    data.get_by_role("cell", name="24 of 24").wait_for()
    assert data.get_by_role("cell", name="r0", exact=True).count()  # its lanes by name
    page.keyboard.press("Escape")
    data.wait_for(state="detached")
    unsaid = page.locator(".pw canvas:not([aria-label]):not([aria-hidden=true])")
    assert unsaid.count() == 0
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    keys.get_by_text("play or pause").wait_for()
    page.keyboard.press("Escape")
    keys.wait_for(state="hidden")
    for name, inside in (("drawer", "Reset"), ("contextbar", "Check all")):
        page.get_by_label(f"Close {name}").press("Enter")
        page.get_by_role("button", name=inside).wait_for(state="hidden")
        page.keyboard.press("Enter")  # the focus is where it was
        page.get_by_role("button", name=inside).wait_for()
    page.get_by_role("button", name="Static batches of eight").press("Enter")
    turned = seen.changed(first)
    page.wait_for_url("**batching=static_batch**")
    # The new run is shown at its telling moment, not where the one before it stood or at 0 s.
    page.wait_for_function(SAYS, arg=["finished", "24 of 24"])
    page.screenshot(path=tmp_path / "study.png")
    slider = page.locator("input[type=range][aria-label]").last
    slider.focus()
    seen.settled()
    page.get_by_role("button", name="Stop the run").wait_for(state="hidden")
    slider.press("End")
    page.wait_for_function(SAYS, arg=["finished", "24 of 24"])
    most = page.get_by_text(re.compile("^pages used, [0-9]+ at most$")).first.inner_text()
    slider.press("Home")
    back = seen.changed(turned)
    assert back != first
    # One rule for all figures: at the cursor, beside them the run's own in all or at most.
    page.wait_for_function(SAYS, arg=["finished, 24 in all", "0 of 24"])
    page.wait_for_function(SAYS, arg=[most, "0 of 512"])
    assert seen.outside == []
    assert seen.faults == []


def test_an_address_carries_its_knobs(visit):
    page = visit(width=1280, height=800).open(f"{STUDY}&batching=static_batch&workload.count=7")
    page.get_by_text("7 of 7").first.wait_for()
    assert page.locator(".pw-body canvas").first.bounding_box()["y"] <= 300  # the first mark
    page.get_by_text("showing all 7 requests").wait_for(state="attached")  # none below the edge
    page.set_viewport_size({"width": 900, "height": 800})
    page.get_by_text("Does it hold?").wait_for(state="hidden")  # no room beside the picture
    assert page.locator(".pw-body canvas").first.bounding_box()["width"] >= 380
    for name in ("Toggle theme", "Open contextbar"):  # what is folded can be opened
        assert page.get_by_label(name).bounding_box()["x"] <= 870


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("/study?slug=nope", "no such system"),
        ("/study?slug=rnn-review", "not built yet"),
        ("/study?slug=flover&pages=zero", "valid integer"),
        ("/study", "choose one from the catalogue"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(visit, place, says):
    visit().open(place).get_by_text(says).first.wait_for()


def test_a_page_reloaded_many_times_is_still_shown(visit):
    seen = visit(new=True)
    for _ in range(PAGES + 1):  # as a reload's page that is gone before it was connected
        assert seen.page.request.get(f"{seen.address}{STUDY}").ok
    page = seen.open(STUDY)
    page.locator("canvas").first.wait_for()
    for _ in range(3):
        page.reload()
        page.locator("canvas").first.wait_for()
    assert page.get_by_text("pages of yours").count() == 0
    assert seen.faults == []


def test_an_address_of_no_page_says_so_and_to_no_stranger(visit):
    seen = visit()
    told = seen.page.request.get(f"{seen.address}/study/hogwld")
    assert told.status == 404 and "study?slug=hogwild" in told.text()
    stranger = {"Host": "evil.example"}
    assert seen.page.request.get(f"{seen.address}/nope", headers=stranger).status == 403


def test_the_catalogue_is_searched_as_one_types(visit, tmp_path):
    seen = visit()
    page = seen.open("/catalogue")
    page.get_by_text("157 systems").wait_for()
    all_by_keys(page)
    page.wait_for_function(PICTURED)  # a card shows its system's main view
    words = page.get_by_label("Search")
    words.press_sequentially("kv cache")  # in other tools' words
    page.get_by_text("FlashAttention-2", exact=True).wait_for(state="detached")
    page.get_by_text("BatchLLM", exact=True).wait_for()
    words.fill("")
    words.press_sequentially("hogwild")
    page.get_by_text("BatchLLM", exact=True).wait_for(state="detached")
    assert page.get_by_text("Hogwild! Inference", exact=True).count() == 1
    page.screenshot(path=tmp_path / "catalogue.png")
    assert seen.outside == []


def test_the_theme_turns_dark(visit):
    page = visit(new=True).open("/catalogue")
    page.get_by_text("157 systems").wait_for()
    light = page.locator(".main").evaluate("e => getComputedStyle(e).backgroundColor")
    page.get_by_label("Toggle theme").click()
    page.locator(".mui-dark").first.wait_for()
    assert page.locator(".main").evaluate("e => getComputedStyle(e).backgroundColor") != light
    page.locator('a[href="./runs?theme=dark"]').wait_for()  # places to go keep it


def test_two_runs_are_compared(visit):
    seen = visit(new=True, width=1920, height=1080)
    page = seen.open("/compare")
    page.get_by_role("heading", name="Compare").wait_for()
    all_by_keys(page)
    page.get_by_label("A system, with its idea and without").fill("FlashAttention-4")
    page.get_by_role("option", name="FlashAttention-4").click()
    page.get_by_role("button", name="Run both").click()
    page.get_by_text("what differs").wait_for()
    page.get_by_text("B / A").wait_for()
    page.get_by_role("link", name="Runs").click()
    page.get_by_role("row").get_by_role("link", name="compare").first.wait_for()
    page.get_by_label("Rename").fill("without it")
    page.get_by_label("Rename").press("Enter")
    page.get_by_role("link", name="without it").wait_for()
    page.get_by_label("Tags, by commas").fill("thesis")
    page.get_by_label("Tags, by commas").press("Enter")
    page.get_by_role("link", name="#thesis").wait_for()
    all_by_keys(page)
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare those marked").click()
    page.wait_for_url("**/compare?**runs=**")
    page.get_by_text("B / A").wait_for()
    figures, settings = (page.get_by_text(words).first for words in ("B / A", "what differs"))
    assert figures.bounding_box()["y"] <= settings.bounding_box()["y"]  # the strip leads
    assert seen.outside == []
    assert seen.faults == []


def test_the_ranks_of_a_job_are_one_run_and_two_traces_differ_by_kernel(visit, tmp_path):
    files = [
        written(tmp_path, **of_rank(rank, late, 1e3 * rank)) for rank, late in ((0, 0), (1, 40))
    ]
    seen = visit(new=True, width=1280, height=800)
    page = seen.open("/runs")
    page.locator("input[type=file]").set_input_files(files)
    page.get_by_text("rank 1 is the straggler: last to begin in 6 of 6").wait_for()
    page.get_by_text("What streams waited for").click()
    page.get_by_role("row", name="rank 1, thread 20 launch").wait_for()
    all_by_keys(page)
    for path in files:
        page.locator("input[type=file]").set_input_files(path)
        page.get_by_role("link", name=path.name, exact=True).wait_for()
    page.locator('a[href="./compare?a=r1.json&b=r0.json"]').click()
    page.get_by_text("Kernels of A and B: B").wait_for()
    page.get_by_role("row", name="ncclDevKernel_AllReduce communication 6 6").wait_for()
    assert seen.faults == []


def test_a_study_leads_to_how_it_responds_to_a_knob(visit):
    seen = visit(width=1280, height=800)
    page = seen.open(STUDY.replace("study", "response", 1) + "&workload.count=4")
    page.get_by_label("Values", exact=True).fill("100, 400")
    page.get_by_label("Values", exact=True).press("Tab")
    page.get_by_label("Seeds").fill("2")
    page.get_by_label("Seeds").press("Tab")
    page.get_by_role("button", name="Draw").click()
    page.get_by_text("4 runs done").wait_for()
    page.locator(".bk-Figure canvas").first.wait_for()
    seen.settled()
    all_by_keys(page)
    page.wait_for_url("**values=100**")
    page.get_by_role("link", name="its page").click()
    page.wait_for_url("**/study?**")
    page.locator('a[href*="response?slug=flover"]').wait_for()
    assert seen.outside == []
    assert seen.faults == []


def test_a_page_says_that_what_ran_it_has_gone_until_it_is_heard_again(visit):
    seen, held = visit(new=True), []

    def passed(line):
        line.send("again") if held else line.connect_to_server()
        held.append(line)

    seen.page.route_web_socket(re.compile("/ws"), passed)
    page = seen.open("/runs")
    page.get_by_role("heading", name="Runs").wait_for()
    said = page.get_by_text("No connection: what ran this page has ended")
    assert said.count() == 0
    held[0].close()
    said.wait_for()
    page.evaluate("() => void new WebSocket(`ws://${location.host}/runs/ws`)")
    said.wait_for(state="detached")
