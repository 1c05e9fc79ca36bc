from main import ANGLES, Finding, look_into, run


async def test_looks_into_every_angle():
    result = await run("Is water wet?")
    assert len(result["findings"]) == len(ANGLES)
    assert result["findings"][0].startswith("history: ")


async def test_a_finding_names_its_angle():
    finding = await look_into("Is water wet?", "history")
    assert (finding.angle, str(finding)[:9]) == ("history", "history: ")
    assert finding == Finding("history", finding.text)


async def test_refuses_what_is_no_question():
    try:
        await run("  ")
    except TypeError as error:
        assert str(error) == "expected a question"
    else:
        raise AssertionError("nothing was asked")
