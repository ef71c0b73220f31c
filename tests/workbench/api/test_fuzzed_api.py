"""What the server's own OpenAPI document allows, or just does not: no 500, no trace, no hang."""

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.workbench.api.asking import served
from tests.workbench.toy_engine import toy_live
from workbench.api.openapi import document

ASKED = [
    (path, mode)
    for path, methods in sorted(document("toy")["paths"].items())
    for mode in ("positive", "negative")
    if mode == "positive" or "post" in methods  # else there is nothing to get wrong
]
SECONDS = 20  # that an answer may take


@cache
def asked(path: str, mode: str) -> Any:
    """What a client may send there, or just may not."""
    import schemathesis  # takes half a second: of the worker that asks

    every = schemathesis.openapi.from_dict(document("toy")).get_all_operations()
    (operation,) = [found.ok() for found in every if found.ok().path == path]
    return operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))


@pytest.fixture(scope="module")
def port():
    with served(toy_live()) as found:
        yield found


@pytest.mark.parametrize(("path", "mode"), ASKED)
def test_nothing_a_client_sends_breaks_the_server(port, path, mode, full):
    @settings(
        max_examples=400 if full else 8,
        phases=[Phase.explicit, Phase.generate],
        deadline=None,
        database=None,
        derandomize=not full,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=asked(path, mode))
    def sent(case):
        answer = case.call(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS)
        text = answer.text
        assert "Traceback" not in text
        assert answer.status_code in (200, 400, 401, 403, 404, 405, 413, 415, 429)
        if answer.status_code != 200:
            line = answer.json()["error"]["message"]
            assert line and "\n" not in line

    sent()
