const BASE = "You are a helpful assistant. Answer in one or two sentences.";

// What the model is told before the question.
export function instructions(notes) {
  if (notes.length === 0) return BASE;
  return `${BASE}\nYou were told earlier:\n${notes.map((note) => `- ${note}`).join("\n")}`;
}
