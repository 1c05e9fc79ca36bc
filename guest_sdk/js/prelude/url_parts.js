// The parts of a URL, as the WHATWG URL standard parses and writes them.

import { decodeText, encodeText } from "runner:host";
import { parseHost } from "runner:url_host";

export const PORTS = { __proto__: null, ftp: 21, file: null, http: 80, https: 443, ws: 80, wss: 443 };

const SPECIAL = (scheme) => scheme in PORTS;

// --- Percent-encoding -----------------------------------------------------------------------------------------------

const FRAGMENT = ' "<>`';
const QUERY = ' "#<>';
const SPECIAL_QUERY = `${QUERY}'`;
const PATH = `${QUERY}?^\`{}`;
const USERINFO = `${PATH}/:;=@[\\]|`;

export function percentEncode(text, set) {
  let made = "";
  for (const char of text) {
    const code = char.codePointAt(0);
    if (code > 0x1f && code < 0x7f && !set.includes(char)) {
      made += char;
      continue;
    }
    for (const byte of encodeText(char)) made += `%${byte < 16 ? "0" : ""}${byte.toString(16).toUpperCase()}`;
  }
  return made;
}

export function percentDecode(text) {
  if (!text.includes("%")) return text;
  const bytes = encodeText(text);
  const made = new Uint8Array(bytes.length);
  let size = 0;
  for (let i = 0; i < bytes.length; i++) {
    const pair = bytes[i] === 0x25 ? String.fromCharCode(bytes[i + 1] ?? 0, bytes[i + 2] ?? 0) : "";
    if (/^[0-9A-Fa-f]{2}$/.test(pair)) {
      made[size++] = parseInt(pair, 16);
      i += 2;
    } else made[size++] = bytes[i];
  }
  return decodeText(made.subarray(0, size), false);
}

// --- Paths --------------------------------------------------------------------------------------------------------------

const DOT = /^(?:\.|%2e)$/i;
const DOTS = /^(?:\.|%2e){2}$/i;
const DRIVE = /^[A-Za-z][:|]$/;

function shorten(scheme, path) {
  if (scheme === "file" && path.length === 1 && DRIVE.test(path[0])) return;
  path.pop();
}

// Appends the segments of a path to those that it begins from.
function extendPath(url, text) {
  const segments = text.split(SPECIAL(url.scheme) ? /[/\\]/ : "/");
  segments.forEach((segment, index) => {
    const last = index === segments.length - 1;
    if (DOTS.test(segment)) {
      shorten(url.scheme, url.path);
      if (last) url.path.push("");
    } else if (DOT.test(segment)) {
      if (last) url.path.push("");
    } else {
      const drive = url.scheme === "file" && url.path.length === 0 && DRIVE.test(segment);
      url.path.push(drive ? `${segment[0]}:` : percentEncode(segment, PATH));
    }
  });
}

const isSlash = (url, char) => char === "/" || (char === "\\" && SPECIAL(url.scheme));

export function setPath(url, text) {
  url.path = [];
  if (text === "" && !SPECIAL(url.scheme)) return;
  extendPath(url, isSlash(url, text[0]) ? text.slice(1) : text);
}

// --- Parts that have setters of their own ------------------------------------------------------------------------------

export function setQuery(url, text) {
  url.query = text === null ? null : percentEncode(text, SPECIAL(url.scheme) ? SPECIAL_QUERY : QUERY);
}

export function setFragment(url, text) {
  url.fragment = text === null ? null : percentEncode(text, FRAGMENT);
}

export function setCredentials(url, username, password) {
  if (username !== undefined) url.username = percentEncode(username, USERINFO);
  if (password !== undefined) url.password = percentEncode(password, USERINFO);
}

// False when it is no port; what follows the digits is left aside only by a setter.
export function setPort(url, text) {
  if (text === "") {
    url.port = null;
    return true;
  }
  if (!/^\d+$/.test(text) || Number(text) > 0xffff) return false;
  url.port = Number(text) === PORTS[url.scheme] ? null : Number(text);
  return true;
}

// `host` or `host:port`; false when it is none.
export function setHost(url, text, { port = true } = {}) {
  const [, name, , digits] = /^(\[[^\]]*\]|[^:]*)(:(.*))?$/s.exec(text) ?? [];
  if (name === undefined) return false;
  if (name === "" && (SPECIAL(url.scheme) ? url.scheme !== "file" : digits !== undefined)) return false;
  const host = name === "" ? "" : parseHost(name, SPECIAL(url.scheme));
  if (host === null) return false;
  if (digits !== undefined && port && (url.scheme === "file" || !setPort(url, digits))) return false;
  url.host = url.scheme === "file" && host === "localhost" ? "" : host;
  return true;
}

// --- Parsing --------------------------------------------------------------------------------------------------------------

function setAuthority(url, text) {
  const at = text.lastIndexOf("@");
  if (at >= 0) {
    if (at === text.length - 1) return false;
    const [, username, , password] = /^([^:]*)(:(.*))?$/s.exec(text.slice(0, at));
    setCredentials(url, username, password ?? "");
  }
  return setHost(url, text.slice(at + 1));
}

// What follows `//`: an authority and a path.
function parseAuthority(url, text) {
  const end = text.search(SPECIAL(url.scheme) ? /[/\\]/ : /\//);
  if (!setAuthority(url, end < 0 ? text : text.slice(0, end))) return null;
  setPath(url, end < 0 ? "" : text.slice(end));
  return url;
}

function parseFile(url, text, base) {
  url.host = "";
  const slashes = /^[/\\]*/.exec(text)[0].length;
  if (slashes >= 2) {
    const rest = text.slice(2);
    const end = rest.search(/[/\\]/);
    const name = end < 0 ? rest : rest.slice(0, end);
    if (DRIVE.test(name)) setPath(url, rest);
    else {
      if (!setHost(url, name)) return null;
      setPath(url, end < 0 ? "" : rest.slice(end));
    }
    return url;
  }
  const inherits = base?.scheme === "file";
  if (inherits) url.host = base.host;
  if (slashes === 1) {
    setPath(url, text);
    if (inherits && DRIVE.test(base.path[0] ?? "") && !DRIVE.test(url.path[0] ?? "")) url.path.unshift(base.path[0]);
    return url;
  }
  return inherits ? parseBeside(url, text, base) : (setPath(url, text), url);
}

// A path that begins where the base's last segment does.
function parseBeside(url, text, base) {
  url.path = [...base.path];
  if (text === "") {
    if (url.query === null) url.query = base.query;
    return url;
  }
  if (url.scheme === "file" && DRIVE.test(text.slice(0, 2)) && /^$|[/\\]/.test(text[2] ?? "")) url.path = [];
  else shorten(url.scheme, url.path);
  extendPath(url, text);
  return url;
}

function parseRelative(url, text, base) {
  if (isSlash(url, text[0]) && isSlash(url, text[1])) {
    return parseAuthority(url, SPECIAL(url.scheme) ? text.replace(/^[/\\]+/, "") : text.slice(2));
  }
  Object.assign(url, { username: base.username, password: base.password, host: base.host, port: base.port });
  if (isSlash(url, text[0])) {
    setPath(url, text);
    return url;
  }
  return parseBeside(url, text, base);
}

function parseWithScheme(url, text, base) {
  if (url.scheme === "file") return parseFile(url, text, base);
  if (SPECIAL(url.scheme)) {
    if (base?.scheme === url.scheme && !isSlash(url, text[0])) return parseRelative(url, text, base);
    return parseAuthority(url, text.replace(/^[/\\]+/, ""));
  }
  if (text.startsWith("//")) return parseAuthority(url, text.slice(2));
  if (text.startsWith("/")) {
    setPath(url, text);
    return url;
  }
  url.path = percentEncode(text, "");
  return url;
}

function parseWithoutScheme(url, text, base) {
  if (!base) return null;
  url.scheme = base.scheme;
  if (typeof base.path === "string") {
    if (text !== "" || url.query !== null || url.fragment === null) return null;
    return { ...base, fragment: url.fragment };
  }
  return url.scheme === "file" ? parseFile(url, text, base) : parseRelative(url, text, base);
}

// The parts of a URL, or null when it is none. `base` has the parts of the one that it is relative to.
export function parse(input, base) {
  const text = input.replace(/^[\0-\x20]+|[\0-\x20]+$/g, "").replace(/[\t\n\r]/g, "");
  const url = { scheme: "", username: "", password: "", host: null, port: null, path: [], query: null, fragment: null };
  const [, rest, , fragment] = /^([^#]*)(#(.*))?$/s.exec(text);
  const [, scheme] = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(rest) ?? [];
  url.scheme = scheme?.toLowerCase() ?? base?.scheme ?? "";
  const [, path, , query] = /^([^?]*)(\?(.*))?$/s.exec(scheme === undefined ? rest : rest.slice(scheme.length + 1));
  setQuery(url, query ?? null);
  setFragment(url, fragment ?? null);
  return scheme === undefined ? parseWithoutScheme(url, path, base) : parseWithScheme(url, path, base);
}

// --- Writing --------------------------------------------------------------------------------------------------------------

export function pathText(url) {
  if (typeof url.path === "string") return url.path;
  return url.path.map((segment) => `/${segment}`).join("");
}

export function hostText(url) {
  if (url.host === null) return "";
  return url.port === null ? url.host : `${url.host}:${url.port}`;
}

export function write(url) {
  let made = `${url.scheme}:`;
  if (url.host !== null) {
    made += "//";
    if (url.username || url.password) made += `${url.username}${url.password ? `:${url.password}` : ""}@`;
    made += hostText(url);
  } else if (typeof url.path !== "string" && url.path.length > 1 && url.path[0] === "") made += "/.";
  made += pathText(url);
  if (url.query !== null) made += `?${url.query}`;
  if (url.fragment !== null) made += `#${url.fragment}`;
  return made;
}
