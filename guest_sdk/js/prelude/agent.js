// What an agent imports.

export { HostError } from "runner:errors";
export { llm, memory, provider, providers, tool, usage } from "runner:llm";
export { log } from "runner:console";
export { after, cancel, every, after as schedule } from "runner:timers";
export { lastSnapshot, restored, snapshot, surface as host, surface as default } from "runner:globals";
