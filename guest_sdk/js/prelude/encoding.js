// `TextEncoder` and `TextDecoder`, of UTF-8 alone.

import { decodeText, encodeText } from "runner:host";
import { toLowerCase, trim } from "runner:primordials";

const UTF8 = ["utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8"];

function bytesOf(source) {
  if (source === undefined) return new Uint8Array(0);
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  throw new TypeError("expected an ArrayBuffer or a view of one");
}

export class TextEncoder {
  get encoding() {
    return "utf-8";
  }

  encode(text = "") {
    return encodeText(`${text}`);
  }

  encodeInto(text, target) {
    let read = 0, written = 0;
    for (const char of `${text}`) {
      const bytes = encodeText(char);
      if (written + bytes.length > target.length) break;
      target.set(bytes, written);
      written += bytes.length;
      read += char.length;
    }
    return { read, written };
  }
}

// How many bytes at the end may be the beginning of a character.
function unfinished(bytes) {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back];
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
}

export class TextDecoder {
  #held = new Uint8Array(0);
  #begun = false;
  #fatal;
  #ignoreBOM;

  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    if (!UTF8.includes(toLowerCase(trim(`${label}`)))) throw new RangeError(`the encoding '${label}' is not supported`);
    this.#fatal = Boolean(fatal);
    this.#ignoreBOM = Boolean(ignoreBOM);
  }

  get encoding() {
    return "utf-8";
  }

  get fatal() {
    return this.#fatal;
  }

  get ignoreBOM() {
    return this.#ignoreBOM;
  }

  decode(source, { stream = false } = {}) {
    let bytes = bytesOf(source);
    if (this.#held.length > 0) {
      const joined = new Uint8Array(this.#held.length + bytes.length);
      joined.set(this.#held);
      joined.set(bytes, this.#held.length);
      bytes = joined;
    }
    const kept = stream ? unfinished(bytes) : 0;
    this.#held = bytes.slice(bytes.length - kept);
    const text = decodeText(kept ? bytes.subarray(0, bytes.length - kept) : bytes, this.#fatal);
    if (text === undefined) throw new TypeError("the encoded data was not valid for encoding utf-8");
    return this.#withoutMark(text, stream);
  }

  #withoutMark(text, stream) {
    const first = !this.#begun && !this.#ignoreBOM && text[0] === "\ufeff";
    this.#begun = stream && (this.#begun || text.length > 0);
    return first ? text.slice(1) : text;
  }
}
