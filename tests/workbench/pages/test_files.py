"""What a page loads: each module by an address of its own, kept for good, and nothing twice."""

import http.client
import re

import pytest

from tests.workbench.api.test_gate import answering, app
from workbench.pages.actions import actions
from workbench.pages.frame.files import LEFT_OUT, components, module_name


@pytest.fixture(scope="module")
def port():
    with answering(app("")) as (found, _):
        yield found


def ask(port, place):
    """Status, headers and text of an answer."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        line.request("GET", place)
        answer = line.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode(errors="replace")
    finally:
        line.close()


@pytest.mark.parametrize(
    ("place", "title"),
    [
        ("/catalogue", "Catalogue"),
        ("/study?slug=batchllm", "BatchLLM"),
        ("/study?slug=no-such-study", "This page cannot be shown"),
    ],
)
def test_all_that_a_page_names_is_there_and_may_be_kept_for_good(port, place, title):
    status, headers, text = ask(port, place)
    assert f"<title>{title} · Parallel Workbench</title>" in text  # tabs can be told apart
    assert status == 200 and headers["Cache-Control"] == "no-store"
    assert text.count("<html") == text.count("</html>") == text.count("</head>") == 1
    assert not any(name in text for name in LEFT_OUT)
    named = set(re.findall(r'(?:src|href)="(\./modules/[^"]+|[^"]+\.(?:js|css)\?[^"]+)"', text))
    assert any("/modules/" in name for name in named) and any("bokeh" in name for name in named)
    for name in named:
        status, headers, _ = ask(port, "/" + name.removeprefix("./"))
        assert status == 200, name
        assert "max-age=31" in headers["Cache-Control"], name


def test_a_page_gets_the_faces_that_its_texts_need_and_no_others(port):
    text = ask(port, "/catalogue")[2]
    asked = re.findall(r'rel="preload" href="([^"]+\.woff2)"', text)
    assert len(asked) == 2 and sorted(set(asked)) == sorted(re.findall(r'url\("([^"]+)"\)', text))
    for name in asked:
        status, headers, _ = ask(port, "/" + name.removeprefix("./"))
        assert status == 200 and "roboto-latin" in name


def test_a_module_is_found_by_its_checksum_alone(port):
    component = next(components())
    name = module_name(component)
    status, headers, text = ask(port, f"/modules/{name}")
    assert status == 200 and text == component._render_esm()
    assert headers["Content-Type"].startswith("text/javascript")
    for other in ("x.js", name.replace(".js", "0.js"), "..%2fapp.py", f"{name}/"):
        assert ask(port, f"/modules/{other}")[0] == 404


def test_a_pressed_button_does_what_it_says_and_nothing_else_does():
    done = []
    row = actions([("a", lambda: done.append("a"))], [("b", lambda: done.append("b"))])
    assert row.labels == ["a", "b"] and row.framed == 1
    for count, place in enumerate([1, 0, 2, -1, None, "0", 1.0]):
        row.pressed = {"place": place, "count": count}
    assert done == ["b", "a"]


@pytest.mark.parametrize("text", ["%C2%B2", "9" * 5000, "1e999", "%5B%5B"])
def test_any_text_may_stand_in_an_address(port, text):
    status, _, page = ask(port, f"/catalogue?q={text}")
    assert status == 200 and "<title>Catalogue" in page and "</body>" in page


def test_no_script_brings_a_page_elsewhere_and_no_name_holds_a_nul(port):
    assert ask(port, '/study/autoload.js?bokeh-autoload-element="%2Balert(1)')[0] == 404
    assert ask(port, "/static/js/%00")[0] == 400
