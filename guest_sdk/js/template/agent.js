import { llm, log } from "agent";

// One message in, its answer out. What stands outside of functions is evaluated once, when the agent is built;
// what it leaves in variables lives on from message to message.
export async function run(input) {
  if (typeof input !== "string") throw new TypeError("expected a text");
  log.debug("asking the model");
  return await llm.chat([{ role: "user", content: input }]);
}
