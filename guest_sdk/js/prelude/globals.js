// What stands in the global object, beside the language's own.

import * as host from "runner:host";
import { console, log } from "runner:console";
import { crypto } from "runner:crypto";
import { TextDecoder, TextEncoder } from "runner:encoding";
import { AbortController, AbortSignal, CustomEvent, Event, EventTarget } from "runner:events";
import { structuredClone } from "runner:clone";
import { llm, memory, provider, providers, tool, usage } from "runner:llm";
import { after, cancel, clearTimeout, every, setInterval, setTimeout } from "runner:timers";
import { URL, URLSearchParams } from "runner:url";
import { defineProperty, freeze, keys } from "runner:primordials";

// --- The instance's own affairs ------------------------------------------------------------------------------------

// Asks for a snapshot when the slice has ended; false if this host keeps none.
export function snapshot(reason) {
  return host.snapshot(reason === undefined ? undefined : `${reason}`) > 0;
}

// What is known of the last restore: null, or how many there were, which of them this is, and when.
export function restored() {
  const told = host.restored();
  return told && { count: told.count, generation: told.generation, at: told.at_ms };
}

// What became of the last snapshot: null, or whether it was kept, its size, when, and why not.
export function lastSnapshot() {
  const told = host.lastSnapshot();
  return told && { ok: told.ok, bytes: told.bytes, at: told.at_ms, error: told.error };
}

// --- The object `host` ------------------------------------------------------------------------------------------------

export const surface = freeze({
  llm, tool, memory, log, usage, provider, providers, schedule: after, after, every, cancel, snapshot, restored,
  lastSnapshot,
});

// --- Globals ------------------------------------------------------------------------------------------------------------

const performance = {
  timeOrigin: 0,
  now: () => host.now(),
  mark() {},
  measure() {},
};

function queueMicrotask(f) {
  if (typeof f !== "function") throw new TypeError("expected a function");
  Promise.resolve().then(f);
}

const globals = {
  AbortController, AbortSignal, CustomEvent, Event, EventTarget, TextDecoder, TextEncoder, URL, URLSearchParams,
  clearInterval: clearTimeout, clearTimeout, console, crypto, host: surface, performance, queueMicrotask, setInterval,
  setTimeout, structuredClone,
};

const names = keys(globals);
for (let i = 0; i < names.length; i++) {
  defineProperty(globalThis, names[i], { value: globals[names[i]], writable: true, enumerable: false, configurable: true });
}
