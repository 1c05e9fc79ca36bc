# Module `agent.test`: what tests of an agent check with.


def _same(one, other):
    if type(one) is not type(other) and not (isinstance(one, (int, float)) and isinstance(other, (int, float))):
        return False
    return one == other


def equal(actual, expected, message=None):
    """Fail unless both are equal."""
    if not _same(actual, expected):
        told = "expected {!r}, got {!r}".format(expected, actual)
        raise AssertionError("{}: {}".format(message, told) if message else told)


deep_equal = equal


def _check_error(error, kind, text):
    if not isinstance(error, kind):
        raise error
    if text is not None and text not in str(error):
        raise AssertionError("expected an error that says {!r}, got {!r}".format(text, str(error)))
    return error


def raises(kind, function, *arguments, text=None):
    """Fail unless the call raises an error of this class; the error."""
    try:
        function(*arguments)
    except Exception as error:
        return _check_error(error, kind, text)
    raise AssertionError("expected {}, and nothing was raised".format(kind.__name__))


async def rejects(kind, awaitable, text=None):
    """Fail unless waiting for it raises an error of this class; the error."""
    try:
        await awaitable
    except Exception as error:
        return _check_error(error, kind, text)
    raise AssertionError("expected {}, and nothing was raised".format(kind.__name__))
