import { equal, rejects } from "agent/test";
import { run } from "./agent.js";

// Each test has an instance of its own. The model is scripted: without a script it repeats what it was told.
export async function answers() {
  equal(await run("hello"), "(scripted) You said: hello");
}

export async function refusesWhatIsNoText() {
  await rejects(() => run(7));
}
