from dataclasses import dataclass

from agent import gather, llm

ANGLES = ("history", "evidence for it", "evidence against it")


@dataclass
class Finding:
    angle: str
    text: str

    def __str__(self):
        return f"{self.angle}: {self.text}"


async def look_into(question: str, angle: str) -> Finding:
    prompt = f"Question: {question}\nSay in one sentence what is known of its {angle}."
    return Finding(angle, await llm.chat([{"role": "user", "content": prompt}]))


async def run(question):
    """Three calls are in flight at once; a snapshot may be taken while they are."""
    match question:
        case str() if question.strip():
            pass
        case _:
            raise TypeError("expected a question")
    findings = await gather(*[look_into(question, angle) for angle in ANGLES])
    listed = "\n".join(f"- {finding}" for finding in findings)
    summary = await llm.chat([{"role": "user", "content": f"Sum this up in two sentences:\n{listed}"}])
    return {"question": question, "findings": [str(finding) for finding in findings], "summary": summary}
