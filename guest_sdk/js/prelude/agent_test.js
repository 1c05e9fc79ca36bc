// What a test suite imports.

export * from "runner:testing";
