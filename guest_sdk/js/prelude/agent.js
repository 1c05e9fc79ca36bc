export { HostError } from "runner:errors";
export { llm, memory, provider, tool, usage } from "runner:llm";
export { log } from "runner:console";
export { after, cancel, every } from "runner:timers";
export { lastSnapshot, restored, snapshot } from "runner:globals";
