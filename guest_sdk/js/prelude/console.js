// The log, and `console`, which writes to it.

import { encodeText, now, writeLog } from "runner:host";
import { ownStack } from "runner:errors";
import { format, inspect } from "runner:inspect";
import { MapClass, charCodeAt, freeze, mapDelete, mapGet, mapSet, repeat, slice, split } from "runner:primordials";

const DEBUG = 0, INFO = 1, WARNING = 2, ERROR = 3;

// A host takes 4 KiB by default; what is longer becomes several lines.
const LINE_BYTES = 4000;

let indent = "";

// Where a text of UTF-16 has to end for its UTF-8 to fit, and not in the middle of a character.
function cut(text) {
  let end = text.length < LINE_BYTES ? text.length : LINE_BYTES;
  while (encodeText(slice(text, 0, end)).length > LINE_BYTES) end = (end * 3) >> 2;
  const last = charCodeAt(text, end - 1);
  return end > 1 && end < text.length && last >= 0xd800 && last < 0xdc00 ? end - 1 : end;
}

export function write(level, text) {
  if (text.length * 3 <= LINE_BYTES) {
    writeLog(level, text);
    return;
  }
  for (let rest = text; rest !== "";) {
    const end = cut(rest);
    writeLog(level, slice(rest, 0, end));
    rest = slice(rest, end);
  }
}

function writer(level) {
  return (...args) => write(level, format(args));
}

export const log = writer(INFO);
log.debug = writer(DEBUG);
log.info = writer(INFO);
log.warning = writer(WARNING);
log.error = writer(ERROR);
freeze(log);

// --- console ------------------------------------------------------------------------------------------------

function print(level, args) {
  const text = format(args);
  if (indent === "") {
    write(level, text);
    return;
  }
  const lines = split(text, "\n");
  let made = "";
  for (let i = 0; i < lines.length; i++) made += (i > 0 ? "\n" : "") + indent + lines[i];
  write(level, made);
}

const counts = new MapClass();
const timers = new MapClass();

function elapsed(label, more) {
  const since = mapGet(timers, label);
  if (since === undefined) print(WARNING, [`there is no timer '${label}'`]);
  else print(INFO, [`${label}: ${now() - since}ms`, ...more]);
}

export const console = {
  debug: (...args) => print(DEBUG, args),
  log: (...args) => print(INFO, args),
  info: (...args) => print(INFO, args),
  warn: (...args) => print(WARNING, args),
  error: (...args) => print(ERROR, args),
  trace: (...args) => print(ERROR, [`Trace: ${format(args)}\n${ownStack(new Error())}`]),
  dir: (value) => print(INFO, [inspect(value)]),
  dirxml: (...args) => print(INFO, args),
  table: (value) => print(INFO, [inspect(value)]),
  assert(condition, ...args) {
    if (condition) return;
    const [first, ...rest] = args;
    print(ERROR, typeof first === "string" ? [`Assertion failed: ${first}`, ...rest] : ["Assertion failed", ...args]);
  },
  group(...args) {
    if (args.length) print(INFO, args);
    indent += "  ";
  },
  groupCollapsed(...args) {
    console.group(...args);
  },
  groupEnd() {
    indent = repeat("  ", (indent.length >> 1) - (indent ? 1 : 0));
  },
  count(label = "default") {
    const count = (mapGet(counts, `${label}`) ?? 0) + 1;
    mapSet(counts, `${label}`, count);
    print(INFO, [`${label}: ${count}`]);
  },
  countReset(label = "default") {
    mapDelete(counts, `${label}`);
  },
  time(label = "default") {
    mapSet(timers, `${label}`, now());
  },
  timeLog(label = "default", ...args) {
    elapsed(`${label}`, args);
  },
  timeEnd(label = "default") {
    elapsed(`${label}`, []);
    mapDelete(timers, `${label}`);
  },
};
