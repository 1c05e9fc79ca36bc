"""
Requests of `llm.*`, read strictly.

Input: guest-controlled.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, assert_never

from runner.codec import Value
from runner.package.fields import (
    FieldProblem,
    Fields,
    Kind,
    any_map,
    flag,
    kind_of,
    list_of,
    matching,
    one_of,
    positive,
    text,
)
from runner.providers.base import (
    EFFORTS,
    IMAGE_TYPES,
    ROLES,
    Effort,
    ImagePart,
    Message,
    Part,
    Reasoning,
    Role,
    TextPart,
    ToolCall,
    ToolResult,
)

DEFAULT_TURNS: Final = 20
"""
Turns of one `llm.chat` that does not say how many.
"""

_MODEL: Final = matching(
    re.compile(r"[A-Za-z0-9_-]{1,64}/[A-Za-z0-9._:/@+-]{1,128}", re.ASCII),
    'a model such as "scripted/default"',
)
_PROVIDER: Final = matching(
    re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII), 'a provider\'s name such as "scripted"'
)
_MODEL_THERE: Final = matching(
    re.compile(r"[A-Za-z0-9._:/@+-]{1,128}", re.ASCII), "a model's name at its provider"
)
DEFAULT_MODEL: Final = "default"

_TYPES: Final = ("text", "image", "tool_call", "tool_result", "reasoning")
_SAID_BY: Final[dict[str, tuple[Role, ...]]] = {
    "text": ROLES,
    "image": ("user",),
    "tool_call": ("assistant",),
    "tool_result": ("user",),
    "reasoning": ("assistant",),
}


class Asked(NamedTuple):
    """
    A request of a guest, checked.

    Attributes:
        model: `PROVIDER/MODEL`, or `None` for the host's own choice.
        messages: The conversation.
        system: Instructions, or `None`.
        max_tokens: Bound of each answer, or `None`.
        tools: Names of the tools that the model may call.
        output_schema: JSON Schema of the answer's text, or `None`.
        effort: How much the model is to think, or `None`.
        max_turns: Most turns of the model; only of `llm.chat`.
        stream: Whether the answer is to come in parts.
    """

    model: str | None
    messages: tuple[Message, ...]
    system: str | None
    max_tokens: int | None
    tools: tuple[str, ...]
    output_schema: dict[str, Value] | None
    effort: Effort | None
    max_turns: int
    stream: bool


def read_request(value: Value, *, loops: bool) -> Asked:
    """
    The request that a guest's payload states.

    Args:
        value: The payload.
        loops: Whether it may say how many turns there may be.

    Raises:
        FieldProblem: If it is not of the ABI's shape.
    """
    with Fields(value) as fields:
        provider = fields.optional("provider", _PROVIDER)
        return Asked(
            messages=fields.required("messages", list_of(_message, at_least=1)),
            system=fields.optional("system", text),
            model=_model(fields, provider),
            max_tokens=fields.optional("max_tokens", positive),
            tools=_unique(fields.optional("tools", list_of(text)) or ()),
            output_schema=fields.optional("response_schema", any_map),
            effort=fields.optional("effort", one_of(EFFORTS)),
            max_turns=(fields.optional("max_turns", positive) if loops else None) or DEFAULT_TURNS,
            stream=fields.optional("stream", flag) or False,
        )


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise FieldProblem(f"tools[{index}]", f"{name[:64]!r} is there twice")
    return names


def _model(fields: Fields, provider: str | None) -> str | None:
    """
    `PROVIDER/MODEL`: written so, or with the provider in a key of its own.
    """
    if provider is None:
        return fields.optional("model", _MODEL)
    return f"{provider}/{fields.optional('model', _MODEL_THERE) or DEFAULT_MODEL}"


def _message(value: Value, at: str) -> Message:
    with Fields(value, at) as fields:
        role = fields.required("role", one_of(ROLES))
        return Message(role, fields.required("content", _content_of(role)))


def _content_of(role: Role) -> Kind[str | tuple[Part, ...]]:
    def check(value: Value, at: str) -> str | tuple[Part, ...]:
        if isinstance(value, str):
            return value
        if not isinstance(value, list):
            raise FieldProblem(at, f"expected text or a list, found {kind_of(value)}")
        return list_of(lambda item, there: _part(item, there, role))(value, at)

    return check


def _part(value: Value, at: str, role: Role) -> Part:
    part = read_part(value, at)
    word = value["type"]
    if role not in _SAID_BY[word]:
        raise FieldProblem(f"{at}.type", f"{word} is nothing that a message of role {role} may have")
    return part


def read_part(value: Value, at: str) -> Part:
    """
    One part of a message, as `part_to_wire` writes it.

    Raises:
        FieldProblem: If it is none.
    """
    with Fields(value, at) as fields:
        match fields.required("type", one_of(_TYPES)):
            case "text":
                return TextPart(fields.required("text", text))
            case "image":
                return ImagePart(
                    fields.required("media_type", one_of(IMAGE_TYPES)), fields.required("data", _octets)
                )
            case "tool_call":
                return ToolCall(
                    id=fields.required("id", text),
                    name=fields.required("name", text),
                    arguments=fields.required("arguments", any_map),
                    seal=fields.optional("seal", text),
                )
            case "tool_result":
                return ToolResult(
                    call_id=fields.required("id", text),
                    content=fields.required("content", _told),
                    is_error=fields.optional("is_error", flag) or False,
                )
            case _:
                return Reasoning(
                    made_by=fields.required("made_by", text),
                    data=fields.required("data", text),
                    text=fields.optional("text", text) or "",
                )


def _told(value: Value, at: str) -> str | tuple[TextPart | ImagePart, ...]:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise FieldProblem(at, f"expected text or a list, found {kind_of(value)}")
    parts: list[TextPart | ImagePart] = []
    for index, item in enumerate(value):
        there = f"{at}[{index}]"
        part = read_part(item, there)
        if not isinstance(part, TextPart | ImagePart):
            raise FieldProblem(f"{there}.type", 'expected "text" or "image"')
        parts.append(part)
    return tuple(parts)


def _octets(value: Value, at: str) -> bytes:
    if not isinstance(value, bytes):
        raise FieldProblem(at, f"expected bytes, found {kind_of(value)}")
    return value


def part_to_wire(part: Part) -> dict[str, Value]:
    """
    A part as the ABI's `content`.
    """
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart():
            return {"type": "image", "media_type": part.media_type, "data": part.data}
        case ToolCall():
            seal = {} if part.seal is None else {"seal": part.seal}
            arguments = dict(part.arguments)
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": arguments, **seal}
        case ToolResult():
            content: Value = part.content
            if not isinstance(content, str):
                content = [part_to_wire(each) for each in content]
            return {"type": "tool_result", "id": part.call_id, "content": content, "is_error": part.is_error}
        case Reasoning():
            return {"type": "reasoning", "made_by": part.made_by, "data": part.data, "text": part.text}
        case _:
            assert_never(part)
