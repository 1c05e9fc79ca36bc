// `URL`.

import * as parts from "runner:url_parts";
import { URLSearchParams, bind, replace } from "runner:url_query";

export { URLSearchParams };

function parsed(input, base) {
  const from = base === undefined ? undefined : parts.parse(`${base}`.toWellFormed());
  return from === null ? null : parts.parse(`${input}`.toWellFormed(), from);
}

export class URL {
  #url;
  #query;

  constructor(input, base) {
    this.#url = parsed(input, base);
    if (this.#url === null) throw Object.assign(new TypeError("Invalid URL"), { code: "ERR_INVALID_URL", input: `${input}` });
    this.#query = bind(this.#url.query ?? "", (query) => {
      const text = query.toString();
      this.#url.query = text === "" ? null : text;
    });
  }

  static canParse(input, base) {
    return parsed(input, base) !== null;
  }

  static parse(input, base) {
    return URL.canParse(input, base) ? new URL(input, base) : null;
  }

  get #isOpaque() {
    return typeof this.#url.path === "string";
  }

  get #takesCredentials() {
    return this.#url.host !== null && this.#url.host !== "" && this.#url.scheme !== "file";
  }

  get href() { return parts.write(this.#url); }

  set href(value) {
    const url = parsed(value);
    if (url === null) throw new TypeError("Invalid URL");
    this.#url = url;
    replace(this.#query, url.query ?? "");
  }

  get origin() {
    const { scheme } = this.#url;
    if (scheme === "blob") return URL.parse(parts.pathText(this.#url))?.origin ?? "null";
    return scheme in parts.PORTS && scheme !== "file" ? `${scheme}://${parts.hostText(this.#url)}` : "null";
  }

  get protocol() { return `${this.#url.scheme}:`; }

  set protocol(value) {
    const [, scheme] = /^([A-Za-z][A-Za-z0-9+.-]*)(?::|$)/.exec(`${value}`) ?? [];
    if (scheme === undefined || (scheme.toLowerCase() in parts.PORTS) !== (this.#url.scheme in parts.PORTS)) return;
    if (scheme.toLowerCase() === "file" && (this.#url.username || this.#url.password || this.#url.port !== null)) return;
    if (this.#url.scheme === "file" && this.#url.host === "") return;
    this.#url.scheme = scheme.toLowerCase();
    if (this.#url.port === parts.PORTS[this.#url.scheme]) this.#url.port = null;
  }

  get username() { return this.#url.username; }

  set username(value) {
    if (this.#takesCredentials) parts.setCredentials(this.#url, `${value}`, undefined);
  }

  get password() { return this.#url.password; }

  set password(value) {
    if (this.#takesCredentials) parts.setCredentials(this.#url, undefined, `${value}`);
  }

  get host() { return parts.hostText(this.#url); }

  set host(value) {
    if (!this.#isOpaque) this.#setHost(`${value}`, true);
  }

  get hostname() { return this.#url.host ?? ""; }

  set hostname(value) {
    if (!this.#isOpaque) this.#setHost(`${value}`, false);
  }

  #setHost(text, port) {
    const [name] = text.split(this.#url.scheme in parts.PORTS ? /[/\\?#]/ : /[/?#]/);
    parts.setHost(this.#url, name, { port });
  }

  get port() { return this.#url.port === null ? "" : `${this.#url.port}`; }

  set port(value) {
    if (!this.#takesCredentials) return;
    const [digits] = /^\d*/.exec(`${value}`);
    if (digits !== "" || `${value}` === "") parts.setPort(this.#url, digits);
  }

  get pathname() { return parts.pathText(this.#url); }

  set pathname(value) {
    if (!this.#isOpaque) parts.setPath(this.#url, `${value}`.replace(/[?#]/g, (char) => (char === "?" ? "%3F" : "%23")));
  }

  get search() { return this.#url.query ? `?${this.#url.query}` : ""; }

  set search(value) {
    const text = `${value}`;
    parts.setQuery(this.#url, text === "" ? null : text.replace(/^\?/, ""));
    replace(this.#query, this.#url.query ?? "");
  }

  get searchParams() { return this.#query; }

  get hash() { return this.#url.fragment ? `#${this.#url.fragment}` : ""; }

  set hash(value) {
    const text = `${value}`;
    parts.setFragment(this.#url, text === "" ? null : text.replace(/^#/, ""));
  }

  toString() { return this.href; }

  toJSON() { return this.href; }

  get [Symbol.toStringTag]() { return "URL"; }
}
