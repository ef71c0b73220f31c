"""Colours as other eyes see them, and how far apart two are: dichromacy by Machado, CIEDE2000."""

import numpy as np

# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
# Deficiency", IEEE TVCG 15(6), 2009: their matrices of severity 1.0, for linear RGB.
EYES = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
# sRGB of IEC 61966-2-1 to CIE XYZ, and its white, D65.
XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = XYZ.sum(axis=1)


def linear(color: str) -> np.ndarray:
    """Linear red, green and blue, 0 to 1 each, of a colour such as "#0072B2"."""
    parts = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def seen(color: str, eyes: str) -> np.ndarray:
    """CIE Lab of a colour as those `EYES` see it."""
    ratio = XYZ @ np.clip(EYES[eyes] @ linear(color), 0, 1) / WHITE
    root = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """CIEDE2000 of two CIE Lab colours: Sharma, Wu and Dalal, Color Res. Appl. 30(1), 2005."""
    (light1, a1, b1), (light2, a2, b2) = one, other
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    raised = 1.5 - 0.5 * np.sqrt(mean**7 / (mean**7 + 25.0**7))
    a1, a2 = a1 * raised, a2 * raised
    chroma1, chroma2 = np.hypot(a1, b1), np.hypot(a2, b2)
    hue1, hue2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (hue2 - hue1 + 180) % 360 - 180 if chroma1 * chroma2 else 0.0
    light, chroma, hue = (light1 + light2) / 2, (chroma1 + chroma2) / 2, hue1 + turn / 2
    if not chroma1 * chroma2:
        hue = hue1 + hue2
    by_hue = (
        1
        - 0.17 * np.cos(np.radians(hue - 30))
        + 0.24 * np.cos(np.radians(2 * hue))
        + 0.32 * np.cos(np.radians(3 * hue + 6))
        - 0.20 * np.cos(np.radians(4 * hue - 63))
    )
    middle = (light - 50) ** 2
    lighter = (light2 - light1) / (1 + 0.015 * middle / np.sqrt(20 + middle))
    fuller = (chroma2 - chroma1) / (1 + 0.045 * chroma)
    turned = 2 * np.sqrt(chroma1 * chroma2) * np.sin(np.radians(turn / 2))
    turned /= 1 + 0.015 * chroma * by_hue
    bent = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    bent *= np.sin(np.radians(60 * np.exp(-(((hue % 360 - 275) / 25) ** 2))))
    return float(np.sqrt(lighter**2 + fuller**2 + turned**2 + bent * fuller * turned))
