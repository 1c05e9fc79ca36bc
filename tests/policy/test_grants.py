"""
Grants: deny before allow, and nothing else granted.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import Denied, UsageError
from runner.kernel import abi
from runner.policy.grants import Binding, Decision, Grants

OWN = {entry.operation for entry in abi.IMPORTS if entry.capability == "agent"}
LLM = {"llm.chat", "llm.complete", "llm.providers", "llm.usage"}

_RULES = st.lists(
    st.sampled_from(
        ["llm", "llm.chat", "llm:scripted/*", "llm:other/*", "memory", "memory:r", "memory:w", "memory.save",
         "tool", "tool:x", "*", "*.list"]
    ),
    max_size=4,
)  # fmt: skip


def test_without_a_rule_an_agent_has_its_own_affairs_and_the_scripted_model() -> None:
    """
    And nothing else.
    """
    grants = Grants.parse()
    assert grants == Grants()
    assert grants.granted_operations() == OWN | LLM
    assert grants.allows_model("scripted/default")
    assert not grants.allows_model("anthropic/claude")
    assert grants.decide("llm.chat") == Decision(True, "default llm:scripted/*")
    assert grants.decide("agent.now") == Decision(True, "agent.* is always granted")


def test_a_refusal_names_the_rule_and_the_flag() -> None:
    """
    The flag grants what was refused.
    """
    grants = Grants()
    assert grants.decide("memory.list") == Decision(False, "default deny", "--allow memory:r")
    assert grants.decide("memory.save") == Decision(False, "default deny", "--allow memory:rw")
    assert grants.decide("tool.call") == Decision(False, "default deny", "--allow tool")
    assert grants.decide_tool("shell") == Decision(False, "default deny", "--allow tool:shell")
    assert grants.decide_model("openai/gpt-5.5") == Decision(
        False, "default deny", "--allow llm:openai/gpt-5.5"
    )


@pytest.mark.parametrize("operation", sorted(abi.OPERATIONS))
def test_the_flag_of_a_refusal_grants_the_operation(operation: str) -> None:
    """
    For every operation that is refused by default.
    """
    decision = Grants().decide(operation)
    if not decision.allowed:
        assert decision.flag is not None
        assert Grants.parse(allow=[decision.flag.removeprefix("--allow ")]).decide(operation).allowed


def test_an_allow_rule_grants_and_is_named() -> None:
    """
    A selector is not asked before there is a selection.
    """
    grants = Grants.parse(allow=["memory:r", "tool:web_*", "llm:anthropic/*"])
    assert grants.decide("memory.read") == Decision(True, "--allow memory:r")
    assert grants.decide("tool.call") == Decision(True, "--allow tool:web_*")
    assert grants.decide_tool("web_search") == Decision(True, "--allow tool:web_*")
    assert not grants.decide_tool("shell").allowed
    assert grants.decide_model("anthropic/claude") == Decision(True, "--allow llm:anthropic/*")
    assert grants.allows_model("scripted/default")
    assert not grants.allows_model("openai/gpt")


def test_a_deny_rule_wins_over_every_allow_rule() -> None:
    """
    Also over a narrower one, and over the default.
    """
    grants = Grants.parse(allow=["*", "memory.save"], deny=["memory:w", "llm", "tool:shell"])
    assert grants.decide("memory.save") == Decision(False, "--deny memory:w")
    assert grants.decide("memory.read").allowed
    assert grants.decide("llm.chat") == Decision(False, "--deny llm")
    assert grants.decide_model("scripted/default") == Decision(False, "--deny llm")
    assert grants.decide_tool("shell") == Decision(False, "--deny tool:shell")
    assert grants.decide_tool("search").allowed


def test_a_deny_rule_with_a_selector_leaves_the_rest_of_the_operation() -> None:
    """
    The import is bound; the call decides.
    """
    grants = Grants.parse(allow=["llm"], deny=["llm:openai/*"])
    assert grants.decide("llm.chat").allowed
    assert not grants.allows_model("openai/gpt")
    assert grants.allows_model("anthropic/claude")


@pytest.mark.parametrize("everything", ["llm:*", "llm:*/*", "llm", "*"])
def test_to_deny_every_model_is_to_deny_the_operation(everything: str) -> None:
    """
    However it is written.
    """
    assert Grants.parse(allow=["llm"], deny=[everything]).decide("llm.chat").allowed is False


def test_a_rule_for_one_operation_says_nothing_of_another() -> None:
    """
    Models are granted by operation.
    """
    grants = Grants.parse(allow=["llm.complete:openai/*"])
    assert grants.allows_model("openai/gpt", "llm.complete")
    assert not grants.allows_model("openai/gpt", "llm.chat")


@pytest.mark.parametrize("text", ["agent", "agent.now", "agent.*"])
def test_an_agents_own_affairs_can_not_be_denied(text: str) -> None:
    """
    Nothing works without them, and the message says that rather than pretend.
    """
    with pytest.raises(UsageError) as caught:
        Grants.parse(deny=[text])
    assert str(caught.value) == f"--deny {text}: agent.* is always granted"
    assert caught.value.hint == "remove the flag"


def test_to_allow_an_agents_own_affairs_changes_nothing() -> None:
    """
    It is true already.
    """
    assert Grants.parse(allow=["agent"]).granted_operations() == Grants().granted_operations()


@pytest.mark.parametrize(
    "name", ["*/*", "openai/gpt;rm -rf", "openai/$(id)", "openai/[a]", "a/\x1b[2J", "a/ b"]
)
def test_no_flag_is_suggested_that_would_grant_more_or_run_something(name: str) -> None:
    """
    Guests choose the names of models and tools, and people paste what a hint says.
    """
    assert Grants().decide_model(name) == Decision(False, "default deny", None)
    assert Grants().decide_tool(name) == Decision(False, "default deny", None)


def test_an_operation_that_does_not_exist_is_no_question() -> None:
    """
    Admission has refused it before.
    """
    with pytest.raises(ValueError, match=r"^no operation 'wasi\.fd_write'$"):
        Grants().decide("wasi.fd_write")


def test_a_module_is_bound_to_what_it_imports() -> None:
    """
    No more than that is granted to an instance.
    """
    binding = Grants.parse(allow=["*"]).resolve("a", ["agent.take", "llm.chat"])
    assert binding == Binding(frozenset({"agent.take", "llm.chat"}), frozenset())


def test_a_module_that_imports_what_is_not_granted_is_refused_with_every_missing_flag() -> None:
    """
    One refusal, one correction.
    """
    imports = ["memory.read", "memory.save", "tool.call", "agent.take"]
    with pytest.raises(Denied) as caught:
        Grants().resolve("notes", imports)
    assert str(caught.value) == "agent notes needs memory.read, which is not granted"
    assert caught.value.hint == "add --allow memory:rw --allow tool"
    assert caught.value.rule == "default deny"


def test_a_module_that_only_reads_is_told_of_reading() -> None:
    """
    The hint grants no more than is needed.
    """
    with pytest.raises(Denied) as caught:
        Grants().resolve("notes", ["memory.search"])
    assert caught.value.hint == "add --allow memory:r"


def test_a_module_that_needs_what_is_denied_is_told_which_rule_to_remove() -> None:
    """
    No flag would help as long as it stands.
    """
    with pytest.raises(Denied) as caught:
        Grants.parse(deny=["tool"]).resolve("a", ["memory.read", "tool.call"])
    assert str(caught.value) == "agent a needs tool.call, which is not granted"
    assert caught.value.hint == "remove --deny tool"


def test_what_a_manifest_does_not_use_is_bound_to_a_refusal() -> None:
    """
    Granted or not; an engine that imports everything gets no more than its agent declares.
    """
    binding = Grants.parse(allow=["memory"]).resolve(
        "js", sorted(abi.OPERATIONS), uses=["llm.chat", "memory"]
    )
    assert binding.granted == OWN | {"llm.chat"} | {
        name for name in abi.OPERATIONS if name.startswith("memory.")
    }
    assert binding.denied == {"llm.complete", "llm.providers", "llm.usage", "tool.call", "tool.list"}


def test_what_a_manifest_uses_must_be_granted() -> None:
    """
    To declare is to ask.
    """
    with pytest.raises(Denied) as caught:
        Grants().resolve("js", sorted(abi.OPERATIONS), uses=["memory.list"])
    assert str(caught.value) == "agent js needs memory.list, which is not granted"
    assert caught.value.hint == "add --allow memory:r"


def test_a_manifest_that_uses_nothing_starts_everywhere() -> None:
    """
    An empty list is a promise.
    """
    binding = Grants.parse(deny=["llm"]).resolve("js", sorted(abi.OPERATIONS), uses=[])
    assert binding.granted == OWN


@given(_RULES, _RULES, st.sets(st.sampled_from(sorted(abi.OPERATIONS))))
def test_a_binding_never_has_more_than_the_grants(
    allow: list[str], deny: list[str], imports: set[str]
) -> None:
    """
    Each import is granted, or bound to a refusal, or the module is refused.
    """
    grants = Grants.parse(allow, deny)
    granted = grants.granted_operations()
    if imports <= granted:
        assert grants.resolve("a", imports) == Binding(frozenset(imports), frozenset())
        return
    with pytest.raises(Denied) as caught:
        grants.resolve("a", imports)
    assert caught.value.operation in imports - granted


@given(_RULES, _RULES, st.sampled_from(["scripted/default", "other/x", "third/y"]))
def test_a_further_deny_rule_never_grants(allow: list[str], deny: list[str], model: str) -> None:
    """
    And a model is allowed only where the operation is.
    """
    grants = Grants.parse(allow, deny)
    fewer = Grants.parse(allow, [*deny, "llm.chat"])
    assert fewer.granted_operations() == grants.granted_operations() - {"llm.chat"}
    assert not fewer.allows_model(model)
    if grants.allows_model(model):
        assert grants.decide("llm.chat").allowed
