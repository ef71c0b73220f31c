// Frames as bytes: what a host sends, as plain values and typed arrays.

export const NOBODY = 65535;
const ARRAYS = {
  "|u1": Uint8Array, "|i1": Int8Array, "<u2": Uint16Array, "<i2": Int16Array,
  "<u4": Uint32Array, "<i4": Int32Array, "<f4": Float32Array, "<f8": Float64Array,
};

// Hosts hand binary over as DataView, ArrayBuffer or Uint8Array; here it is always the last.
function bytesOf(value) {
  if (!value) return new Uint8Array(0);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

// A packed frame (widgets/canvas/packing.py) as one object: plain values and typed arrays. null if empty.
export function unpack(value) {
  let bytes = bytesOf(value);
  if (bytes.length < 8) return null;
  if (bytes.byteOffset % 8) bytes = bytes.slice();
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const frame = head.values;
  for (const [name, [kind, shape, offset]] of Object.entries(head.arrays)) {
    const count = shape.reduce((a, b) => a * b, 1);
    frame[name] = new ARRAYS[kind](bytes.buffer, bytes.byteOffset + 4 + length + offset, count);
  }
  return frame;
}
