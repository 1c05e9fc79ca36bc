"""A long conversation: what was said is kept from message to message, in nothing but variables."""

from agent import llm, log

INSTRUCTIONS = "You interview a person about their work. Ask one short question at a time."

transcript = []


async def run(answer):
    if not isinstance(answer, str):
        raise TypeError("expected a text")
    if answer.strip().lower() == "summary":
        return await summary()
    transcript.append({"role": "user", "content": answer})
    question = await llm.chat(transcript, system=INSTRUCTIONS)
    transcript.append({"role": "assistant", "content": question})
    log.info("asked", turns=len(transcript) // 2)
    return question


async def summary():
    if not transcript:
        return "Nothing was said yet."
    told = "\n".join(f"{turn['role']}: {turn['content']}" for turn in transcript)
    return await llm.chat([{"role": "user", "content": f"Sum up this interview:\n{told}"}])


async def on_restore(info):
    log.info("the interview goes on", turns=len(transcript) // 2)
