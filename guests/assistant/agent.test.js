import { memory } from "agent";
import { equal, rejects } from "agent/test";
import { run } from "./agent.js";
import { instructions } from "./instructions.js";

export async function keepsWhatItIsTold() {
  equal(await run("Remember: the door code is 4711"), "Noted: the door code is 4711");
  const [note] = await memory.search("door code", 1);
  equal(note.content, "the door code is 4711");
}

export async function answersAQuestion() {
  equal(await run("hello"), "(scripted) You said: hello");
}

export async function refusesWhatIsNoText() {
  await rejects(() => run({ not: "a text" }));
}

export function tellsTheModelItsNotes() {
  equal(instructions(["a", "b"]).split("\n").length, 4);
}
