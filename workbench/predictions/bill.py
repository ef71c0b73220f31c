"""What a predicted run is billed: energy at most by the device's sheet, cost by a price an hour."""

from engine.hardware.device import Device
from workbench.predictions.prediction import Estimate

HOUR = 3600.0


def bill(
    seconds: Estimate, tokens: float, what: str, devices: int, sheet: Device, price: float
) -> dict[str, Estimate]:
    """Figures of `seconds` in which `devices` make that many tokens, `what` they are called.

    Energy is a bound: the sheet's highest sustained power throughout. Cost where `price` is told:
    of a device an hour, in the person's own currency.
    """
    found = {}
    if sheet.tdp:
        watts = devices * sheet.tdp
        found["power, at most"] = Estimate(watts, watts, watts, "W")
        found[f"energy of each {what}, at most"] = seconds.times(watts / tokens, "J")
    if price:
        hourly = devices * price / HOUR
        found[f"cost of a million {what}s"] = seconds.times(1e6 / tokens * hourly, "")
    return found
