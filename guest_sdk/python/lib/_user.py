# Containers to inherit from: unlike the built-in types, every operation goes through the methods here.

from collections.abc import MutableMapping, MutableSequence, Sequence


class UserDict(MutableMapping):
    def __init__(self, mapping=None, **named):
        self.data = {}
        if mapping is not None:
            self.update(mapping)
        if named:
            self.update(named)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, key):
        if key in self.data:
            return self.data[key]
        missing = getattr(self, "__missing__", None)
        if missing is not None:
            return missing(key)
        raise KeyError(key)

    def __setitem__(self, key, value):
        self.data[key] = value

    def __delitem__(self, key):
        del self.data[key]

    def __iter__(self):
        return iter(self.data)

    def __contains__(self, key):
        return key in self.data

    def __repr__(self):
        return repr(self.data)

    def copy(self):
        return type(self)(self.data)


class UserList(MutableSequence):
    def __init__(self, values=None):
        self.data = [] if values is None else list(values)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return type(self)(self.data[index]) if isinstance(index, slice) else self.data[index]

    def __setitem__(self, index, value):
        self.data[index] = value

    def __delitem__(self, index):
        del self.data[index]

    def insert(self, index, value):
        self.data.insert(index, value)

    def sort(self, *, key=None, reverse=False):
        self.data.sort(key=key, reverse=reverse)

    def copy(self):
        return type(self)(self.data)

    def __add__(self, other):
        return type(self)(self.data + list(other))

    def __mul__(self, count):
        return type(self)(self.data * count)

    def __eq__(self, other):
        return self.data == (other.data if isinstance(other, UserList) else other)

    def __repr__(self):
        return repr(self.data)


class UserString(Sequence):
    def __init__(self, value):
        self.data = str(value)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return type(self)(self.data[index])

    def __str__(self):
        return self.data

    def __repr__(self):
        return repr(self.data)

    def __contains__(self, part):
        return str(part) in self.data

    def __eq__(self, other):
        return self.data == str(other)

    def __hash__(self):
        return hash(self.data)

    def __add__(self, other):
        return type(self)(self.data + str(other))

    def __getattr__(self, name):
        if name[:2] == "__" or name == "data":
            raise AttributeError(name)
        return getattr(self.data, name)
