"""Pictures as SVG text: light, sharp at any size, and without a browser, a font file or a script.

The same `Picture` that Bokeh shows live. Timed plots carry a cursor line of the class "cursor" and
say in `data-` attributes how seconds become pixels, so that a page can move it.
"""

import html

import numpy as np

from widgets import theme
from widgets.picture import Line, Picture, Plot, colour, spread, ticks

LEFT, RIGHT, TOP, GAP = 56, 76, 46, 30  # pixels round the plots; TOP holds title and figures
SIZE = 12  # pixels of text


def svg(
    picture: Picture, question: str, *, width: int = 960, height: int = 96, dark: bool = False,
    cursor: float | None = None,
) -> str:  # fmt: skip
    """The whole picture as one SVG element, `height` pixels for each plot."""
    paint = theme.scheme(dark)
    count = max(1, len(picture.plots))
    across = picture.across
    whole = TOP + (height + GAP if across else count * (height + GAP)) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" '
        f'font-family="{html.escape(theme.FONT)}" font-size="{SIZE}" fill="{paint.ink}">',
        f"<title>{html.escape(question)}</title>",
        f'<rect width="{width}" height="{whole}" fill="{paint.paper}"/>',
        f'<text x="0" y="16" font-size="15" font-weight="600">{html.escape(question)}</text>',
        _figures(picture, width, paint.faint),
    ]
    if picture.empty:
        parts.append(f'<text x="0" y="{TOP + 16}">{html.escape(picture.empty)}</text>')
    for place, plot in enumerate(picture.plots):
        share = width / count if across else width
        x, y = (place * share if across else 0), TOP + (0 if across else place * (height + GAP))
        last = across or place == count - 1
        parts.append(_plot(plot, x, y, share, height, dark, last, cursor))
    if picture.note:
        text = html.escape(picture.note)
        parts.append(f'<text x="{width}" y="{whole - 4}" text-anchor="end">{text}</text>')
    return "".join([*parts, "</svg>"])


def _figures(picture: Picture, width: float, faint: str) -> str:
    shown = "\N{EM SPACE}".join(
        f'<tspan font-size="15" font-weight="600">{html.escape(text)}</tspan>'
        f'<tspan fill="{faint}"> {html.escape(what)}</tspan>'
        for text, what in picture.figures[:4]
    )
    return f'<text x="{width}" y="16" text-anchor="end">{shown}</text>'


def _plot(
    plot: Plot, x: float, y: float, width: float, height: float, dark: bool, last: bool,
    cursor: float | None,
) -> str:  # fmt: skip
    paint = theme.scheme(dark)
    left, right, bottom = x + LEFT, x + width - RIGHT, y + height
    top = y + 14
    by_x, by_y = (right - left) / plot.right, (bottom - top) / plot.top
    parts = [f'<text x="{left}" y="{y + 4}">{html.escape(plot.title)}</text>']
    parts += _grid(plot, left, right, bottom, by_y, paint.line, paint.faint)
    if last:
        for tick in ticks(0, plot.right, max(2, int((right - left) / 150))):
            text = html.escape(theme.figure(tick, plot.x_unit) if tick else "0")
            at = f'x="{left + tick * by_x:.1f}" y="{bottom + 17}"'
            parts.append(f'<text {at} text-anchor="middle" fill="{paint.faint}">{text}</text>')
    for limit in plot.limits:
        text = html.escape(limit.text)
        if limit.vertical:
            at = left + limit.value * by_x
            ends, place = f'x1="{at}" x2="{at}" y1="{top}" y2="{bottom}"', (at + 4, bottom - 4)
        else:
            at = bottom - limit.value * by_y
            ends, place = f'x1="{left}" x2="{right}" y1="{at}" y2="{at}"', (left + 4, at + 13)
        parts.append(f'<line {ends} stroke="{paint.faint}" stroke-dasharray="2 3"/>')
        parts.append(
            f'<text x="{place[0]:.1f}" y="{place[1]:.1f}" fill="{paint.faint}">{text}</text>'
        )
    for line in plot.lines:
        parts.append(_line(line, left, bottom, by_x, by_y, dark))
    parts += _names(plot, right, bottom, by_y, dark) if plot.timed else []
    parts += [
        f'<circle cx="{left + r.x * by_x:.1f}" cy="{bottom - r.y * by_y:.1f}" r="3.5"/>'
        for r in plot.readings
        if np.isfinite(r.x)
    ]
    for dot in plot.dots:
        at = (left + dot.x * by_x, bottom - dot.y * by_y)
        far = dot.x > 0.58 * plot.right
        parts.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3.5" fill="{paint.ink}"/>')
        parts.append(
            f'<text x="{at[0] + (-8 if far else 8):.1f}" y="{at[1] + 14:.1f}" '
            f'text-anchor="{"end" if far else "start"}">{html.escape(dot.text)}</text>'
        )
    if plot.timed:
        scale = f'data-left="{left}" data-scale="{by_x:.9g}" data-right="{right}"'
        hidden = "" if cursor is not None else ' visibility="hidden"'
        at = left + min(max(cursor or 0.0, 0.0), plot.right) * by_x
        parts.append(
            f'<line class="cursor" {scale} x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{bottom}" '
            f'stroke="{paint.ink}"{hidden}/>'
        )
    return "".join(parts)


def _grid(
    plot: Plot, left: float, right: float, bottom: float, by_y: float, line: str, faint: str
) -> list[str]:
    """Lines across with their names left and, for readings, their values right."""
    rows = [(r.y, r.name, r.value) for r in plot.readings]
    if not rows:
        count = 2 if plot.timed else 4
        rows = [(t, theme.figure(t, plot.y_unit), "") for t in ticks(0, plot.top, count)]
    apart = spread([-row[0] * by_y for row in rows], SIZE + 2, -plot.top * by_y - 4, 0)
    parts = []
    for (height, name, value), moved in zip(rows, apart, strict=True):
        at = bottom - height * by_y
        parts.append(
            f'<line x1="{left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" stroke="{line}"/>'
        )
        text = f'y="{bottom + moved + 4:.1f}" fill="{faint}"'
        parts.append(f'<text x="{left - 8}" {text} text-anchor="end">{html.escape(name)}</text>')
        if value:
            parts.append(f'<text x="{right + 8}" {text}>{html.escape(value)}</text>')
    return parts


def _line(line: Line, left: float, bottom: float, by_x: float, by_y: float, dark: bool) -> str:
    if not len(line.x):
        return ""
    xs, ys = left + line.x * by_x, bottom - line.y * by_y
    path = [f"M{xs[0]:.1f} {ys[0]:.1f}"]
    if line.step:
        path += [f"H{x:.1f}V{y:.1f}" for x, y in zip(xs[1:], ys[1:], strict=True)]
    else:
        path += [f"L{x:.1f} {y:.1f}" for x, y in zip(xs[1:], ys[1:], strict=True)]
    dash = ' stroke-dasharray="6 3"' if line.modelled else ""
    stroke = f'stroke="{colour(line.hue, dark)}" stroke-width="1.6"{dash}'
    return f'<path d="{"".join(path)}" fill="none" {stroke}/>'


def _names(plot: Plot, right: float, bottom: float, by_y: float, dark: bool) -> list[str]:
    """The lines' names at their ends, moved apart where they would meet."""
    lines = [line for line in plot.lines if len(line.y)]
    ends = [-float(line.y[-1]) * by_y for line in lines]
    placed = spread(ends, SIZE + 2, -plot.top * by_y, 0)
    return [
        f'<text x="{right + 6}" y="{bottom + at + 4:.1f}" fill="{colour(line.hue, dark)}">'
        f"{html.escape(line.name)}</text>"
        for line, at in zip(lines, placed, strict=True)
    ]
