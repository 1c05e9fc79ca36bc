// What the prelude needs of the language, taken before an agent can put something else in its place. An agent that
// overwrites `Array.prototype` hurts itself, but its answers still arrive.

const bind = Function.prototype.bind;
const call = Function.prototype.call;
const uncurry = bind.bind(call);

export const { apply, getPrototypeOf, ownKeys } = Reflect;
export const { create, defineProperty, freeze, getOwnPropertyDescriptor, hasOwn, keys } = Object;
export const { isArray } = Array;
export const { isFinite, isInteger } = Number;
export const { floor, max, min, trunc } = Math;
export const MapClass = Map;
export const SetClass = Set;
export const PromiseClass = Promise;
export const TypedArrayClass = getPrototypeOf(Uint8Array);

export const arrayJoin = uncurry(Array.prototype.join);
export const arrayPush = uncurry(Array.prototype.push);
export const arrayShift = uncurry(Array.prototype.shift);
export const arraySort = uncurry(Array.prototype.sort);

export const mapDelete = uncurry(Map.prototype.delete);
export const mapForEach = uncurry(Map.prototype.forEach);
export const mapGet = uncurry(Map.prototype.get);
export const mapSet = uncurry(Map.prototype.set);
export const mapSize = uncurry(getOwnPropertyDescriptor(Map.prototype, "size").get);
export const setForEach = uncurry(Set.prototype.forEach);
export const setSize = uncurry(getOwnPropertyDescriptor(Set.prototype, "size").get);

export const promiseThen = uncurry(Promise.prototype.then);

export const dateToISOString = uncurry(Date.prototype.toISOString);
export const regexpToString = uncurry(RegExp.prototype.toString);
export const symbolToString = uncurry(Symbol.prototype.toString);
export const functionToString = uncurry(Function.prototype.toString);

export const charCodeAt = uncurry(String.prototype.charCodeAt);
export const indexOf = uncurry(String.prototype.indexOf);
export const lastIndexOf = uncurry(String.prototype.lastIndexOf);
export const padStart = uncurry(String.prototype.padStart);
export const repeat = uncurry(String.prototype.repeat);
export const slice = uncurry(String.prototype.slice);
export const split = uncurry(String.prototype.split);
export const toLowerCase = uncurry(String.prototype.toLowerCase);
export const trim = uncurry(String.prototype.trim);
