"""What each study costs CI: CPU seconds of its tests in the last run of pytest, beside its budget.

`python -m tests.price` prints the table of the last run (`pytest` keeps it) and exits with 1 where
a study is over: MEDIAN in the middle of all, MOST for any one. Other work on the machine does not
count, since waiting costs no CPU seconds; a slower processor, or one that shares its core, does:
the limits that fail are SLACK times the budget.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from tests.spent import KEPT
from workbench.catalogue import study_files

MEDIAN, MOST = 3.0, 15.0  # CPU seconds of a study's tests
SLACK = 1.6
CACHE = Path(__file__).resolve().parent.parent / ".pytest_cache" / "v" / KEPT


def price_of(seconds: Mapping[str, float]) -> dict[str, float]:
    """CPU seconds by study, the dearest first, from those by test.

    A test is of the study that its parameters name: `test_it_is_told[flover]`,
    `test_the_claim_holds[flover-same-answers]`.
    """
    found = dict.fromkeys(study_files(), 0.0)
    longest = sorted(found, key=len, reverse=True)
    for test, spent in seconds.items():
        told = re.search(r"\[(.*)\]$", test)
        words = f"{told[1]}-" if told else ""
        slug = next((slug for slug in longest if words.startswith(f"{slug}-")), None)
        if slug is not None:
            found[slug] += spent
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def over(prices: Mapping[str, float], slack: float = SLACK) -> list[str]:
    """What is beyond `slack` times the budget, a line each."""
    told = [
        f"{slug}: {spent:.1f} s, more than {slack:g} × {MOST:g} s"
        for slug, spent in prices.items()
        if spent > slack * MOST
    ]
    middle = median(prices.values())
    if middle > slack * MEDIAN:
        told.append(f"the median study: {middle:.1f} s, more than {slack:g} × {MEDIAN:g} s")
    return told


def table(prices: Mapping[str, float], whole: float) -> str:
    """A line a study, the median, and what all tests took."""
    lines = [f"{'study':28} {'CPU seconds of its tests':>25}"]
    lines += [
        f"{slug:28} {spent:25.1f}{'  over its budget' if spent > MOST else ''}"
        for slug, spent in prices.items()
    ]
    return "\n".join(
        [
            *lines,
            f"{'median (budget 3)':28} {median(prices.values()):25.1f}",
            f"{'all studies':28} {sum(prices.values()):25.1f}",
            f"{'all tests':28} {whole:25.1f}",
        ]
    )


def main() -> int:
    try:
        seconds = json.loads(CACHE.read_text())
    except FileNotFoundError:
        print("no run of pytest to judge: run pytest first", file=sys.stderr)
        return 2
    prices = price_of(seconds)
    print(table(prices, sum(seconds.values())))
    wrong = over(prices)
    print("\n".join(["", "over:", *wrong]) if wrong else "", end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
