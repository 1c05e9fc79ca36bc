// Values as text for people: what `console.log` writes, in the form that Node's users know.

import { isProxy, lookIntoPromise } from "runner:host";
import {
  MapClass, SetClass, TypedArrayClass, apply, arrayJoin, arrayPush, charCodeAt, dateToISOString, functionToString,
  getOwnPropertyDescriptor, getPrototypeOf, hasOwn, indexOf, isArray, mapForEach, mapSize, min, ownKeys, padStart,
  regexpToString, repeat, setForEach, setSize, slice, symbolToString, toLowerCase, trim,
} from "runner:primordials";

const DEPTH = 2;
const ITEMS = 100;
const STRING_CHARS = 10_000;
const LINE_CHARS = 69;

const ESCAPES = {
  __proto__: null, "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\\": "\\\\",
};

// The first kind of quote that the text does not have, so that it needs no escape.
function quoteOf(text) {
  if (indexOf(text, "'") < 0) return "'";
  if (indexOf(text, '"') < 0) return '"';
  return indexOf(text, "`") < 0 ? "`" : "'";
}

export function quoted(text) {
  const mark = quoteOf(text);
  let made = mark;
  for (let i = 0; i < text.length; i++) {
    const char = text[i], code = charCodeAt(text, i);
    if (char === mark) made += `\\${char}`;
    else if (ESCAPES[char]) made += ESCAPES[char];
    else if (code < 0x20 || code === 0x7f) made += `\\x${padStart(code.toString(16).toUpperCase(), 2, "0")}`;
    else made += char;
  }
  return made + mark;
}

function isName(text) {
  return text.length > 0 && /^[A-Za-z_$][\w$]*$/.test(text);
}

function keyText(key) {
  if (typeof key === "symbol") return `[${symbolToString(key)}]`;
  return isName(key) ? key : quoted(key);
}

// The name of the class that made an object; null for one without a prototype.
function className(object) {
  for (let at = object; at !== null; at = getPrototypeOf(at)) {
    const found = getOwnPropertyDescriptor(at, "constructor");
    if (found && typeof found.value === "function" && found.value.name !== "") return found.value.name;
  }
  return null;
}

function prefixOf(object, plain) {
  const name = className(object);
  const tag = object[Symbol.toStringTag];
  const tagged = typeof tag === "string" && tag !== "" && tag !== name ? ` [${tag}]` : "";
  if (name === null) return `[${plain}: null prototype]${tagged} `;
  return name === plain && !tagged ? "" : `${name}${tagged} `;
}

class Inspector {
  constructor(depth) {
    this.depth = depth;
    this.path = [];
    this.circular = null;
  }

  show(value, level) {
    switch (typeof value) {
      case "string": return level === 0 ? value : quoted(slice(value, 0, STRING_CHARS));
      case "number": return value === 0 && 1 / value < 0 ? "-0" : `${value}`;
      case "bigint": return `${value}n`;
      case "symbol": return symbolToString(value);
      case "function":
      case "object": return value === null ? "null" : this.object(value, level);
      default: return `${value}`;
    }
  }

  object(object, level) {
    for (let i = 0; i < this.path.length; i++) {
      if (this.path[i] !== object) continue;
      this.circular = object;
      return "[Circular *1]";
    }
    // A trap of a proxy may do anything, and showing something should do nothing.
    if (isProxy(object)) return typeof object === "function" ? "[Function (proxy)]" : "[Proxy]";
    arrayPush(this.path, object);
    const text = this.inner(object, level);
    this.path.length--;
    return this.circular === object ? `<ref *1> ${text}` : text;
  }

  inner(object, level) {
    if (typeof object === "function") {
      return this.withProperties(functionText(object), object, level, ["length", "name", "prototype"]);
    }
    if (object instanceof Error) return this.error(object, level);
    if (isArray(object)) return this.list(object, level, prefixOf(object, "Array"), object.length);
    if (object instanceof MapClass) return this.map(object, level);
    if (object instanceof SetClass) return this.set(object, level);
    if (object instanceof TypedArrayClass) {
      return this.list(object, level, `${className(object)}(${object.length}) `, object.length);
    }
    if (object instanceof Date) return isNaN(object) ? "Invalid Date" : dateToISOString(object);
    if (object instanceof RegExp) return this.withProperties(regexpToString(object), object, level, ["lastIndex"]);
    const promise = lookIntoPromise(object);
    if (promise) return this.promise(promise[0], promise[1], level);
    for (const boxed of [Number, String, Boolean]) {
      if (object instanceof boxed) return `[${boxed.name}: ${this.show(object.valueOf(), level + 1)}]`;
    }
    if (object instanceof ArrayBuffer) return `ArrayBuffer { byteLength: ${object.byteLength} }`;
    return this.plain(object, level);
  }

  promise(state, value, level) {
    if (state === "pending") return "Promise { <pending> }";
    return `Promise { ${state === "rejected" ? "<rejected> " : ""}${this.show(value, level + 1)} }`;
  }

  error(error, level) {
    const head = `${error.name ?? "Error"}${error.message ? `: ${error.message}` : ""}`;
    const stack = typeof error.stack === "string" && trim(error.stack) ? `\n${trimEnd(error.stack)}` : "";
    const hidden = ["stack", "message", "name"];
    const text = stack || level === 0 ? head + stack : `[${head}]`;
    if (hasOwn(error, "cause")) hidden.push("cause");
    const more = hasOwn(error, "cause") ? `${text}\n  [cause]: ${this.show(error.cause, level + 1)}` : text;
    return this.withProperties(more, error, level, hidden);
  }

  withProperties(text, object, level, hidden) {
    const entries = this.entries(object, level, (key) => {
      for (let i = 0; i < hidden.length; i++) if (hidden[i] === key) return false;
      return true;
    });
    return entries.length ? `${text} ${layOut(entries, "{", "}", level)}` : text;
  }

  tooDeep(level, name) {
    return level > this.depth ? `[${name}]` : null;
  }

  list(array, level, prefix, length) {
    const deep = this.tooDeep(level, className(array) ?? "Array");
    if (deep) return deep;
    const entries = [];
    let holes = 0;
    const shown = min(length, ITEMS);
    const endHoles = () => {
      if (holes) arrayPush(entries, `<${holes} empty item${holes > 1 ? "s" : ""}>`);
      holes = 0;
    };
    for (let i = 0; i < shown; i++) {
      if (isArray(array) && !hasOwn(array, i)) {
        holes++;
        continue;
      }
      endHoles();
      arrayPush(entries, this.show(array[i], level + 1));
    }
    endHoles();
    if (length > shown) arrayPush(entries, `... ${length - shown} more item${length - shown > 1 ? "s" : ""}`);
    if (isArray(array)) {
      const extra = this.entries(array, level, (key) => typeof key === "symbol" || !/^(\d+|length)$/.test(key));
      for (let i = 0; i < extra.length; i++) arrayPush(entries, extra[i]);
    }
    return prefix + layOut(entries, "[", "]", level);
  }

  map(map, level) {
    const deep = this.tooDeep(level, "Map");
    if (deep) return deep;
    const entries = [];
    mapForEach(map, (value, key) => {
      if (entries.length < ITEMS) arrayPush(entries, `${this.show(key, level + 1)} => ${this.show(value, level + 1)}`);
    });
    return `${className(map) ?? "Map"}(${mapSize(map)}) ${layOut(entries, "{", "}", level)}`;
  }

  set(set, level) {
    const deep = this.tooDeep(level, "Set");
    if (deep) return deep;
    const entries = [];
    setForEach(set, (value) => {
      if (entries.length < ITEMS) arrayPush(entries, this.show(value, level + 1));
    });
    return `${className(set) ?? "Set"}(${setSize(set)}) ${layOut(entries, "{", "}", level)}`;
  }

  plain(object, level) {
    const deep = this.tooDeep(level, className(object) ?? "Object: null prototype");
    if (deep) return deep;
    return prefixOf(object, "Object") + layOut(this.entries(object, level, () => true), "{", "}", level);
  }

  entries(object, level, wanted) {
    const entries = [];
    const names = ownKeys(object);
    for (let i = 0; i < names.length && entries.length < ITEMS; i++) {
      const found = getOwnPropertyDescriptor(object, names[i]);
      if (!found?.enumerable || !wanted(names[i])) continue;
      arrayPush(entries, `${keyText(names[i])}: ${this.property(found, level)}`);
    }
    return entries;
  }

  property(found, level) {
    if (found.get) return found.set ? "[Getter/Setter]" : "[Getter]";
    if (found.set) return "[Setter]";
    return this.show(found.value, level + 1);
  }
}

function trimEnd(text) {
  let end = text.length;
  while (end > 0 && charCodeAt(text, end - 1) <= 0x20) end--;
  return slice(text, 0, end);
}

function functionText(f) {
  const isClass = slice(functionToString(f), 0, 5) === "class";
  const parent = isClass ? getPrototypeOf(f)?.name : "";
  if (isClass) return `[class ${f.name || "(anonymous)"}${parent ? ` extends ${parent}` : ""}]`;
  const kind = className(f) ?? "Function";
  return f.name ? `[${kind}: ${f.name}]` : `[${kind} (anonymous)]`;
}

// One line if it is short, else a line for each entry.
function layOut(entries, open, close, level) {
  if (entries.length === 0) return open + close;
  let size = entries.length * 2;
  let broken = false;
  for (let i = 0; i < entries.length; i++) {
    size += entries[i].length;
    broken ||= indexOf(entries[i], "\n") >= 0;
  }
  if (!broken && size + level * 2 <= LINE_CHARS) {
    return `${open} ${arrayJoin(entries, ", ")} ${close}`;
  }
  const indent = repeat("  ", level + 1);
  return `${open}\n${indent}${arrayJoin(entries, `,\n${indent}`)}\n${repeat("  ", level)}${close}`;
}

// Never throws: a getter or a proxy of the agent's may.
export function inspect(value, depth = DEPTH, level = 1) {
  try {
    return new Inspector(depth + level).show(value, level);
  } catch {
    return typeof value === "object" ? "[object that can't be shown]" : `[${typeof value}]`;
  }
}

const FORMATS = {
  __proto__: null,
  s: (value) => (typeof value === "object" || typeof value === "symbol" ? inspect(value, 0) : `${value}`),
  d: (value) => (typeof value === "bigint" ? `${value}n` : `${typeof value === "object" ? NaN : Number(value)}`),
  i: (value) => (typeof value === "bigint" ? `${value}n` : `${typeof value === "object" ? NaN : parseInt(value)}`),
  f: (value) => `${typeof value === "symbol" ? NaN : parseFloat(value)}`,
  j: (value) => JSON.stringify(value) ?? "undefined",
  o: (value) => inspect(value, 4),
  O: (value) => inspect(value),
  c: () => "",
};

function filled(args) {
  const text = args[0];
  let made = "", used = 1;
  for (let i = 0; i < text.length; i++) {
    const next = text[i + 1];
    if (text[i] !== "%" || next === undefined) made += text[i];
    else if (next === "%") made += text[i++];
    else if (FORMATS[next] && used < args.length) {
      made += FORMATS[next](args[used++]);
      i++;
    } else made += text[i];
  }
  return [made, used];
}

// The arguments of `console.log` as one text.
export function format(args) {
  let made = "", used = 0;
  if (typeof args[0] === "string" && args.length > 1) [made, used] = filled(args);
  for (; used < args.length; used++) {
    if (used > 0) made += " ";
    made += typeof args[used] === "string" ? args[used] : inspect(args[used], DEPTH, 0);
  }
  return made;
}
