// `EventTarget`, `Event`, `CustomEvent` and `AbortController`: what libraries of the web expect to be there.

import { logText } from "runner:errors";
import { write } from "runner:console";
import { setTimeout } from "runner:timers";

export class Event {
  #type;
  #bubbles;
  #cancelable;
  #composed;
  #prevented = false;
  #target = null;
  #stopped = false;
  #timeStamp = Date.now();

  constructor(type, { bubbles = false, cancelable = false, composed = false } = {}) {
    if (arguments.length === 0) throw new TypeError("an event needs a type");
    this.#type = `${type}`;
    this.#bubbles = Boolean(bubbles);
    this.#cancelable = Boolean(cancelable);
    this.#composed = Boolean(composed);
  }

  get type() { return this.#type; }
  get bubbles() { return this.#bubbles; }
  get cancelable() { return this.#cancelable; }
  get composed() { return this.#composed; }
  get target() { return this.#target; }
  get currentTarget() { return this.#target; }
  get srcElement() { return this.#target; }
  get defaultPrevented() { return this.#prevented; }
  get returnValue() { return !this.#prevented; }
  get timeStamp() { return this.#timeStamp; }
  get isTrusted() { return false; }
  get eventPhase() { return this.#target ? Event.AT_TARGET : Event.NONE; }

  preventDefault() {
    if (this.#cancelable) this.#prevented = true;
  }

  stopPropagation() {}

  stopImmediatePropagation() {
    this.#stopped = true;
  }

  composedPath() {
    return this.#target ? [this.#target] : [];
  }

  static begin(event, target) {
    event.#target = target;
    event.#stopped = false;
  }

  static isStopped(event) {
    return event.#stopped;
  }

  static NONE = 0;
  static CAPTURING_PHASE = 1;
  static AT_TARGET = 2;
  static BUBBLING_PHASE = 3;

  get [Symbol.toStringTag]() { return "Event"; }
}

const { begin, isStopped } = Event;
delete Event.begin;
delete Event.isStopped;

export class CustomEvent extends Event {
  #detail;

  constructor(type, options = {}) {
    super(type, options);
    this.#detail = options.detail ?? null;
  }

  get detail() { return this.#detail; }
}

function call(listener, target, event) {
  try {
    if (typeof listener === "function") listener.call(target, event);
    else listener.handleEvent(event);
  } catch (error) {
    write(3, logText(error));
  }
}

export class EventTarget {
  #listeners = [];

  addEventListener(type, listener, options) {
    if (listener === null || listener === undefined) return;
    const { capture = false, once = false, signal } = typeof options === "object" && options ? options : { capture: options };
    if (signal?.aborted) return;
    const same = (entry) => entry.type === `${type}` && entry.listener === listener && entry.capture === Boolean(capture);
    if (this.#listeners.some(same)) return;
    this.#listeners.push({ type: `${type}`, listener, capture: Boolean(capture), once: Boolean(once) });
    signal?.addEventListener("abort", () => this.removeEventListener(type, listener, options), { once: true });
  }

  removeEventListener(type, listener, options) {
    const capture = Boolean(typeof options === "object" && options ? options.capture : options);
    this.#listeners = this.#listeners.filter(
      (entry) => !(entry.type === `${type}` && entry.listener === listener && entry.capture === capture),
    );
  }

  dispatchEvent(event) {
    if (!(event instanceof Event)) throw new TypeError("expected an Event");
    begin(event, this);
    for (const entry of [...this.#listeners]) {
      if (entry.type !== event.type || !this.#listeners.includes(entry)) continue;
      if (entry.once) this.#listeners = this.#listeners.filter((other) => other !== entry);
      call(entry.listener, this, event);
      if (isStopped(event)) break;
    }
    return !event.defaultPrevented;
  }
}

// --- Aborting ----------------------------------------------------------------------------------------------------

const KEY = Symbol("made by an AbortController");

export class AbortSignal extends EventTarget {
  #aborted = false;
  #reason = undefined;
  #onabort = null;
  #followers = [];

  constructor(key) {
    if (key !== KEY) throw new TypeError("Illegal constructor");
    super();
  }

  get aborted() { return this.#aborted; }
  get reason() { return this.#reason; }
  get onabort() { return this.#onabort; }

  set onabort(handler) {
    if (this.#onabort) this.removeEventListener("abort", this.#onabort);
    this.#onabort = typeof handler === "function" ? handler : null;
    if (this.#onabort) this.addEventListener("abort", this.#onabort);
  }

  throwIfAborted() {
    if (this.#aborted) throw this.#reason;
  }

  static #abort(signal, reason) {
    if (signal.#aborted) return;
    signal.#aborted = true;
    signal.#reason = reason === undefined ? new DOMException("This operation was aborted", "AbortError") : reason;
    signal.dispatchEvent(new Event("abort"));
    for (const follower of signal.#followers) AbortSignal.#abort(follower, signal.#reason);
  }

  static abort(reason) {
    const signal = new AbortSignal(KEY);
    AbortSignal.#abort(signal, reason);
    return signal;
  }

  static timeout(ms) {
    const signal = new AbortSignal(KEY);
    const reason = () => new DOMException("The operation was aborted due to timeout", "TimeoutError");
    setTimeout(() => AbortSignal.#abort(signal, reason()), ms);
    return signal;
  }

  static any(signals) {
    const made = new AbortSignal(KEY);
    for (const signal of signals) {
      if (signal.aborted) {
        AbortSignal.#abort(made, signal.reason);
        break;
      }
      signal.#followers.push(made);
    }
    return made;
  }

  static controller() {
    const signal = new AbortSignal(KEY);
    return [signal, (reason) => AbortSignal.#abort(signal, reason)];
  }

  get [Symbol.toStringTag]() { return "AbortSignal"; }
}

const { controller } = AbortSignal;
delete AbortSignal.controller;

export class AbortController {
  #signal;
  #abort;

  constructor() {
    [this.#signal, this.#abort] = controller();
  }

  get signal() { return this.#signal; }

  abort(reason) {
    this.#abort(reason);
  }

  get [Symbol.toStringTag]() { return "AbortController"; }
}
