"""A prediction as HTML: figures with their bands, one bar of where the time goes, gains."""

from html import escape

from widgets.theme import figure, hue
from workbench.predictions.prediction import Estimate, Prediction

CSS = """
table { border-collapse: collapse; font-size: 12px; }
th { text-align: left; color: var(--wb-faint); font-weight: 600; }
th, td { padding: 6px 28px 6px 0; border-top: 1px solid var(--wb-line); white-space: nowrap; }
thead th { border-top: 0; } thead th.num { text-align: right; }
h2 { margin: 26px 0 8px; }
.band { position: relative; display: block; width: 260px; height: 12px; }
@media (max-width: 1100px) { .band { width: 110px; } th, td { padding-right: 14px; } }
.band i { position: absolute; top: 4px; height: 4px; border-radius: 2px; left: var(--from);
  width: var(--wide); background: var(--wb-idle); }
.band b { position: absolute; top: 0; height: 12px; width: 3px; left: var(--at);
  background: var(--wb-accent); }
.whole { display: flex; height: 26px; max-width: 1100px; border-radius: 4px; overflow: hidden; }
.whole i { display: block; height: 100%; width: var(--share); background: var(--hue); }
.dot { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 8px;
  background: var(--hue); }
.sentence { font-weight: 600; font-size: 16px; margin: 6px 0 10px; }
pre { margin: 4px 0; padding: 8px 12px; background: var(--wb-raised); border-radius: 6px;
  font-size: 12px; overflow-x: auto; max-width: 1100px; }
.wrong { color: var(--wb-wrong); }
"""
SPAN = 2.0  # a band reaches from the value over this to the value times it


def told(found: Prediction, dark: bool) -> str:
    """A prediction as HTML: figures with their bands, one bar of the time, what would help."""
    figures = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td class='num'>{figure(each.value, each.unit)}"
        f"</td><td>{_band(each)}</td><td>{_between(each)}</td></tr>"
        for name, each in found.figures.items()
    )
    notes = "".join(f"<p class='faint'>{escape(note)}</p>" for note in found.notes)
    starts = "".join(f"<pre tabindex='0'>{escape(line)}</pre>" for line in found.commands)
    started = f"<h2>How to start it</h2>{starts}" if starts else ""
    return (
        f"<p>{escape(found.run)}</p><p class='sentence'>{escape(found.sentence)}</p>"
        f"<table>{figures}</table>{notes}{started}"
        f"<h2>Where the time goes</h2>{_whole(found, dark)}{_parts(found, dark)}{_memory(found)}"
    )


def _between(each: Estimate) -> str:
    """The ends of the interval, where it has two."""
    if each.low == each.high:
        return ""
    return f"{figure(each.low, each.unit)} to {figure(each.high, each.unit)}"


def _band(each: Estimate) -> str:
    """The interval on a scale of the value's half to its double."""

    def at(value: float) -> float:
        return min(100.0, max(0.0, 100 * (value / each.value - 1 / SPAN) / (SPAN - 1 / SPAN)))

    low, high = at(each.low), at(each.high)
    style = f"--from:{low:.1f}%;--wide:{high - low:.1f}%;--at:{at(each.value):.1f}%"
    return f'<span class="band" style="{style}" role="presentation"><i></i><b></b></span>'


def _shown(found: Prediction) -> list[tuple[str, float, float]]:
    """Parts by their length: name, seconds, share."""
    total = sum(found.parts.values())
    parts = sorted(found.parts.items(), key=lambda each: -each[1])
    return [(name, seconds, seconds / total) for name, seconds in parts if seconds > 0]


def _whole(found: Prediction, dark: bool) -> str:
    places = {name: place for place, name in enumerate(found.parts)}
    bars = "".join(
        f'<i style="--share:{share:.2%};--hue:{hue(str(places[name]), dark)}" '
        f'title="{escape(name)} {figure(share, "%")}"></i>'
        for name, _, share in _shown(found)
    )
    said = ", ".join(f"{name} {figure(share, '%')}" for name, _, share in _shown(found))
    return f'<div class="whole" role="img" aria-label="{escape(said)}">{bars}</div>'


def _parts(found: Prediction, dark: bool) -> str:
    places = {name: place for place, name in enumerate(found.parts)}
    total = sum(found.parts.values())
    rows = []
    for name, seconds, share in _shown(found):
        without = found.lifted.get(name)
        gain = f"{figure(without, 's')}, {total / without:.2f} times as fast" if without else ""
        dot = f'<span class="dot" style="--hue:{hue(str(places[name]), dark)}"></span>'
        rows.append(
            f"<tr><th scope='row'>{dot}{escape(name)}</th><td class='num'>{figure(seconds, 's')}"
            f"</td><td class='num'>{figure(share, '%')}</td><td>{gain}</td></tr>"
        )
    hidden = "".join(
        f"<p class='faint'>Hidden beside them: {figure(value, 's')} of {escape(name)}.</p>"
        for name, value in found.hidden.items()
    )
    head = (
        "<th scope='col'></th><th scope='col' class='num'>seconds</th>"
        "<th scope='col' class='num'>share</th><th scope='col'>without it</th>"
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{hidden}"


def _memory(found: Prediction) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td class='num'>{figure(value, 'B')}</td></tr>"
        for name, value in found.memory.items()
        if value > 0
    )
    return f"<h2>Memory of the fullest device</h2><table>{rows}</table>" if rows else ""
