# The text of exceptions. The engine keeps where an exception was with the exception itself.

import io
import sys


def _text(error):
    out = io.StringIO()
    sys.print_exception(error, out)
    return out.getvalue()


def _of(args):
    # An exception; or its type, itself and its traceback.
    if len(args) > 1:
        return args[1]
    return args[0] if args and args[0] is not None else sys.exc_info()[1]


def format_exc(limit=None, chain=True):
    error = sys.exc_info()[1]
    return "NoneType: None\n" if error is None else "".join(format_exception(error))


def format_exception(*args, **options):
    error = _of(args)
    lines = []
    cause = getattr(error, "__cause__", None)
    if cause is not None:
        lines.extend(format_exception(cause))
        lines.append("\nThe above exception was the direct cause of the following exception:\n\n")
    lines.extend([line + "\n" for line in _text(error).rstrip("\n").split("\n")])
    return lines


def format_exception_only(*args, **options):
    error = _of(args)
    text = str(error)
    name = type(error).__name__
    lines = ["{}: {}\n".format(name, text) if text else name + "\n"]
    return lines + [note + "\n" for note in getattr(error, "__notes__", None) or []]


def print_exc(limit=None, file=None, chain=True):
    _print(format_exc(), file)


def print_exception(*args, file=None, **options):
    _print("".join(format_exception(*args)), file)


def _print(text, file):
    if file is None:
        print(text.rstrip("\n"))
    else:
        file.write(text)


def format_tb(traceback, limit=None):
    return []


def format_stack(frame=None, limit=None):
    return []


def extract_tb(traceback, limit=None):
    return []
