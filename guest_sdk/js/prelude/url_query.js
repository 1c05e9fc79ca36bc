// `URLSearchParams`: a query as a list of pairs.

import { encodeText } from "runner:host";
import { percentDecode } from "runner:url_parts";

const PLAIN = /[A-Za-z0-9*._-]/;

function encode(text) {
  let made = "";
  for (const char of text) {
    if (PLAIN.test(char)) made += char;
    else if (char === " ") made += "+";
    else for (const byte of encodeText(char)) made += `%${byte < 16 ? "0" : ""}${byte.toString(16).toUpperCase()}`;
  }
  return made;
}

const decode = (text) => percentDecode(text.replaceAll("+", " "));

function pairsOfText(text) {
  return text.split("&").filter((part) => part !== "").map((part) => {
    const equals = part.indexOf("=");
    return equals < 0 ? [decode(part), ""] : [decode(part.slice(0, equals)), decode(part.slice(equals + 1))];
  });
}

function pairsOfList(list) {
  return [...list].map((pair) => {
    const both = [...pair];
    if (both.length !== 2) throw new TypeError("each pair must be an iterable of [name, value]");
    return both.map((part) => `${part}`.toWellFormed());
  });
}

function pairsOf(source) {
  if (source === undefined || source === null) return [];
  if (typeof source !== "object" && typeof source !== "function") {
    const text = `${source}`.toWellFormed();
    return pairsOfText(text.startsWith("?") ? text.slice(1) : text);
  }
  if (source[Symbol.iterator]) return pairsOfList(source);
  return Object.keys(source).map((name) => [name.toWellFormed(), `${source[name]}`.toWellFormed()]);
}

export class URLSearchParams {
  #pairs;
  #changed = () => {};

  constructor(source) {
    this.#pairs = pairsOf(source);
  }

  // Of a URL, which is told of each change.
  static bind(text, changed) {
    const made = new URLSearchParams(text);
    made.#changed = changed;
    return made;
  }

  static replace(made, text) {
    made.#pairs = pairsOf(text);
  }

  get size() { return this.#pairs.length; }

  append(name, value) {
    this.#pairs.push([`${name}`.toWellFormed(), `${value}`.toWellFormed()]);
    this.#changed(this);
  }

  delete(name, value) {
    this.#pairs = this.#pairs.filter((pair) => pair[0] !== `${name}` || (value !== undefined && pair[1] !== `${value}`));
    this.#changed(this);
  }

  get(name) {
    return this.#pairs.find((pair) => pair[0] === `${name}`)?.[1] ?? null;
  }

  getAll(name) {
    return this.#pairs.filter((pair) => pair[0] === `${name}`).map((pair) => pair[1]);
  }

  has(name, value) {
    return this.#pairs.some((pair) => pair[0] === `${name}` && (value === undefined || pair[1] === `${value}`));
  }

  set(name, value) {
    const first = this.#pairs.findIndex((pair) => pair[0] === `${name}`);
    if (first < 0) {
      this.append(name, value);
      return;
    }
    this.#pairs[first] = [`${name}`, `${value}`.toWellFormed()];
    this.#pairs = this.#pairs.filter((pair, index) => index <= first || pair[0] !== `${name}`);
    this.#changed(this);
  }

  // By UTF-16 units, and pairs of one name in the order in which they are.
  sort() {
    this.#pairs.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
    this.#changed(this);
  }

  forEach(f, self) {
    for (const [name, value] of this) f.call(self, value, name, this);
  }

  *entries() {
    for (let i = 0; i < this.#pairs.length; i++) yield [...this.#pairs[i]];
  }

  *keys() {
    for (let i = 0; i < this.#pairs.length; i++) yield this.#pairs[i][0];
  }

  *values() {
    for (let i = 0; i < this.#pairs.length; i++) yield this.#pairs[i][1];
  }

  toString() {
    return this.#pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
  }

  get [Symbol.toStringTag]() { return "URLSearchParams"; }
}

URLSearchParams.prototype[Symbol.iterator] = URLSearchParams.prototype.entries;

export const { bind, replace } = URLSearchParams;
delete URLSearchParams.bind;
delete URLSearchParams.replace;
