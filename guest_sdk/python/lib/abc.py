# Abstract classes: an instance can be made once every abstract method is there.

# Names that were marked since the last class was finished: a function can carry no mark itself.
_marked = []


def abstractmethod(function):
    name = getattr(function, "__name__", None)
    if name:
        _marked.append(name)
    return function


class ABC:
    def __new__(cls, *args, **keywords):
        missing = sorted(getattr(cls, "_abstract_", ()))
        if missing:
            word = "method" if len(missing) == 1 else "methods"
            text = "Can't instantiate abstract class {} without an implementation for abstract {} {}"
            raise TypeError(text.format(cls.__name__, word, ", ".join([repr(name) for name in missing])))
        return super().__new__(cls)

    @staticmethod
    def _finish_class_(cls, names, annotations, keywords):
        own = cls.__dict__
        marked = {name for name in _marked if name in own}
        del _marked[:]
        left = set()
        for base in cls.__bases__:
            left.update([name for name in getattr(base, "_abstract_", ()) if name not in own])
        cls._abstract_ = left | marked
        keywords.pop("abstract", None)

    @classmethod
    def register(cls, other):
        """Instances of `other` count as instances from now on."""
        registered = cls.__dict__.get("_registered_")
        if registered is None:
            registered = cls._registered_ = []
            check = cls.__dict__.get("_check_")
            cls._check_ = lambda value: isinstance(value, tuple(registered)) or bool(check and check(value))
        registered.append(other)
        return other


class ABCMeta(type):
    pass


abstractclassmethod = abstractstaticmethod = abstractproperty = abstractmethod
