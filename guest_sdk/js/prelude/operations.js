// The calls that an agent can make; a position here is the number in `operations.h`.

export const NAMES = [
  "llm.chat", "llm.complete", "llm.usage", "tool.call", "tool.list", "memory.save", "memory.read", "memory.list",
  "memory.search", "memory.forget", "agent.after", "agent.every", "llm.providers",
];

export const CHAT = 0, COMPLETE = 1, USAGE = 2, TOOL_CALL = 3, TOOL_LIST = 4, SAVE = 5, READ = 6, LIST = 7, SEARCH = 8,
  FORGET = 9, AFTER = 10, EVERY = 11, PROVIDERS = 12;

// Statuses, as `runner_abi.h` has them.
export const PART = 1, OK = 0, INVALID = -2, DENIED = -3, LIMIT = -4, UNSUPPORTED = -5;

// Kinds of deliveries.
export const MESSAGE = 1, EVENT = 2, TICK = 3, RESTORE = 4, HAND_OVER = 5, TAKE_OVER = 6;
