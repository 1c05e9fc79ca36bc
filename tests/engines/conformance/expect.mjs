// Writes beside each file of programs what they give here: `node expect.mjs`.
//
// A file exports an object of programs by name, each an (async) function without arguments.

import { readdirSync, writeFileSync } from "node:fs";
import { outcome } from "./harness.mjs";

const folder = new URL("js/", import.meta.url);
for (const name of readdirSync(folder).filter((name) => name.endsWith(".mjs")).sort()) {
  const { programs } = await import(new URL(name, folder));
  const expected = {};
  for (const [title, program] of Object.entries(programs)) expected[title] = await outcome(program);
  writeFileSync(new URL(name.replace(/\.mjs$/, ".json"), folder), `${JSON.stringify(expected, null, 1)}\n`);
}
