# The text of exceptions. The engine keeps where an exception was with the exception itself, so there are no
# traceback objects: what takes one takes `None`.

import sys

from runner_errors import frames, stack, title


def _of(args):
    # An exception; or its type, itself and its traceback.
    if len(args) > 1:
        return args[1]
    return args[0] if args and args[0] is not None else sys.exc_info()[1]


def format_exc(limit=None, chain=True):
    error = sys.exc_info()[1]
    return "NoneType: None\n" if error is None else stack(error) + "\n"


def format_exception(*args, **options):
    return [line + "\n" for line in stack(_of(args)).split("\n")]


def format_exception_only(*args, **options):
    error = _of(args)
    return [title(error) + "\n"] + [note + "\n" for note in getattr(error, "__notes__", None) or []]


def print_exc(limit=None, file=None, chain=True):
    _print(format_exc(), file)


def print_exception(*args, file=None, **options):
    _print("".join(format_exception(*args)), file)


def _print(text, file):
    if file is None:
        print(text.rstrip("\n"))
    else:
        file.write(text)


class FrameSummary:
    def __init__(self, filename, lineno, name):
        self.filename = filename
        self.lineno = lineno
        self.name = name
        self.line = ""


def extract_tb(traceback, limit=None):
    """Of an exception instead of its traceback, where it was."""
    if not isinstance(traceback, BaseException):
        return []
    return [FrameSummary(file, line, name) for file, line, name in frames(traceback)]


def format_tb(traceback, limit=None):
    text = '  File "{}", line {}, in {}\n'
    return [text.format(one.filename, one.lineno, one.name or "<module>") for one in extract_tb(traceback)]


def format_stack(frame=None, limit=None):
    return []
