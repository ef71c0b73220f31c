"""Devices, links and the roofs they put over work. Data sheets lie in datasets/hardware."""

from engine.hardware.device import Device, Spread, device, devices
from engine.hardware.link import Link, link, links
from engine.hardware.roofline import Bound, attainable, bound, ridge, roofs

__all__ = [
    "Bound",
    "Device",
    "Link",
    "Spread",
    "attainable",
    "bound",
    "device",
    "devices",
    "link",
    "links",
    "ridge",
    "roofs",
]
