// Hosts of URLs: names, and addresses of both kinds.

import { percentDecode, percentEncode } from "runner:url_parts";

const FORBIDDEN = /[\0\t\n\r #/:<>?@[\\\]^|]/;
const FORBIDDEN_IN_NAME = /[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/;

// --- Names that are not ASCII: punycode, RFC 3492 -----------------------------------------------------------------------

const BASE = 36, TMIN = 1, TMAX = 26, SKEW = 38, DAMP = 700;

function adapt(delta, points, first) {
  let rest = first ? Math.floor(delta / DAMP) : delta >> 1;
  rest += Math.floor(rest / points);
  let bias = 0;
  for (; rest > ((BASE - TMIN) * TMAX) >> 1; bias += BASE) rest = Math.floor(rest / (BASE - TMIN));
  return bias + Math.floor(((BASE - TMIN + 1) * rest) / (rest + SKEW));
}

const digit = (value) => String.fromCharCode(value < 26 ? value + 97 : value + 22);

function variableLength(value, bias) {
  let made = "";
  for (let k = BASE; ; k += BASE) {
    const limit = k <= bias ? TMIN : k >= bias + TMAX ? TMAX : k - bias;
    if (value < limit) return made + digit(value);
    made += digit(limit + ((value - limit) % (BASE - limit)));
    value = Math.floor((value - limit) / (BASE - limit));
  }
}

function punycode(label) {
  const points = [...label].map((char) => char.codePointAt(0));
  const basic = points.filter((point) => point < 0x80);
  let made = String.fromCharCode(...basic) + (basic.length ? "-" : "");
  let next = 0x80, delta = 0, bias = 72, handled = basic.length;
  while (handled < points.length) {
    const least = Math.min(...points.filter((point) => point >= next));
    delta += (least - next) * (handled + 1);
    next = least;
    for (const point of points) {
      if (point < next) delta++;
      if (point !== next) continue;
      made += variableLength(delta, bias);
      bias = adapt(delta, handled + 1, handled === basic.length);
      delta = 0;
      handled++;
    }
    delta++;
    next++;
  }
  return made;
}

function asciiName(name) {
  const labels = name.normalize("NFKC").toLowerCase().normalize("NFC").split(/[.\u3002\uff0e\uff61]/);
  return labels.map((label) => (/[^\0-\x7f]/.test(label) ? `xn--${punycode(label)}` : label)).join(".");
}

// --- IPv4 ---------------------------------------------------------------------------------------------------------------

function ipv4Number(part) {
  if (/^0[xX][0-9A-Fa-f]*$/.test(part)) return part.length === 2 ? 0 : parseInt(part, 16);
  if (/^0[0-7]*$/.test(part)) return parseInt(part, 8);
  return /^[1-9]\d*$/.test(part) ? Number(part) : NaN;
}

function partsOf(name) {
  const parts = name.split(".");
  if (parts.length > 1 && parts.at(-1) === "") parts.pop();
  return parts;
}

function endsInNumber(name) {
  const last = partsOf(name).at(-1);
  return /^\d+$/.test(last) || /^0[xX][0-9A-Fa-f]*$/.test(last);
}

function parseIPv4(name) {
  const parts = partsOf(name);
  const numbers = parts.map(ipv4Number);
  if (parts.length > 4 || numbers.some(Number.isNaN) || numbers.slice(0, -1).some((number) => number > 255)) return null;
  const last = numbers.pop();
  if (last >= 256 ** (4 - numbers.length)) return null;
  const address = numbers.reduce((sum, number, index) => sum + number * 256 ** (3 - index), last);
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".");
}

// --- IPv6 ---------------------------------------------------------------------------------------------------------------

function embeddedIPv4(text) {
  const bytes = text.split(".").map((part) => (/^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256 ? Number(part) : NaN));
  if (bytes.length !== 4 || bytes.some(Number.isNaN)) return null;
  return [bytes[0] * 256 + bytes[1], bytes[2] * 256 + bytes[3]];
}

// The 16-bit pieces of one side of a `::`, or null.
function piecesOf(text, atEnd) {
  if (text === "") return [];
  const pieces = [];
  const parts = text.split(":");
  for (const [index, part] of parts.entries()) {
    const last = index === parts.length - 1 && atEnd && part.includes(".") ? embeddedIPv4(part) : undefined;
    if (last) pieces.push(...last);
    else if (last === undefined && /^[0-9A-Fa-f]{1,4}$/.test(part)) pieces.push(parseInt(part, 16));
    else return null;
  }
  return pieces;
}

// The longest row of zeros is left out, the first of several, if it has two or more.
function writeIPv6(pieces) {
  let best = { start: -1, length: 1 };
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (start + length < 8 && pieces[start + length] === 0) length++;
    if (length > best.length) best = { start, length };
  }
  const text = (from, to) => pieces.slice(from, to).map((piece) => piece.toString(16)).join(":");
  if (best.start < 0) return text(0, 8);
  return `${text(0, best.start)}::${text(best.start + best.length, 8)}`;
}

function parseIPv6(text) {
  const sides = text.split("::");
  if (sides.length > 2) return null;
  const left = piecesOf(sides[0], sides.length === 1);
  const right = sides.length === 2 ? piecesOf(sides[1], true) : [];
  if (left === null || right === null) return null;
  const missing = 8 - left.length - right.length;
  if (sides.length === 1 ? missing !== 0 : missing < 1) return null;
  return `[${writeIPv6([...left, ...new Array(missing).fill(0), ...right])}]`;
}

// A host as it is written, or null when it is none.
export function parseHost(text, special) {
  if (text.startsWith("[")) return text.endsWith("]") ? parseIPv6(text.slice(1, -1)) : null;
  if (!special) return FORBIDDEN.test(text) ? null : percentEncode(text, "");
  const name = asciiName(percentDecode(text));
  if (name === "" || FORBIDDEN_IN_NAME.test(name)) return null;
  return endsInNumber(name) ? parseIPv4(name) : name;
}
