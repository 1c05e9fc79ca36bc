/* The operations of the ABI that are calls, by the numbers that `prelude/operations.js` gives them. */

OPERATION(0, runner_llm_chat)
OPERATION(1, runner_llm_complete)
OPERATION(2, runner_llm_usage)
OPERATION(3, runner_tool_call)
OPERATION(4, runner_tool_list)
OPERATION(5, runner_memory_save)
OPERATION(6, runner_memory_read)
OPERATION(7, runner_memory_list)
OPERATION(8, runner_memory_search)
OPERATION(9, runner_memory_forget)
OPERATION(10, runner_agent_after)
OPERATION(11, runner_agent_every)
