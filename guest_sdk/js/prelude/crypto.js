// Randomness of the instance's own. There is no cryptography here: keys are the operator's.

import { randomBytes } from "runner:host";

const MOST_BYTES = 65536;
const INTEGERS = [
  Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array,
];

function hex(bytes, from, to) {
  let text = "";
  for (let i = from; i < to; i++) text += (bytes[i] + 256).toString(16).slice(1);
  return text;
}

export const crypto = {
  getRandomValues(array) {
    if (!INTEGERS.some((type) => array instanceof type)) {
      throw new DOMException("expected an array of integers", "TypeMismatchError");
    }
    if (array.byteLength > MOST_BYTES) {
      throw new DOMException(`at most ${MOST_BYTES} bytes at once`, "QuotaExceededError");
    }
    randomBytes(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return array;
  },

  randomUUID() {
    const bytes = new Uint8Array(16);
    randomBytes(bytes);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const parts = [[0, 4], [4, 6], [6, 8], [8, 10], [10, 16]];
    return parts.map(([from, to]) => hex(bytes, from, to)).join("-");
  },
};
