// Values as text that is the same in every JavaScript engine, so that programs can be compared by what they return.

function showKey(key) {
  return typeof key === "symbol" ? `[${String(key)}]` : JSON.stringify(key);
}

function showObject(value, seen) {
  if (seen.includes(value)) return "<circular>";
  const inner = (item) => show(item, [...seen, value]);
  if (Array.isArray(value)) {
    const items = Array.from({ length: value.length }, (_, index) => (index in value ? inner(value[index]) : "<hole>"));
    return `[${items.join(", ")}]`;
  }
  if (value instanceof Error) return `<${value.name}>`;
  if (value instanceof Date) return `Date(${Number.isNaN(value.getTime()) ? "invalid" : value.toISOString()})`;
  if (value instanceof RegExp) return String(value);
  if (value instanceof Map) return `Map{${[...value].map(([key, item]) => `${inner(key)} => ${inner(item)}`).join(", ")}}`;
  if (value instanceof Set) return `Set{${[...value].map(inner).join(", ")}}`;
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return `${value.constructor.name}[${Array.from(value, inner).join(", ")}]`;
  const fields = Reflect.ownKeys(value)
    .filter((key) => Object.getOwnPropertyDescriptor(value, key).enumerable)
    .map((key) => `${showKey(key)}: ${inner(value[key])}`);
  return `{${fields.join(", ")}}`;
}

export function show(value, seen = []) {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "symbol") return String(value);
  if (typeof value === "function") return "<function>";
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  if (typeof value !== "object" || value === null) return String(value);
  return showObject(value, seen);
}

// What a program returns or throws.
export async function outcome(program) {
  try {
    return show(await program());
  } catch (error) {
    return `throws ${error instanceof Error ? error.name : show(error)}`;
  }
}
