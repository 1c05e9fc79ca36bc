# Copies, shallow and deep.

_PLAIN = (int, float, complex, bool, str, bytes, type, range, type(None), type(...), type(len), type(lambda: 0))


class Error(Exception):
    pass


def copy(value):
    own = getattr(value, "__copy__", None)
    if own is not None and not isinstance(value, type):
        return own()
    kind = type(value)
    if kind in (list, dict, set, bytearray):
        return value.copy() if kind is not bytearray else bytearray(value)
    if kind in _PLAIN or kind in (tuple, frozenset) or callable(value) and not hasattr(value, "__dict__"):
        return value
    if isinstance(value, dict):
        return _like(value, dict(value.items()))
    if isinstance(value, list):
        return _like(value, list(value))
    if isinstance(value, BaseException):
        return _error(value, list(value.args))
    if isinstance(value, tuple):
        return value
    return _object(value, dict(value.__dict__))


def replace(value, **changes):
    own = getattr(value, "__replace__", None) or getattr(value, "_replace", None)
    if own is not None:
        return own(**changes)
    import dataclasses

    return dataclasses.replace(value, **changes)


def _new(kind):
    made = object.__new__(kind)
    return made


def _object(value, attributes):
    made = _new(type(value))
    for name, one in attributes.items():
        object.__setattr__(made, name, one)
    return made


def _like(value, content):
    made = type(value)() if not isinstance(value, dict) or not hasattr(value, "default_factory") else type(value)(
        value.default_factory
    )  # fmt: skip
    if isinstance(content, dict):
        for key, one in content.items():
            made[key] = one
    else:
        made.extend(content)
    for name, one in value.__dict__.items():
        setattr(made, name, one)
    return made


def _error(value, args):
    made = type(value)(*args)
    for name, one in getattr(value, "__dict__", {}).items():
        setattr(made, name, one)
    return made


def deepcopy(value, memo=None):
    if type(value) in _PLAIN:
        return value
    memo = {} if memo is None else memo
    found = memo.get(id(value))
    if found is not None:
        return found
    own = getattr(value, "__deepcopy__", None)
    if own is not None and not isinstance(value, type):
        made = own(memo)
    else:
        made = _deep(value, memo)
    memo[id(value)] = made
    # What was copied must stay alive as long as its number is remembered.
    memo.setdefault("kept", []).append(value)
    return made


def _deep(value, memo):
    kind = type(value)
    if kind is list:
        made = memo[id(value)] = []
        for one in value:
            made.append(deepcopy(one, memo))
        return made
    if kind is dict:
        made = memo[id(value)] = {}
        for key, one in value.items():
            made[deepcopy(key, memo)] = deepcopy(one, memo)
        return made
    if kind is tuple:
        parts = [deepcopy(one, memo) for one in value]
        same = [one is other for one, other in zip(parts, value)]
        return value if all(same) else tuple(parts)
    if kind is set or kind is frozenset:
        return kind([deepcopy(one, memo) for one in value])
    if kind is bytearray:
        return bytearray(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*[deepcopy(one, memo) for one in value])
    if isinstance(value, dict):
        return _like(value, {deepcopy(key, memo): deepcopy(one, memo) for key, one in value.items()})
    if isinstance(value, list):
        return _like(value, [deepcopy(one, memo) for one in value])
    if isinstance(value, BaseException):
        return _error(value, [deepcopy(one, memo) for one in value.args])
    if not hasattr(value, "__dict__") or isinstance(value, type):
        return value
    made = memo[id(value)] = _new(kind)
    for name, one in value.__dict__.items():
        object.__setattr__(made, name, deepcopy(one, memo))
    return made
