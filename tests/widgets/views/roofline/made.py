"""A header with known roofs and spans that lie under them."""

from engine.core.events import Opened, Span
from engine.core.log import Log
from engine.core.tags import tag


def roof(name, kind, value, level="", dtype="", device="here", grade="measured"):
    row = {"device": device, "name": name, "kind": kind, "value": value, "grade": grade}
    return {**row, "level": level, "dtype": dtype}


ROOFS = [
    roof("DRAM read", "bandwidth", 1e9, level="DRAM"),
    roof("L2 read", "bandwidth", 4e9, level="L2"),
    roof("float32 multiply-add", "compute", 1e11, dtype="float32"),
    roof("bfloat16 matmul", "compute", 4e11, dtype="bfloat16"),
    roof("exponentials", "special", 1e8),
    roof("launches", "launch", 1e4),
    roof("HBM", "bandwidth", 1e12, level="HBM", device="gpu", grade="sheet"),
    roof("bfloat16", "compute", 1e15, dtype="bfloat16", device="gpu", grade="sheet"),
]


def span(start, stop, flops, size, lane="matmul", name="panels", **told):
    return Span(stop, lane, name, start, flops, size, tag(**told))


def log(*spans, roofs=ROOFS, clock="wall", config=None, **facts):
    opened = Opened(0.0, config or {}, clock=clock, facts={"roofs": roofs, **facts})
    return Log([opened, *spans])
