import { llm, memory } from "agent";
import { instructions } from "./instructions.js";

const REMEMBER = /^remember:\s*(.+)$/is;
const NOTES_SHOWN = 3;

// Keeps a note, or answers a question with the notes that bear on it.
export async function run(input) {
  if (typeof input !== "string") throw new TypeError("expected a text");
  const order = REMEMBER.exec(input);
  if (order) {
    const note = order[1].trim();
    await memory.save(note.slice(0, 40), note);
    return `Noted: ${note}`;
  }
  const notes = await memory.search(input, NOTES_SHOWN);
  return await llm.chat([
    { role: "system", content: instructions(notes.map((note) => note.content)) },
    { role: "user", content: input },
  ]);
}
