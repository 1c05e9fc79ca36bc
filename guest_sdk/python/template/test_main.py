from main import run


# Each test has an instance of its own. The model is scripted: without a script it repeats what it was told.
async def test_answers():
    assert await run("hello") == "(scripted) You said: hello"


async def test_refuses_what_is_no_text():
    try:
        await run(7)
    except TypeError as error:
        assert str(error) == "expected a text"
    else:
        raise AssertionError("a number was taken for a text")
