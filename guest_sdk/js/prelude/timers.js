// Timers. All but `setTimeout(f, 0)` need a host that stays.

import * as host from "runner:host";
import { giveUp, start } from "runner:calls";
import { write } from "runner:console";
import { HostError, logText } from "runner:errors";
import { AFTER, EVERY, NAMES, UNSUPPORTED } from "runner:operations";
import {
  MapClass, apply, isFinite, mapDelete, mapForEach, mapSet, mapSize, max, promiseThen, trunc,
} from "runner:primordials";

// Functions that the end of the slice calls, by handles that no call's number can be.
const FIRST_HANDLE = 0x80000000;
const soon = new MapClass();
let nextHandle = FIRST_HANDLE;

// What a timer with a payload is handed to; the main module sets it.
let onTick = () => {};
export function setTickHandler(handler) {
  onTick = handler;
}

function report(error) {
  write(3, logText(error));
}

// Calls an agent's function outside any delivery: what goes wrong there has nobody to tell but the log.
export function callAside(f, args) {
  try {
    const result = apply(f, undefined, args);
    if (host.isPromise(result)) promiseThen(result, undefined, report);
  } catch (error) {
    report(error);
  }
}

function delayOf(ms) {
  const delay = trunc(+ms);
  return isFinite(delay) ? max(delay, 0) : 0;
}

function arm(operation, field, ms, what, args) {
  const isFunction = typeof what === "function";
  const fire = isFunction ? () => callAside(what, args) : (payload) => callAside(onTick, [payload]);
  const request = { [field]: delayOf(ms), payload: isFunction ? undefined : what };
  try {
    return start(operation, request, { onAnswer: fire, onPart: fire, onError: report });
  } catch (error) {
    if (!host.isLoading() && error instanceof HostError && error.kind === "unsupported") {
      throw new HostError(`${NAMES[operation]}: timers need a resident host (resident mode)`, "unsupported");
    }
    throw error;
  }
}

export function after(ms, what) {
  return arm(AFTER, "delay_ms", ms, what, []);
}

export function every(ms, what) {
  return arm(EVERY, "interval_ms", ms, what, []);
}

export function cancel(handle) {
  return mapDelete(soon, handle) || giveUp(handle);
}

function checkCallback(f) {
  if (typeof f !== "function") throw new TypeError("a timer's callback must be a function");
}

// Zero is no timer: it is called when the promises of this slice have settled.
export function setTimeout(f, ms = 0, ...args) {
  checkCallback(f);
  if (delayOf(ms) > 0) return arm(AFTER, "delay_ms", ms, f, args);
  const handle = nextHandle++;
  mapSet(soon, handle, { f, args });
  return handle;
}

export function setInterval(f, ms = 0, ...args) {
  checkCallback(f);
  return arm(EVERY, "interval_ms", max(delayOf(ms), 1), f, args);
}

export function clearTimeout(handle) {
  cancel(handle);
}

// Calls the oldest function that waits for the end of the slice; false if there is none.
export function turn() {
  if (mapSize(soon) === 0) return false;
  let found = null, first = 0;
  mapForEach(soon, (entry, handle) => {
    if (found) return;
    found = entry;
    first = handle;
  });
  mapDelete(soon, first);
  callAside(found.f, found.args);
  return true;
}
