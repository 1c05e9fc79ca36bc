// `structuredClone`: a deep copy that keeps what refers to what.

const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
const VIEWS = [
  Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array,
  BigInt64Array, BigUint64Array, DataView,
];

function refuse(value) {
  const names = { function: "a function", symbol: "a symbol" };
  const text = names[typeof value] ?? "an object";
  throw new DOMException(`${text} could not be cloned`, "DataCloneError");
}

class Cloner {
  #made = new Map();

  clone(value) {
    if (typeof value === "function" || typeof value === "symbol") refuse(value);
    if (typeof value !== "object" || value === null) return value;
    const known = this.#made.get(value);
    return known ?? this.#object(value);
  }

  #keep(value, made) {
    this.#made.set(value, made);
    return made;
  }

  #object(value) {
    if (Array.isArray(value)) return this.#properties(value, this.#keep(value, new Array(value.length)));
    if (value instanceof Date) return this.#keep(value, new Date(value.getTime()));
    if (value instanceof RegExp) return this.#keep(value, new RegExp(value.source, value.flags));
    if (value instanceof Boolean || value instanceof Number || value instanceof String || value instanceof BigInt) {
      return this.#keep(value, Object(value.valueOf()));
    }
    if (value instanceof Map) return this.#map(value);
    if (value instanceof Set) return this.#set(value);
    if (value instanceof ArrayBuffer) return this.#keep(value, value.slice(0));
    if (ArrayBuffer.isView(value)) return this.#view(value);
    if (value instanceof Error) return this.#error(value);
    if ([WeakMap, WeakSet, WeakRef, Promise].some((type) => value instanceof type)) refuse(value);
    return this.#properties(value, this.#keep(value, {}));
  }

  #properties(from, to) {
    for (const key of Object.keys(from)) {
      Object.defineProperty(to, key, { value: this.clone(from[key]), writable: true, enumerable: true, configurable: true });
    }
    return to;
  }

  #map(value) {
    const made = this.#keep(value, new Map());
    for (const [key, item] of [...value]) made.set(this.clone(key), this.clone(item));
    return made;
  }

  #set(value) {
    const made = this.#keep(value, new Set());
    for (const item of [...value]) made.add(this.clone(item));
    return made;
  }

  #view(value) {
    const type = VIEWS.find((known) => value instanceof known) ?? refuse(value);
    const buffer = this.clone(value.buffer);
    const length = value instanceof DataView ? value.byteLength : value.length;
    return this.#keep(value, new type(buffer, value.byteOffset, length));
  }

  #error(value) {
    const name = Object.hasOwn(ERRORS, value.name) ? value.name : "Error";
    const made = this.#keep(value, new ERRORS[name](`${value.message}`));
    const define = (key, copy) =>
      Object.defineProperty(made, key, { value: copy, writable: true, enumerable: false, configurable: true });
    define("stack", `${value.stack}`);
    if (Object.hasOwn(value, "cause")) define("cause", this.clone(value.cause));
    return made;
  }
}

export function structuredClone(value, { transfer = [] } = {}) {
  const made = new Cloner().clone(value);
  for (const buffer of transfer) {
    if (!(buffer instanceof ArrayBuffer)) refuse(buffer);
    buffer.transfer();
  }
  return made;
}
