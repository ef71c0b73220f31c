"""Made-up serving runs for tests of the views and for looking at them."""

from engine.core.events import Branch, Closed, Mark, Opened
from engine.core.log import Log
from tests.widgets.made_engine import MadeEngine, Sequence


def serving(
    seed: int = 0,
    *,
    pages: int = 256,
    page_size: int = 16,
    host_pages: int = 64,
    requests: int = 24,
    families: int = 3,
    prefix: int = 96,
    unique: int = 60,
    want: int = 40,
    clock: str = "wall",
    attention: bool = True,
    arrive: float = 0.35,
    steps: int = 4000,
) -> Log:
    """A closed log of `requests` requests in prompt families, with forks, aborts and a reject."""
    engine = MadeEngine(seed, pages, page_size, host_pages, clock)
    rng = engine.random
    facts = {"pages": pages, "page_size": page_size, "host_pages": host_pages, "layers": 4}
    facts |= {"heads": 4, "model": "made", "bytes_per_page": page_size * 2048, "requests": requests}
    engine.log.emit(Opened(0.0, {}, "made", seed, clock, {}, facts))
    heads = [[1000 * f + i for i in range(prefix)] for f in range(1, families + 1)]
    coming = []
    for i in range(requests):
        head = heads[rng.randrange(families)]
        own = [100_000 + i * 1000 + k for k in range(rng.randint(unique // 4, unique))]
        coming.append(Sequence(f"r{i}", head + own, rng.randint(want // 4, want)))
    forked = 0
    while (coming or engine.live or engine.waiting) and engine.steps < steps:
        while coming and rng.random() < arrive:
            seq = coming.pop(0)
            if len(coming) == requests // 2:
                engine.emit(Branch, seq.name, state="queued")
                why = f"needs {pages + 9} pages of {pages}"
                engine.emit(Mark, "scheduler", "reject", f"rejected {seq.name}: {why}")
                engine.emit(Branch, seq.name, state="rejected", why=why)
                continue
            engine.queue(seq)
        engine.step()
        if attention and engine.steps % 4 == 0:
            engine.attention()
        decoding = [s for s in engine.live if s.state == "decode" and not s.parent]
        if decoding and rng.random() < 0.05:
            forked += 1
            parent = rng.choice(decoding)
            engine.fork(parent, f"{parent.name}.{forked}")
        if decoding and rng.random() < 0.01:
            engine.end(rng.choice(decoding), "aborted", "client left")
    engine.log.emit(Closed(engine.now, "finished"))
    return engine.log
