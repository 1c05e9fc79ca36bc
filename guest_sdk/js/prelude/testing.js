// Assertions, and suites of tests: every exported function whose name begins with no "_" is a test.

import { write } from "runner:console";
import { describe } from "runner:errors";
import { inspect } from "runner:inspect";

const ERROR = 3;

export class AssertionError extends Error {
  constructor(message) {
    super(message);
  }
}
Object.defineProperty(AssertionError.prototype, "name", {
  value: "AssertionError", writable: true, enumerable: false, configurable: true,
});

function fail(message, otherwise) {
  throw new AssertionError(message ?? otherwise);
}

export function ok(value, message) {
  if (!value) fail(message, `expected something true, got ${inspect(value)}`);
}

export function equal(actual, expected, message) {
  if (!Object.is(actual, expected)) fail(message, `expected ${inspect(expected)}, got ${inspect(actual)}`);
}

export function notEqual(actual, expected, message) {
  if (Object.is(actual, expected)) fail(message, `expected anything but ${inspect(expected)}`);
}

// --- Deep equality ----------------------------------------------------------------------------------------------------

function sameEntries(one, other, compare) {
  const [left, right] = [[...one], [...other]];
  return left.length === right.length && left.every((entry, index) => compare(entry, right[index]));
}

function sameProperties(one, other, compare) {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length
    && names.every((name) => Object.hasOwn(other, name) && compare(one[name], other[name]));
}

function isDeeplyEqual(one, other, compared = new Map()) {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false;
  if (compared.get(one) === other) return true;
  compared.set(one, other);
  const compare = (left, right) => isDeeplyEqual(left, right, compared);
  if (one instanceof Date) return one.getTime() === other.getTime();
  if (one instanceof RegExp) return `${one}` === `${other}`;
  if (one instanceof Error) return one.name === other.name && one.message === other.message;
  if (one instanceof Map || one instanceof Set) return sameEntries(one, other, compare);
  if (Array.isArray(one) && one.length !== other.length) return false;
  return sameProperties(one, other, compare);
}

export function deepEqual(actual, expected, message) {
  if (!isDeeplyEqual(actual, expected)) fail(message, `expected ${inspect(expected, 6)}, got ${inspect(actual, 6)}`);
}

// --- Errors --------------------------------------------------------------------------------------------------------------

// Whether an error is the one that was expected: a class, a pattern or part of its message, or a function that judges.
function fits(error, expected) {
  if (expected === undefined) return true;
  const text = `${error?.message ?? error}`;
  if (expected instanceof RegExp) return expected.test(text);
  if (typeof expected === "string") return text.includes(expected);
  if (typeof expected !== "function") return isDeeplyEqual(error, expected);
  if (expected === Error || expected.prototype instanceof Error) return error instanceof expected;
  return Boolean(expected(error));
}

function judge(error, expected, message) {
  if (!fits(error, expected)) fail(message, `expected another error, got ${describe(error).message}`);
  return error;
}

// Each returns the error.
export function throws(f, expected, message) {
  let error;
  try {
    f();
  } catch (caught) {
    error = { caught };
  }
  if (!error) fail(message, "expected an error, and there was none");
  return judge(error.caught, expected, message);
}

export async function rejects(promiseOrFunction, expected, message) {
  let error;
  try {
    await (typeof promiseOrFunction === "function" ? promiseOrFunction() : promiseOrFunction);
  } catch (caught) {
    error = { caught };
  }
  if (!error) fail(message, "expected a rejection, and there was none");
  return judge(error.caught, expected, message);
}

// --- Suites ----------------------------------------------------------------------------------------------------------------

async function failureOf(test, afterEach) {
  try {
    await test();
  } catch (error) {
    await afterEach?.();
    return describe(error).message;
  }
  const left = await afterEach?.();
  if (left === undefined || left === null || left === false || left?.length === 0) return null;
  return `left behind: ${inspect(left)}`;
}

function testsOf(module) {
  return Object.keys(module).filter((name) => typeof module[name] === "function" && !name.startsWith("_")).sort();
}

// Runs suites, `[{ name, module }]`, one test after the other; `afterEach` may return what a test left behind, and fails
// it so. A report; throws when a test failed, or when there was none.
export async function runSuites(suites, { afterEach } = {}) {
  const report = { passed: 0, failed: 0, failures: [] };
  for (const { name, module } of suites) {
    for (const test of testsOf(module)) {
      const message = await failureOf(module[test], afterEach);
      if (message === null) {
        report.passed++;
        continue;
      }
      report.failed++;
      report.failures.push({ suite: name, test, message });
      write(ERROR, `${name}: ${test}: ${message}`);
    }
  }
  if (report.passed + report.failed === 0) fail(undefined, "there are no tests");
  if (report.failed > 0) {
    const first = report.failures[0];
    const what = `${report.failed} of ${report.passed + report.failed} tests failed`;
    const error = new AssertionError(`${what}: ${first.suite}: ${first.test}: ${first.message}`);
    throw Object.assign(error, { report });
  }
  return report;
}
