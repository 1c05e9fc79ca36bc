// The model, tools and notes.

import { ask } from "runner:calls";
import { HostError } from "runner:errors";
import * as op from "runner:operations";
import { freeze, isArray, keys, arrayPush } from "runner:primordials";

// What the agent's own answers have cost. A number that a provider did not tell makes the sum unknown.
const spent = { chatCalls: 0, promptTokens: 0, completionTokens: 0 };

function add(sum, tokens) {
  return sum === null || typeof tokens !== "number" ? null : sum + tokens;
}

function account(answered) {
  spent.promptTokens = add(spent.promptTokens, answered?.input_tokens);
  spent.completionTokens = add(spent.completionTokens, answered?.output_tokens);
}

export function usage() {
  return { ...spent };
}

function spoken(told) {
  return { calls: told.calls, inputTokens: told.input_tokens, outputTokens: told.output_tokens };
}

function asMessages(messages) {
  if (typeof messages === "string") return [{ role: "user", content: messages }];
  if (!isArray(messages)) throw new TypeError("messages must be an array of { role, content }");
  const copied = [];
  for (let i = 0; i < messages.length; i++) {
    const { role, content } = messages[i] ?? {};
    arrayPush(copied, { role, content });
  }
  return copied;
}

const OPTIONS = ["tools", "system", "model", "maxTokens", "provider", "onToken"];

function checkOptions(options) {
  const names = keys(options);
  for (let i = 0; i < names.length; i++) {
    let known = false;
    for (let k = 0; k < OPTIONS.length; k++) known ||= OPTIONS[k] === names[i];
    if (!known) throw new TypeError(`unknown option '${names[i]}' of a chat`);
  }
}

function requestOf(messages, options, onToken) {
  checkOptions(options);
  return {
    messages: asMessages(messages),
    system: options.system,
    model: options.model,
    max_tokens: options.maxTokens,
    provider: options.provider,
    tools: options.tools,
    stream: onToken ? true : undefined,
  };
}

// A turn of the model's, or as many as its tools need. The callback may stand in the options' place.
function turn(operation, messages, options, onToken) {
  if (typeof options === "function") [options, onToken] = [{}, options];
  options ??= {};
  onToken ??= options.onToken;
  const request = requestOf(messages, options, onToken);
  const answer = ask(operation, request, onToken && ((part) => onToken(part.text)));
  spent.chatCalls++;
  return answer;
}

async function chat(messages, options, onToken) {
  const answer = await turn(op.CHAT, messages, options, onToken);
  account(answer.usage);
  return answer.text;
}

async function complete(messages, options, onToken) {
  const answer = await turn(op.COMPLETE, messages, options, onToken);
  account(answer.usage);
  return { content: answer.content, stop: answer.stop, model: answer.model, usage: spoken(answer.usage) };
}

export const llm = freeze({
  chat,
  complete,
  usage: async () => spoken(await ask(op.USAGE, {})),
});

export const tool = freeze({
  call: async (name, args) => ask(op.TOOL_CALL, { name, arguments: args ?? undefined }),
  list: async () => ask(op.TOOL_LIST, {}),
});

export const memory = freeze({
  save: async (title, content) => (await ask(op.SAVE, { title, content })).id,
  read: async (id) => ask(op.READ, { id }),
  list: async () => ask(op.LIST, {}),
  search: async (query, limit = 5) => ask(op.SEARCH, { query, limit }),
  forget: async (id) => ask(op.FORGET, { id }),
});

// The providers that this instance may name.
export const providers = async () => ask(op.PROVIDERS, {});

// A provider by name. Where it is asked, and with which key, is the operator's alone.
export function provider(id, options = {}) {
  const names = keys(options);
  for (let i = 0; i < names.length; i++) {
    if (names[i] !== "model") {
      throw new HostError(`provider() takes no '${names[i]}': the operator decides how a provider is asked`, "denied");
    }
  }
  const chosen = { provider: id, model: options.model };
  const bound = (which) => (messages, given, onToken) =>
    typeof given === "function" ? which(messages, chosen, given) : which(messages, { ...given, ...chosen }, onToken);
  return freeze({ id, chat: bound(chat), complete: bound(complete) });
}
