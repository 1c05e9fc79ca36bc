import { llm, tool } from "agent";

const TOOL = "weather";

// Looks the weather up with the tool, and has the model put it into words.
export async function run(input) {
  const city = typeof input === "string" ? input : input?.city;
  if (typeof city !== "string") throw new TypeError('expected a city, such as "Paris" or {"city": "Paris"}');
  const tools = await tool.list();
  if (!tools.some(({ name }) => name === TOOL)) return `I can't look out of the window: there is no tool "${TOOL}".`;
  const report = await tool.call(TOOL, { city });
  return await llm.chat([
    { role: "user", content: `Say in one sentence what the weather in ${city} is: ${JSON.stringify(report)}` },
  ]);
}
