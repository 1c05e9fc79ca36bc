# Groups of exceptions, and the other half of `except*`.


class BaseExceptionGroup(Exception):
    def __init__(self, message, exceptions):
        exceptions = tuple(exceptions)
        if not exceptions:
            raise ValueError("second argument (exceptions) must be a non-empty sequence")
        for error in exceptions:
            if not isinstance(error, BaseException):
                raise ValueError("Item of second argument (exceptions) is not an exception")
        super().__init__(message, list(exceptions))
        self.message = message
        self.exceptions = exceptions

    def __str__(self):
        count = len(self.exceptions)
        return "{} ({} sub-exception{})".format(self.message, count, "" if count == 1 else "s")

    def __repr__(self):
        return "{}({!r}, {!r})".format(type(self).__name__, self.message, list(self.exceptions))

    def derive(self, exceptions):
        return ExceptionGroup(self.message, exceptions)

    def subgroup(self, condition):
        return self.split(condition)[0]

    def split(self, condition):
        """The part that meets a condition (a type, several, or a function), and the rest; `None` for nothing."""
        if _meets(self, condition):
            return self, None
        taken, left = [], []
        for error in self.exceptions:
            if isinstance(error, BaseExceptionGroup):
                one, other = error.split(condition)
            elif _meets(error, condition):
                one, other = error, None
            else:
                one, other = None, error
            if one is not None:
                taken.append(one)
            if other is not None:
                left.append(other)
        return self._part(taken), self._part(left)

    def _part(self, exceptions):
        return self.derive(exceptions) if exceptions else None


class ExceptionGroup(BaseExceptionGroup):
    pass


def _meets(error, condition):
    if isinstance(condition, (type, tuple)):
        return isinstance(error, condition)
    return condition(error)


def _leaves(error):
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    found = []
    for one in error.exceptions:
        found.extend(_leaves(one))
    return found


class Groups:
    """What the clauses of one `try … except*` have left of what was raised."""

    def __init__(self, caught):
        self._caught = caught
        self._is_group = isinstance(caught, BaseExceptionGroup)
        self._left = caught
        self._raised = []
        self._again = []
        self.matched = None

    def take(self, wanted):
        """Whether a clause has something to do; `matched` is what."""
        if self._left is None:
            return False
        if self._is_group:
            self.matched, self._left = self._left.split(wanted)
            return self.matched is not None
        if not isinstance(self._left, wanted):
            return False
        self.matched, self._left = ExceptionGroup("", [self._left]), None
        return True

    def raised(self, error):
        """A clause ended with this."""
        if self._is_group and error is self.matched:
            # What it took, as it was: it belongs with what is left.
            self._again.append(error)
        else:
            self._raised.append(error)

    def finish(self):
        """Raise what is left, or nothing."""
        left = self._left
        if self._again:
            leaves = []
            for part in self._again + ([] if left is None else [left]):
                leaves.extend(_leaves(part))
            left = self._caught.subgroup(lambda error: any([error is leaf for leaf in leaves]))
        if not self._raised:
            if left is not None:
                raise left
            return
        errors = self._raised if left is None else self._raised + [left]
        if len(errors) == 1:
            raise errors[0]
        raise ExceptionGroup("", errors)
