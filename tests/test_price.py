"""The price of a study's tests: counted by what tests are called, judged with slack."""

import json

from tests.price import MEDIAN, MOST, SLACK, over, price_of, table
from workbench.catalogue import study_files

pytest_plugins = ("pytester",)


def test_a_test_is_of_the_study_its_parameters_name():
    seconds = {
        "a.py::test_it_is_told[flover]": 1.0,
        "a.py::test_the_claim_holds[flover-same-answers]": 2.0,
        "a.py::test_the_claim_holds[multi-stream-x]": 4.0,
        "a.py::test_other[streams]": 8.0,
        "a.py::test_other": 16.0,
    }
    prices = price_of(seconds)
    assert prices["flover"] == 3.0
    assert prices["multi-stream"] == 4.0
    assert sum(prices.values()) == 7.0
    assert set(prices) == set(study_files())
    assert next(iter(prices)) == "multi-stream"


def test_what_is_over_its_budget_is_named():
    cheap = dict.fromkeys(study_files(), MEDIAN)
    assert over(cheap) == []
    assert over({**cheap, "flover": MOST * 1.5}) == []  # a slow processor, not a dear study
    assert over({**cheap, "flover": MOST * SLACK + 1})[0].startswith("flover: ")
    assert over(dict.fromkeys(cheap, MEDIAN * SLACK + 1))[0].startswith("the median study")
    assert "over its budget" in table({**cheap, "flover": MOST + 1}, 100.0)


def test_a_run_of_pytest_notes_what_each_test_spent_and_not_what_it_waited(pytester):
    pytester.makeconftest(
        "from tests.spent import Spent\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.register(Spent(config))\n"
    )
    pytester.makepyfile(
        "import time\n"
        "def test_waits():\n    time.sleep(1.0)\n"
        "def test_works():\n"
        "    until = time.process_time() + 0.5\n"
        "    while time.process_time() < until:\n        pass\n"
    )
    pytester.runpytest_inprocess("-n", "0").assert_outcomes(passed=2)
    kept = pytester.path / ".pytest_cache" / "v" / "workbench" / "cpu_seconds"
    spent = json.loads(kept.read_text())
    told = pytester.runpytest_inprocess("-n", "1")
    told.stdout.re_match_lines([r"CPU seconds: \d+ of tests, 0 compiling kernels, -?\d+ else"])
    waits, works = (next(v for k, v in spent.items() if k.endswith(n)) for n in ("waits", "works"))
    assert works >= 0.5 > waits
