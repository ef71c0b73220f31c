"""Four ways through the app as somebody new walks them, step by step: what they press and read."""

import re
import shutil

import pytest

from tests.ui.keys import all_by_keys

pytestmark = pytest.mark.ui
HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


@pytest.fixture
def start(visit):
    """The start page, and what went wrong behind it at the end."""
    seen = visit(width=1280, height=800)
    yield seen.open("/")
    assert seen.outside == []
    assert seen.faults == []


def test_from_a_checkpoint_folder_to_a_roofline(start, tmp_path, root, full):
    folder = tmp_path / "mine"
    shutil.copytree(root / "datasets/models/stdlib-5m", folder)
    # 1. Write the folder into the first door; it says what the model is.
    start.get_by_label("Folder or name").fill(str(folder))
    start.get_by_label("Folder or name").press("Enter")
    start.get_by_text("mine, 5.48 M parameters").wait_for()
    # 2. Press "Its roofline": the model runs and its operations come to stand under the roofs.
    start.locator("a[href*=mine]").get_by_text("Its roofline").click()
    start.get_by_text("What bounds this work").wait_for()
    start.get_by_text("of the time is memory-bound").wait_for()  # measures once
    # 3. Read which operation loses the most, and how near it comes to its limit.
    start.get_by_text("loses most").wait_for()
    start.get_by_text(re.compile("fused|mlp")).first.wait_for()  # as the kernels there are
    assert f"model={folder.as_posix().replace('/', '%2F')}" in start.url
    if full:  # 4. The same on a described device.
        start.go_back()
        start.get_by_label("Folder or name").fill(str(folder))
        start.get_by_label("Folder or name").press("Enter")
        start.get_by_role("combobox", name="On").click()
        start.get_by_role("menuitem", name="h100-sxm", exact=True).click()
        start.locator("a[href*=h100]").get_by_text("Its roofline").click()
        start.get_by_text("of the time is memory-bound").wait_for()


def test_from_an_azure_trace_to_a_comparison_of_two_schedulers(start, tmp_path, full):
    trace = tmp_path / "mine.csv"
    rows = [
        f"2023-11-16 18:17:{n // 4:02d}.{250 * (n % 4):03d},{300 + 37 * n},{20 + n}\n"
        for n in range(240 if full else 24)
    ]
    trace.write_text(HEAD + "".join(rows), encoding="utf-8")
    # 1. Choose the file in the second door; it says what the trace holds.
    start.locator("input[type=file]").set_input_files(trace)
    start.get_by_text(f"{len(rows)} requests in").wait_for()
    # 2. Press "Compare two schedulers on it": both run at once, vLLM's of today and static batches.
    start.get_by_role("link", name="Compare two schedulers").click()
    start.wait_for_url("**mine.csv")
    start.get_by_text("B / A").wait_for()
    # 3. Read what differs and by how much; lanes of both stand beneath.
    start.get_by_role("cell", name="static_batch").wait_for()
    ttft = start.get_by_role("row", name="time to first token, p99").inner_text()
    ratio = re.search(r"([\d.]+)×", ttft)
    assert ratio is not None and float(ratio[1]) > 1
    start.get_by_text("Modelled runs, one seed each").wait_for()  # what the intervals are of
    start.get_by_text("What happened to each request, and when?").first.wait_for()
    # 4. Another scheduler in B's place.
    start.get_by_role("combobox", name="Scheduler B").click()
    start.get_by_role("menuitem", name="Shortest job first").click()
    start.get_by_role("button", name="Run under both").click()
    start.get_by_role("cell", name="shortest_first").wait_for()


def test_from_a_cluster_and_a_model_to_a_training_plan(start, full):
    model, known, count = (
        ("Llama-3-70B", "llama-3.1-70b", 64) if full else ("Llama-3-8B", "llama-3.1-8b", 8)
    )
    # 1. Write the model as its authors do, choose the device (H100 stands there), how many.
    start.get_by_label("Model", exact=True).fill(model)
    start.get_by_label("Model", exact=True).press("Enter")
    start.get_by_label("How many").fill(str(count))
    # 2. Press "Plan its training": the quickest splits, with intervals, days and memory.
    start.locator(f"a[href*='devices={count}']").get_by_text("Plan its training").click()
    start.get_by_text(f"{known} on {count} H100 SXM").wait_for()
    for column in ("trillion tokens in", "memory of a device", "bubble", "communication"):
        start.get_by_role("columnheader", name=column).wait_for()
    # 3. Press "where its time goes" of the best: its step, part by part, and what bounds it.
    start.get_by_role("link", name="where its time goes").first.click()
    start.get_by_text("Where the time goes").wait_for()
    start.get_by_text("a step would be").wait_for()
    all_by_keys(start)
    # 4. And its serving.
    start.get_by_role("link", name="Serving").click()
    start.get_by_text("vllm serve").wait_for()


def test_from_a_papers_claim_to_its_finding(start, full):
    start.get_by_label("Words, a system or an arXiv id").wait_for()
    start.get_by_text("All 157 systems").wait_for()
    all_by_keys(start)
    # 1. Write words of the claim into the last door: systems, claims, and what came of each.
    start.get_by_label("Words, a system or an arXiv id").press_sequentially("zero bubble")
    # "zero" alone is called something too: a press between two lists of a slow page meets neither.
    start.get_by_text("“zero bubble” is called here").wait_for()
    claim = start.get_by_role("link", name="Splitting the backward shrinks the bubble")
    claim.wait_for()
    # 2. Press the claim: its study, the claim first, with the paper's figure and the finding.
    claim.click()
    start.get_by_role("heading", name="Does it hold?").wait_for()
    start.get_by_text("known as reproduced").first.wait_for()
    # 3. Press Check: judged here and now, on a bar of the paper's figure, what is needed and ours.
    start.get_by_role("button", name="Check", exact=True).first.click()
    start.get_by_text("✓ holds here").wait_for()
