# Warnings go to the agent's log; nothing filters them.


def warn(message, category=None, stacklevel=1, source=None):
    from agent import log

    kind = category.__name__ if category is not None else type(message).__name__
    log.warning("{}: {}".format("UserWarning" if kind == "str" else kind, message))


def warn_explicit(message, category, filename, lineno, *args, **keywords):
    warn(message, category)


def filterwarnings(*args, **keywords):
    pass


simplefilter = resetwarnings = filterwarnings


class catch_warnings:
    def __init__(self, *, record=False, **options):
        self._record = record

    def __enter__(self):
        return [] if self._record else None

    def __exit__(self, kind, error, traceback):
        return None


def deprecated(message, **options):
    return lambda function: function
