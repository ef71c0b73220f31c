// Colours as [red, green, blue] from 0 to 255, and the palette of a theme.

const CONTRAST = 4.5;

function rgb(hex) {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

export function mix(a, b, share) {
  return [0, 1, 2].map((i) => Math.round(a[i] + (b[i] - a[i]) * share));
}

export function css(color, alpha = 1) {
  return `rgba(${color[0]},${color[1]},${color[2]},${alpha})`;
}

// A hue as text may stand in it: mixed with ink until it stands out from the paper (WCAG's 4.5).
export function legible(color, { ink, paper }) {
  for (let share = 0; share < 1; share += 0.1) {
    const mixed = mix(color, ink, share), [a, b] = [luminance(mixed), luminance(paper)];
    if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) >= CONTRAST) return mixed;
  }
  return ink;
}

function luminance(color) {
  const [r, g, b] = color.map((part) => part / 255)
    .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// One pixel of an ImageData seen through a Uint32Array (little-endian, opaque).
export function pixel(color) {
  return (255 << 24 | color[2] << 16 | color[1] << 8 | color[0]) >>> 0;
}

function brightness([r, g, b]) {
  return (0.299 * r + 0.587 * g + 0.114 * b) / 255;
}

export function palette(options, dark) {
  const scheme = options[dark ? "dark" : "light"];
  const names = ["paper", "ink", "faint", "line", "idle", "raised", "wrong"];
  const colors = Object.fromEntries(names.map((name) => [name, rgb(scheme[name])]));
  return { ...colors, dark, hues: scheme.hues.map(rgb), tones: scheme.tones.map(rgb), font: options.font };
}

// Black or white text, whichever reads better on `color`.
export function textOn(color) {
  return brightness(color) > 0.55 ? [20, 24, 29] : [255, 255, 255];
}
