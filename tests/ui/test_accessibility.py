"""Every page in both themes, judged by axe-core: nothing serious, nothing critical."""

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = [pytest.mark.ui, pytest.mark.slow]
PAGES = (
    "/", "/live", "/catalogue", "/plan", "/predict", "/predict?kind=serving", "/design", "/serve",
    "/roofline", "/runs", "/attach", "/compare", "/compare?trace=azure-like.csv",
    "/study?slug=flover", "/study?slug=megatron", "/study?slug=hogwild", "/study?slug=dualmap",
    "/replica?slug=dualmap&watch=2",
    "/response?slug=flover&executor=modelled&model=llama-2-7b&dtype=float16&values=50,400&seeds=1",
    "/embed?slug=flover", "/lecture?slug=flover", "/attention?run=live",
)  # fmt: skip
SETTLE = 9_000  # milliseconds until a page shows what it has


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("place", PAGES)
def test_axe_finds_nothing_serious(visit, place, theme):
    page = visit(width=1280, height=800).open(f"{place}{'&' if '?' in place else '?'}theme={theme}")
    page.wait_for_timeout(SETTLE)
    found = Axe().run(page).response["violations"]
    said = [
        (wrong["id"], wrong["nodes"][0]["html"][:200])
        for wrong in found
        if wrong["impact"] in ("serious", "critical")
    ]
    assert said == []
