"""Any server with OpenAI's completions as a service: each ask is one HTTP request of its own."""

import http.client
import json
import time
import urllib.error
import urllib.request
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Self
from urllib.parse import urlsplit

from engine.core.errors import BadInput
from engine.core.limits import check, parse_json
from engine.reasoning.fork_join.trajectory import Ask, Reply

SHOWN = 200  # characters of what a server says was wrong
PIECE = 1 << 16  # bytes read at a time


class _Stays(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key is for the server that was named."""

    def redirect_request(self, *_: Any) -> None:
        return None


OPENER = urllib.request.build_opener(_Stays)


class HttpService:
    """Sends asks to `url`, such as `http://127.0.0.1:8000/v1`. Close it, or use it in `with`.

    `seconds`: how long one request may take. `key`: the server's bearer token, if it wants one.
    """

    def __init__(
        self, url: str, model: str, *, key: str = "", temperature: float = 0.0,
        connections: int = 32, seconds: float = 120.0,
    ) -> None:  # fmt: skip
        try:
            parts = urlsplit(url)
            found = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # of brackets, of a port that is none
            found = None
        if not found:
            raise BadInput(f"server {url!r}: no address; give one such as http://127.0.0.1:8000/v1")
        self.url, self.model = url.rstrip("/"), model
        self.key, self.temperature, self.seconds = key, temperature, seconds
        self._pool = ThreadPoolExecutor(connections, thread_name_prefix="fork and join")
        self._open: set[Future[Reply]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End; requests not yet sent are dropped."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def ask(self, ask: Ask) -> None:
        """Send a request in a thread of its own."""
        self._open.add(self._pool.submit(self._reply, ask))

    def replies(self) -> list[Reply]:
        """Wait until a request has been answered or has failed."""
        done, self._open = wait(self._open, return_when=FIRST_COMPLETED)
        return [future.result() for future in done]

    def _reply(self, ask: Ask) -> Reply:
        try:
            answer = self._send(ask)
            choice = answer["choices"][0]
            text, reason = choice["text"], choice["finish_reason"]
            tokens = answer["usage"]["completion_tokens"]
        except urllib.error.HTTPError as fault:
            return self._failed(ask, f"answers {fault.code}: {_said(fault)}")
        except BadInput as fault:  # more than a limit allows
            return Reply(ask.name, "", 0, "failed", str(fault))
        except (urllib.error.URLError, http.client.HTTPException, OSError) as fault:
            return self._failed(ask, f"cannot be asked: {getattr(fault, 'reason', fault)}")
        except (ValueError, KeyError, IndexError, TypeError):
            return self._failed(ask, "answers with what is no completion")
        if not isinstance(text, str) or not isinstance(tokens, int):
            return self._failed(ask, "answers with what is no completion")
        if reason not in ("stop", "length"):
            return self._failed(ask, f"ends an answer by {str(reason)[:SHOWN]!r}")
        return Reply(ask.name, text, tokens, reason)

    def _send(self, ask: Ask) -> Any:
        body = {
            "model": self.model, "prompt": ask.prompt, "max_tokens": ask.tokens,
            "temperature": self.temperature, "stop": [ask.stop],
        }  # fmt: skip
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(
            f"{self.url}/completions", json.dumps(body).encode(), headers
        )
        with OPENER.open(request, timeout=self.seconds) as answer:
            return parse_json(_read(answer, self.seconds), f"server {self.url}")

    def _failed(self, ask: Ask, what: str) -> Reply:
        return Reply(ask.name, "", 0, "failed", f"server {self.url} {what}")


def _read(answer: http.client.HTTPResponse, seconds: float) -> bytes:
    """All of it, within the limits of a request's body and within the time."""
    until, text = time.monotonic() + seconds, b""
    while piece := answer.read1(PIECE):
        text += piece
        check("server", "bytes of an answer", len(text), "body_bytes")
        if time.monotonic() > until:
            raise TimeoutError(f"its answer took over {seconds:g} s")
    return text


def _said(fault: urllib.error.HTTPError) -> str:
    """The server's own words, if it has any."""
    try:
        found = parse_json(fault.read(PIECE), "an error")["error"]
        return str(found["message"] if isinstance(found, dict) else found)[:SHOWN]
    except (BadInput, OSError, ValueError, KeyError, TypeError):
        return str(fault.reason)[:SHOWN]
