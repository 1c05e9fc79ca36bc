from agent import llm, log


# One message in, its answer out. What stands outside of functions is evaluated once, when the agent is built;
# what it leaves in variables lives on from message to message.
async def run(question):
    if not isinstance(question, str):
        raise TypeError("expected a text")
    log.debug("asking the model")
    return await llm.chat([{"role": "user", "content": question}])
