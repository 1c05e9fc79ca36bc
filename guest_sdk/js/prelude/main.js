// What the engine's C calls: deliveries, answers, the ends of slices.

import * as host from "runner:host";
import "runner:globals";
import { inFlight, receive } from "runner:calls";
import { write } from "runner:console";
import { WAITS_FOREVER, WAITS_TOO_LONG, describe, logText } from "runner:errors";
import { EVENT, HAND_OVER, LIMIT, MESSAGE, OK, RESTORE, TAKE_OVER, TICK } from "runner:operations";
import { MapClass, apply, arrayPush, arraySort, keys, mapGet, mapSet, promiseThen, PromiseClass } from "runner:primordials";
import { setTickHandler, turn } from "runner:timers";

const ERROR = 3;
const WORDS = {
  __proto__: null, [MESSAGE]: "message", [EVENT]: "event", [TICK]: "tick", [RESTORE]: "restore", [HAND_OVER]: "hand_over",
  [TAKE_OVER]: "take_over",
};
const MISSING = {
  __proto__: null,
  [HAND_OVER]: "the agent has no onHandOver, so it can't be upgraded",
  [TAKE_OVER]: "the agent has no onTakeOver, so it can't take over",
};

// By the kind of delivery, what handles it.
const handlers = { __proto__: null };
// Of an agent that was loaded with test suites, their modules by name.
let suites = null;
// The delivery that is not answered yet, as a mark of its own; null when there is none.
let open = null;

// --- Finding the handlers -----------------------------------------------------------------------------------

const isFunction = (value) => typeof value === "function";

function handle(kind, word, f, self) {
  if (!isFunction(f) || handlers[kind]) return;
  handlers[kind] = { word, f, self };
}

function findHandlers(entry) {
  const chosen = entry.default;
  handle(MESSAGE, "run", entry.run);
  handle(MESSAGE, "message", chosen);
  if (chosen !== null && typeof chosen === "object") {
    handle(MESSAGE, "message", chosen.onMessage, chosen);
    handle(MESSAGE, "run", chosen.run, chosen);
    handle(EVENT, "event", chosen.onEvent, chosen);
    handle(TICK, "tick", chosen.onTick, chosen);
    handle(RESTORE, "restore", chosen.onRestore, chosen);
    handle(HAND_OVER, "hand_over", chosen.onHandOver, chosen);
    handle(TAKE_OVER, "take_over", chosen.onTakeOver, chosen);
  }
  handle(HAND_OVER, "hand_over", entry.onHandOver);
  handle(TAKE_OVER, "take_over", entry.onTakeOver);
  handle(MESSAGE, "run", globalThis.run);
}

function wordsOf() {
  const words = [];
  for (let kind = MESSAGE; kind <= TAKE_OVER; kind++) if (handlers[kind]) arrayPush(words, handlers[kind].word);
  return words;
}

function testsOf(names, modules) {
  const tests = [];
  suites = new MapClass();
  for (let i = 0; i < names.length; i++) {
    mapSet(suites, names[i], modules[i]);
    const exported = arraySort(keys(modules[i]));
    for (let k = 0; k < exported.length; k++) {
      const name = exported[k];
      if (name[0] !== "_" && isFunction(modules[i][name])) arrayPush(tests, [names[i], name]);
    }
  }
  return tests;
}

// The agent's modules have been evaluated: what the host is told of them.
export function loaded(entry, names, modules) {
  findHandlers(entry);
  if (modules) return { tests: testsOf(names, modules) };
  const words = wordsOf();
  if (!handlers[MESSAGE] && !handlers[EVENT] && !handlers[TICK]) throw new TypeError("agent does not define run(input)");
  return { handlers: words };
}

// --- Deliveries ----------------------------------------------------------------------------------------------

function failWith(told) {
  let status = host.fail(told);
  if (status === LIMIT) status = host.fail({ message: told.message });
  return status;
}

function succeed(delivery, value) {
  if (open !== delivery) return;
  open = null;
  let status;
  try {
    status = host.reply(value);
  } catch (error) {
    failWith(describe(error));
    return;
  }
  if (status !== OK) failWith(describe(new RangeError("the reply is larger than this instance may send")));
}

function failed(delivery, error) {
  if (open !== delivery) return;
  open = null;
  failWith(describe(error));
}

// A promise of what a handler's result stands for; null when it stands for itself.
function promised(result) {
  if (host.isPromise(result)) return result;
  const mayWait = result !== null && (typeof result === "object" || isFunction(result));
  return mayWait && isFunction(result.then) ? new PromiseClass((resolve) => resolve(result)) : null;
}

function runTest(payload) {
  const module = mapGet(suites, payload?.suite);
  const test = payload?.test;
  if (!module || !isFunction(module[test])) throw new TypeError(`there is no test '${test}' in '${payload?.suite}'`);
  const pending = promised(module[test]());
  return pending ? promiseThen(pending, () => null) : null;
}

function invoke(kind, payload) {
  if (suites && kind === MESSAGE) return runTest(payload);
  const handler = handlers[kind];
  if (handler) return apply(handler.f, handler.self, [payload]);
  if (kind === RESTORE) return null;
  throw new TypeError(MISSING[kind] ?? `no handler for '${WORDS[kind]}'`);
}

// A kind that this engine has no word for is an event of a later host.
export function deliver(kind, payload) {
  const delivery = (open = { kind });
  try {
    const result = invoke(kind in WORDS ? kind : EVENT, payload);
    const pending = promised(result);
    if (pending) promiseThen(pending, (value) => succeed(delivery, value), (error) => failed(delivery, error));
    else succeed(delivery, result);
  } catch (error) {
    failed(delivery, error);
  }
}

export function wake(number, status, payload) {
  receive(number, status, payload);
}

setTickHandler((payload) => invoke(TICK, payload));

// --- The end of a slice ---------------------------------------------------------------------------------------

export { turn };

export function endSlice(reasons) {
  if (reasons) {
    for (let i = 0; i < reasons.length; i++) write(ERROR, `uncaught in a promise: ${logText(reasons[i])}`);
  }
  if (!open) return;
  const atOnce = open.kind === HAND_OVER || open.kind === TAKE_OVER;
  if (!atOnce && inFlight() > 0) return;
  failed(open, host.isStarved() ? null : new Error(atOnce ? WAITS_TOO_LONG : WAITS_FOREVER));
}

// Why an agent could not be loaded.
export function failure(kind, name, error) {
  const { message, data } = describe(error);
  failWith({ message, data: { line: 0, file: name ?? "", ...data, kind } });
}
