// Calls in flight: each has a number, and a promise that its answer settles.

import * as host from "runner:host";
import { answered, refused } from "runner:errors";
import { OK, PART } from "runner:operations";
import { MapClass, PromiseClass, mapDelete, mapGet, mapSet, mapSize } from "runner:primordials";

const waiting = new MapClass();

export function inFlight() {
  return mapSize(waiting);
}

// Makes a call whose answer goes to functions. Its number; throws when it is refused on the spot.
export function start(operation, request, functions) {
  const number = host.call(operation, request);
  if (number <= 0) throw refused(operation, number);
  mapSet(waiting, number, { operation, ...functions });
  return number;
}

// Makes a call; a promise of its answer. `onPart` gets what comes before; an error in it ends the call.
export function ask(operation, request, onPart) {
  return new PromiseClass((resolve, reject) => {
    const number = start(operation, request, {
      onAnswer: resolve,
      onError: reject,
      onPart: onPart && ((part) => {
        try {
          onPart(part);
        } catch (error) {
          giveUp(number);
          reject(error);
        }
      }),
    });
  });
}

// Gives a call up; false if there is none of that number.
export function giveUp(number) {
  if (!mapDelete(waiting, number)) return false;
  host.cancel(number);
  return true;
}

// The host's answer to a call, or a part of it.
export function receive(number, status, payload) {
  const call = mapGet(waiting, number);
  if (!call) return;
  if (status === PART) {
    call.onPart?.(payload);
    return;
  }
  mapDelete(waiting, number);
  if (status === OK) call.onAnswer(payload);
  else call.onError(answered(call.operation, status, payload));
}
