// Errors: those of the host, and what is told of an agent's own.

import { isError, isLoading, isStarved } from "runner:host";
import { DENIED, INVALID, LIMIT, NAMES, UNSUPPORTED } from "runner:operations";
import { arrayJoin, arrayPush, indexOf, lastIndexOf, slice, split, trim } from "runner:primordials";

const MESSAGE_CHARS = 4096;
const STACK_CHARS = 16384;

// A request that the host refused, or that failed outside. `kind` is `denied`, `limit`, `unsupported`, `not_found`,
// `invalid`, `upstream` or `cancelled`.
export class HostError extends Error {
  constructor(message, kind = "upstream") {
    super(message);
    this.kind = kind;
  }
}
Object.defineProperty(HostError.prototype, "name", {
  value: "HostError", writable: true, enumerable: false, configurable: true,
});

export const WAITS_TOO_LONG = "an agent is upgraded at once: it can't wait for anything meanwhile";
export const WAITS_FOREVER = "the agent waits for something that will never come";

// Why a request was refused on the spot.
export function refused(operation, status) {
  const name = NAMES[operation];
  if (isLoading()) return new HostError(`${name}: an agent can't ask anything while it loads`, "unsupported");
  if (status === DENIED) return new HostError(`${name} is not granted`, "denied");
  if (status === LIMIT) return new HostError(`${name}: a limit of this instance was met`, "limit");
  if (status === UNSUPPORTED) return new HostError(`${name} is not available here`, "unsupported");
  if (status === INVALID) return new HostError(`${name}: the request has a wrong shape`, "invalid");
  return new HostError(`${name} failed`, "upstream");
}

const KINDS = { __proto__: null, [DENIED]: "denied", [LIMIT]: "limit", [UNSUPPORTED]: "unsupported", [INVALID]: "invalid" };

// The error of a wake: the host says what happened.
export function answered(operation, status, payload) {
  const told = payload !== null && typeof payload === "object";
  const message = told && typeof payload.message === "string" ? payload.message : refused(operation, status).message;
  return new HostError(message, told && typeof payload.kind === "string" ? payload.kind : KINDS[status] ?? "upstream");
}

// A text of the agent's making, whatever stands in the place of one.
function safely(read) {
  try {
    return `${read()}`;
  } catch {
    return "";
  }
}

const has = (line, text) => line !== undefined && indexOf(line, text) >= 0;
const isInternal = (line) => has(line, "(runner:") || has(line, "at runner:");
// Of the language's own functions, those that the prelude called or was called by.
const isGlue = (line, before, after) => has(line, "(native)") && (isInternal(before) || isInternal(after));

// The author's lines of a stack.
export function ownStack(error) {
  const lines = split(safely(() => error.stack ?? ""), "\n");
  const kept = [];
  for (let i = 0; i < lines.length; i++) {
    if (!trim(lines[i]) || isInternal(lines[i]) || isGlue(lines[i], lines[i - 1], lines[i + 1])) continue;
    arrayPush(kept, lines[i]);
  }
  return slice(arrayJoin(kept, "\n"), 0, STACK_CHARS);
}

// File, line and column of `at name (file:line:column)`, or null.
function place(line) {
  const open = lastIndexOf(line, "(");
  const text = open >= 0 ? slice(line, open + 1, lastIndexOf(line, ")")) : slice(trim(line), 3);
  const column = lastIndexOf(text, ":");
  const row = column > 0 ? lastIndexOf(text, ":", column - 1) : -1;
  if (row < 1) return null;
  return { file: slice(text, 0, row), line: +slice(text, row + 1, column), column: +slice(text, column + 1) };
}

function firstPlace(stack) {
  const lines = split(stack, "\n");
  for (let i = 0; i < lines.length; i++) {
    const found = place(lines[i]);
    if (found && found.line > 0) return found;
  }
  return {};
}

// An object that only inherits from an error's prototype, which a proxy may well refuse to say.
function isErrorLike(value) {
  try {
    return value instanceof Error;
  } catch {
    return false;
  }
}

// What is told of an error: a message for people, and its parts. Never throws.
export function describe(error) {
  // What the interpreter throws when it has no memory for an error.
  if (error === null && isStarved()) {
    return { message: "InternalError: out of memory", data: { name: "InternalError", message: "out of memory", stack: "" } };
  }
  if (!isError(error) && !isErrorLike(error)) {
    const text = slice(safely(() => (typeof error === "symbol" ? "a symbol" : error)), 0, MESSAGE_CHARS);
    return { message: text, data: { name: typeof error, message: text, stack: "" } };
  }
  const name = slice(safely(() => error.name) || "Error", 0, 256);
  const message = slice(safely(() => error.message), 0, MESSAGE_CHARS);
  const stack = ownStack(error);
  const data = { name, message, stack, ...firstPlace(stack) };
  if (error instanceof HostError) data.kind = safely(() => error.kind);
  return { message: message ? `${name}: ${message}` : name, data };
}

// An error for the log: as `describe`, and where it came from.
export function logText(error) {
  const { message, data } = describe(error);
  return data.stack ? `${message}\n${data.stack}` : message;
}
