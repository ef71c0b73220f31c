"""What a search over fleet designs came to, in sentences and rows: winner, front, what binds."""

from engine.core.names import counted
from widgets.theme import figure
from workbench.fleet_search.play import Row
from workbench.fleet_search.search import Searched

HEAD = ("design", "devices", "goodput", "kept", "first token", "next ones", "power", "cost")


def binds(late: float, late_queueing: float, slow: float) -> str:
    """What keeps requests from their objective, and what helps.

    late, slow: how many missed it by their first token and by their next ones; late_queueing: the
    share of the late ones' time that went into waiting.
    """
    by = []
    if late:
        queueing = late_queueing > 0.5
        share = late_queueing if queueing else 1 - late_queueing
        what = "waiting for a place" if queueing else "computing the prompt"
        helps = "more replicas, or fewer requests" if queueing else "a faster device, or more ranks"
        by.append(f"{late:g} by the first token, {share:.0%} of it {what} ({helps})")
    if slow:
        by.append(f"{slow:g} by the next ones (a smaller batch, or prompts elsewhere)")
    return "; ".join(by)


def cells(found: Searched, row: Row) -> tuple[str, ...]:
    """A design's row under HEAD."""
    told = row.figures
    return (
        row.design.words,
        str(row.design.devices),
        f"{figure(told['goodput'])}/s",
        figure(told["good"], "%"),
        figure(told["ttft"], "s"),
        figure(told["tpot"], "s"),
        figure(told["watts"], "W"),
        cost(found, row),
    )


def cost(found: Searched, row: Row) -> str:
    """Of a million answer tokens."""
    value = found.cost(row)
    return f"${value:.3g}" if found.asked.price else f"{value:.3g} device-hours"


def asked_of(found: Searched) -> str:
    """The objective in words."""
    slo = found.asked.slo
    return (
        f"first token within {figure(slo.ttft, 's')} for {slo.ttft_at:.3g} of the requests, next "
        f"ones within {figure(slo.tpot, 's')} each for {slo.tpot_at:.3g}"
    )


def verdict(found: Searched) -> str:
    """Who won, or what binds where nobody keeps the objective; of what was played so far."""
    played = sum(not row.failed for row in found.rows)
    count = f"{counted(played, 'design')} played"
    winner = found.winner
    if winner is not None:
        return (
            f"{winner.design.words} on {counted(winner.design.devices, 'device')} keeps it at the "
            f"least cost, {cost(found, winner)} a million tokens ({count})"
            f"{_again(found)}.{_paced(found)}"
        )
    nearest = found.nearest
    if nearest is None:
        return f"Nothing is known yet ({count})."
    told = nearest.figures
    missed = binds(told["late"], told["late_queueing"], told["slow"])
    missed = missed or f"{told['refused']:g} requests are refused"
    return (
        f"No design keeps it ({count}). The nearest is {nearest.design.words} with "
        f"{figure(told['good'], '%')} of the requests good; of {told['requests']:g}, missed: "
        f"{missed}.{_alone(found)}"
    )


def _again(found: Searched) -> str:
    if not found.again:
        return ""
    kept = sum(row.meets(found.asked.slo) for row in found.again)
    return f"; of {counted(len(found.again), 'other draw')} it keeps it under {kept}"


def _paced(found: Searched) -> str:
    """What is left of the winner where steps are shorter and longer than modelled."""
    rows = [row for row in found.paced if not row.failed]
    if not rows or len(rows) < len(found.paces):
        return ""

    def ends(key: str, unit: str) -> str:
        low, high = sorted(row.figures[key] for row in rows)
        return f"{figure(low, unit)} to {figure(high, unit)}"

    low, high = (f"{pace:.2f}" for pace in sorted(found.paces))
    slowest = max(rows, key=lambda row: row.figures["tpot"])
    keeps = "keeps" if slowest.meets(found.asked.slo) else "misses"
    return (
        f" With steps {low} to {high} times as long as modelled, between which the cost model errs "
        f"nine times in ten: first token {ends('ttft', 's')}, next ones {ends('tpot', 's')}, "
        f"goodput {ends('goodput', '')}/s; at the longest it {keeps} the objective."
    )


def _alone(found: Searched) -> str:
    """Whether one request at a time would keep it: devices bind, or the device does."""
    row = found.alone
    if row is None or row.failed:
        return ""
    slo, told = found.asked.slo, row.figures
    over = [
        f"{name} takes {figure(told[key], 's')}"
        for key, name, limit in (
            ("ttft", "the first token", slo.ttft), ("tpot", "a next one", slo.tpot),
        )
        if told[key] > limit
    ]  # fmt: skip
    ranks = counted(row.design.tensor, "tensor rank")
    if over:
        return (
            f" Requests served one by one on {ranks} miss it too: {' and '.join(over)}. More "
            "devices of this kind do not help: a faster one does, or a looser objective."
        )
    return (
        f" Requests served one by one on {ranks} keep it: what binds is how many come at once on "
        f"{counted(found.asked.most, 'device')}."
    )


def notes(found: Searched) -> list[str]:
    """What a reader must know of it."""
    told = [f"left out: {what}: {why}" for what, why in found.left_out.items()]
    failed = [row for row in found.rows if row.failed]
    if failed:
        told.append(f"{counted(len(failed), 'design')} without figures; {failed[0].failed}")
    told.append(
        "modelled; every design serves the same requests. Goodput and cost are those of the load "
        "as it comes where the objective is kept, else of requests as they end. Routers and limits "
        f"on a step's tokens are tried for the {found.asked.tried.finalists} best shapes alone; a "
        "difference of goodput below 1% counts as none"
    )
    return told
