"""Pictures per second of the attention reader: a head of 16,384 tokens, panned and zoomed.

    python -m tests.bench.attention_fps [SECONDS]

A model of random weights (two layers of four heads) is given that many tokens once. Then keys move
the picture at every animation frame, while tiles come from the server as they come into sight.
Counted are the frames that show other pixels than the frame before. The aim is 50 a second.
"""

import argparse
import sys
import time
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from engine.core.events import Opened
from engine.core.log import Log
from engine.core.run import Run
from engine.inference.kept_tokens import PREFIX
from engine.models.families import parse
from engine.models.loading.load import random_model
from engine.models.model import Model
from tests.bench.visits import load, serve_until_killed, visited
from workbench.attention.ended import Ended
from workbench.pages.shelf.shelf import Shelf

AIM, TOKENS, PAGE, NAME = 50.0, 16_384, 16, "attention"
FIELDS = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 256, "hidden_size": 64,
    "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": TOKENS, "rms_norm_eps": 1e-5,
}  # fmt: skip
MATRIX = "canvas[aria-label*='queries by keys']"
MOVES = {
    "zoomed in and out": "++++++++++++++++++++++++------------------------",
    "panned, some tokens a pixel": "0" + "+" * 8 + ">" * 16 + "v" * 16 + "<" * 16 + "^" * 16,
    "panned, close up": "+" * 24 + ">>>>>>>>v>>>>>>>>v>>>>>>>>v" * 8,
}  # the first keys up to an arrow come once, the rest again and again
MOVE = """async (canvas, [seconds, keys]) => {
  const arrows = { ">": "ArrowRight", "<": "ArrowLeft", "v": "ArrowDown", "^": "ArrowUp" };
  const press = (key) => canvas.dispatchEvent(
    new KeyboardEvent("keydown", { key: arrows[key] || key, bubbles: true }));
  const first = Math.max(0, [...keys].findIndex((key) => key in arrows));
  for (const key of keys.slice(0, first)) press(key);
  let turn = 0, counted = null;
  pictures.count(seconds).then((found) => { counted = found; });
  while (!counted) {
    press(keys[first + (turn++ % (keys.length - first))]);
    await new Promise((done) => requestAnimationFrame(done));
  }
  return counted;
}"""


@dataclass(frozen=True, slots=True)
class Long(Ended):
    """A request of the model above."""

    def open(self) -> Model:
        return random_model(parse(FIELDS, "bench"), seed=0)

    def texts(self) -> list[str]:
        return [f"t{token}" for token in self.tokens_N.tolist()]


def long_request(run: Run, name: str) -> Ended:
    pages = tuple((start, start // PAGE) for start in range(0, TOKENS, PAGE))
    return Long(name, run.log.blobs[PREFIX + name], pages, PAGE)


def serve(port: int) -> None:
    """The app with that run on its shelf, until this process is ended."""
    from workbench.live.live import LiveEngine
    from workbench.pages.app import live_config, make_server

    facts = {"pages": TOKENS // PAGE, "page_size": PAGE}
    log = Log([Opened(0.0, {"model": "bench"}, facts=facts)])
    log.blobs[f"{PREFIX}r0"] = np.random.default_rng(0).integers(0, 256, TOKENS).astype(np.int32)
    shelf = Shelf()
    shelf.keep(Run(log), NAME)
    with patch("workbench.attention.page.ended", long_request):
        server = make_server(port, LiveEngine(live_config("stdlib-5m")), shelf)
        serve_until_killed(server)


def main(seconds: float) -> None:
    with visited((), ("-m", "tests.bench.attention_fps")) as (address, page):
        begun = time.monotonic()
        page.goto(f"{address}/attention?run={NAME}&request=r0")
        page.get_by_text("each cell").wait_for(timeout=300_000)
        sys.stdout.write(f"{TOKENS:,} tokens: {time.monotonic() - begun:.1f} s to the first tile\n")
        page.wait_for_timeout(3_000)
        for name, keys in MOVES.items():
            counted = page.locator(MATRIX).evaluate(MOVE, [seconds, keys])
            sys.stdout.write(
                f"{name}: {counted['pictures']:.1f} pictures a second in {counted['frames']:.1f} "
                f"frames, {1000 * counted['longest']:.0f} ms at most between two "
                f"(aim {AIM:.0f} a second; load {load()})\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=float, nargs="?", default=5.0)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--no-browser", action="store_true")
    given = parser.parse_args()
    if given.port:
        serve(given.port)
    else:
        main(given.seconds)
