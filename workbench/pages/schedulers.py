"""Two schedulers on one trace: a form that runs a model's requests under each, on a described
device's clock."""

import asyncio
from collections.abc import Callable
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.run import Run
from engine.hardware.device import devices
from engine.inference.config import InferenceConfig
from engine.inference.run import run
from engine.inference.serving_time.described import Limits, ServingRun
from engine.inference.serving_time.replica import Replicas
from engine.models.loading.public import public
from workbench.pages.doors.name_field import NameField
from workbench.pages.frame.shell import asked, html

SCHEDULERS: dict[str, dict[str, Any]] = {
    "Decode first, prompts in chunks (vLLM, SGLang)": {},
    "Prompts first, whole (early vLLM)": {"batching": "prefill_first"},
    "Static batches of 32": {"batching": "static_batch", "batching.size": 32},
    "Shortest job first": {"ordering": "shortest_first"},
}
MOST = 2000  # requests: a run keeps some 500 events of each
TAKEN = 200
WIDE: dict[str, Any] = {"size": "small", "margin": (4, 8, 4, 0)}

Kept = Callable[[list[tuple[str, Run]]], None]


class SchedulerForm:
    """Trace, model, device, two schedulers and a button. `keep` takes the two runs, by name."""

    def __init__(self, keep: Kept) -> None:
        self.keep = keep
        names = list(SCHEDULERS)
        self.trace = pmui.TextInput(
            label="Trace", value=asked("trace") or "azure-like.csv", width=260, **WIDE
        )
        self.model = NameField(
            label="Model", value=asked("model") or "llama-3.1-8b", options=list(public()),
            width=190, **WIDE,
        )  # fmt: skip
        known = devices()
        device = asked("device") if asked("device") in known else "h100-sxm"
        self.device = pmui.Select(label="Device", value=device, options=known, width=190, **WIDE)
        self.count = pmui.TextInput(label="Requests", value=str(TAKEN), width=90, **WIDE)
        self.speed = pmui.TextInput(label="Times as fast", value="1", width=100, **WIDE)
        self.first = pmui.Select(label="Scheduler A", value=names[0], options=names, width=340,
                                 **WIDE)  # fmt: skip
        self.second = pmui.Select(label="Scheduler B", value=names[2], options=names, width=340,
                                  **WIDE)  # fmt: skip
        self.go = pmui.Button(label="Run under both", variant="contained", margin=(4, 24, 4, 0))
        self.go.on_click(self.run)
        self.said = html("", margin=(4, 0))

    async def run(self, _: Any = None) -> None:
        """Run the trace under both schedulers and hand the runs on; say in a line what is wrong."""
        self.go.loading, self.said.object = True, ""
        try:
            runs = await asyncio.to_thread(
                under, self.trace.value, self.model.value or "", self.device.value,
                (self.first.value, self.second.value), self.count.value, self.speed.value,
            )  # fmt: skip
        except BadInput as fault:
            self.said.object = f'<p style="color:var(--wb-wrong)">{escape(str(fault))}</p>'
            return
        finally:
            self.go.loading = False
        self.keep(runs)

    @property
    def panel(self) -> Any:
        rows = (
            (self.trace, self.model, self.device, self.count, self.speed),
            (self.first, self.second, self.go),
        )
        boxes = [pn.FlexBox(*row, align_items="center", margin=0) for row in rows]
        return pn.Column(*boxes, self.said, sizing_mode="stretch_width", margin=0)


def under(
    trace: str, model: str, device: str, schedulers: tuple[str, str], count: str, speed: str
) -> list[tuple[str, Run]]:
    """The trace's first requests answered under each scheduler: name and run. Raises BadInput."""
    base = trace_config(trace, model, device, _number(count, "requests", MOST), speed)
    found = []
    for name in dict.fromkeys(schedulers):
        made = Run.execute(run, update(base, SCHEDULERS[name]))
        found.append((name, made))
    if len(found) < 2:
        raise BadInput("schedulers: the same one twice; choose another for B")
    return found


def trace_config(
    trace: str, model: str, device: str, count: int, speed: str = "1"
) -> InferenceConfig:
    """A model served on a device with the cache its memory leaves. Raises BadInput where it does
    not fit or the trace cannot be read."""
    limits = Limits()
    served = update(ServingRun(), {"model": model, "cluster.device": device})
    blocks = Replicas(served).memory.blocks
    return update(InferenceConfig(), {
        "model": model, "dtype": "bfloat16", "executor": "modelled", "executor.device": device,
        "pages": blocks, "page_size": limits.page, "max_running": limits.running,
        "step_tokens": limits.tokens, "workload": "trace", "workload.file": trace,
        "workload.count": count, "workload.speed": speed.strip(),
    })  # fmt: skip


def _number(text: str, what: str, most: int) -> int:
    text = text.strip().replace(",", "")
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= most):
        raise BadInput(f"{what}: give 1 to {most:,}")
    return int(text)
