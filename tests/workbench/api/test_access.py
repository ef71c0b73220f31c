"""Who the HTTP API answers: hosts, origins, tokens and keys, and no body without bounds."""

import http.client
import json

import pytest

from engine.core.errors import BadInput
from tests.workbench.api.asking import TEXT, ask, served
from tests.workbench.toy_engine import toy_live
from workbench.api.access import access, read_keys
from workbench.api.handlers import BODY, SWALLOWED

TOKEN = "a token of many letters"


@pytest.fixture(scope="module")
def port():
    with served(toy_live()) as found:
        yield found


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_a_body_too_large_is_refused_once_it_is_sent(port, path):
    for size in (BODY + 1, 3 * BODY):
        status, text = ask(port, path, b" " * size)
        assert status == 413
        assert json.loads(text)["error"]["message"] == f"body: {size} bytes; at most {BODY}"
    assert ask(port, path, b" " * BODY)[0] == 400, "as large as may be, and no JSON"


def test_a_body_too_large_in_chunks_of_unknown_number_is_refused(port):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    pieces = (b" " * 65536 for _ in range(BODY // 65536 + 1))
    kind = {"Content-Type": "application/json"}
    link.request("POST", "/v1/completions", pieces, kind, encode_chunked=True)
    assert link.getresponse().status == 413
    link.close()


def test_a_body_far_too_large_is_refused_before_it_is_sent(port):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    link.putrequest("POST", "/v1/completions")
    link.putheader("Content-Type", "application/json")
    link.putheader("Content-Length", str(SWALLOWED + 1))
    link.endheaders()
    assert link.getresponse().status == 413
    link.close()


def test_a_stranger_s_body_is_not_read_before_he_is_refused(port):
    status, text = ask(port, "/v1/completions", b" " * BODY, {"Host": "evil.example"})
    assert status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:1"},
        {"Host": "localhost.evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_foreign_hosts_and_origins_are_refused(port, headers):
    assert ask(port, "/v1/models", headers=headers)[0] == 403


def test_its_own_origin_is_allowed(port):
    assert ask(port, "/v1/models", headers={"Origin": f"http://localhost:{port}"})[0] == 200


def test_a_token_is_asked_for_where_one_is_set():
    with served(toy_live(), TOKEN) as port:
        assert ask(port, "/v1/models")[0] == 401
        assert ask(port, "/v1/models", headers={"Authorization": "Bearer wrong"})[0] == 401
        assert ask(port, "/v1/models", headers={"Authorization": f"bearer {TOKEN}"})[0] == 200


def test_each_client_with_a_key_has_its_own_prefixes(tmp_path):
    (tmp_path / "keys").write_text("# NAME KEY\nann key-of-ann-0123456\nbob key-of-bob-0123456\n")
    live, keys = toy_live(page_size=4), read_keys(tmp_path / "keys")

    def cached(port, key):
        headers = {"Authorization": f"Bearer {key}"}
        status, text = ask(port, "/v1/completions", {**TEXT, "prompt": "abcdefghij"}, headers)
        assert status == 200
        return json.loads(text)["usage"]["prompt_tokens_details"]["cached_tokens"]

    with served(live, keys=keys) as port:
        assert ask(port, "/v1/models")[0] == 401
        (_, ann), (_, bob) = keys
        assert [cached(port, key) for key in (ann, ann, bob, bob)] == [0, 8, 0, 8]
    for text in ("ann", "ann a b", "", "a k\na j", "a k\nb k"):
        (tmp_path / "keys").write_text(text)
        with pytest.raises(BadInput, match="keys"):
            read_keys(tmp_path / "keys")
    with pytest.raises(BadInput, match="key of ann"):
        access("127.0.0.1", 8000, keys=(("ann", "short"),))


def test_beyond_loopback_a_token_is_required():
    with pytest.raises(BadInput, match="token is required"):
        access("0.0.0.0", 8000)
    with pytest.raises(BadInput, match="at least 16"):
        access("0.0.0.0", 8000, "short")
    assert access("0.0.0.0", 8000, TOKEN, ("box:8000",)).hosts >= {"box:8000", "localhost:8000"}
