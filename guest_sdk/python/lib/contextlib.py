# Context managers.


class AbstractContextManager:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return None


class AbstractAsyncContextManager:
    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, error, traceback):
        return None


class ContextDecorator:
    def _recreate_cm(self):
        return self

    def __call__(self, function):
        def inner(*args, **keywords):
            with self._recreate_cm():
                return function(*args, **keywords)

        return inner


class _GeneratorManager(ContextDecorator):
    def __init__(self, function, args, keywords):
        self._made = function, args, keywords
        self._body = function(*args, **keywords)

    def _recreate_cm(self):
        return _GeneratorManager(*self._made)

    def __enter__(self):
        try:
            return next(self._body)
        except StopIteration:
            raise RuntimeError("generator didn't yield")

    def __exit__(self, kind, error, traceback):
        if kind is None:
            try:
                next(self._body)
            except StopIteration:
                return False
            raise RuntimeError("generator didn't stop")
        if error is None:
            error = kind()
        try:
            self._body.throw(error)
        except StopIteration as stop:
            return stop is not error
        except BaseException as raised:
            if raised is error:
                return False
            raise
        raise RuntimeError("generator didn't stop after throw()")


def contextmanager(function):
    def make(*args, **keywords):
        return _GeneratorManager(function, args, keywords)

    return make


class _AsyncGeneratorManager:
    def __init__(self, body):
        self._body = body

    async def __aenter__(self):
        try:
            return await self._body.__anext__()
        except StopAsyncIteration:
            raise RuntimeError("generator didn't yield")

    async def __aexit__(self, kind, error, traceback):
        if kind is None:
            try:
                await self._body.__anext__()
            except StopAsyncIteration:
                return False
            raise RuntimeError("generator didn't stop")
        if error is None:
            error = kind()
        try:
            await self._body.athrow(error)
        except StopAsyncIteration as stop:
            return stop is not error
        except BaseException as raised:
            if raised is error:
                return False
            raise
        raise RuntimeError("generator didn't stop after athrow()")


def asynccontextmanager(function):
    def make(*args, **keywords):
        return _AsyncGeneratorManager(function(*args, **keywords))

    return make


class suppress:
    def __init__(self, *exceptions):
        self._exceptions = exceptions

    def __enter__(self):
        return None

    def __exit__(self, kind, error, traceback):
        return kind is not None and issubclass(kind, self._exceptions)


class closing:
    def __init__(self, thing):
        self.thing = thing

    def __enter__(self):
        return self.thing

    def __exit__(self, kind, error, traceback):
        self.thing.close()


class aclosing:
    def __init__(self, thing):
        self.thing = thing

    async def __aenter__(self):
        return self.thing

    async def __aexit__(self, kind, error, traceback):
        await self.thing.aclose()


class nullcontext:
    def __init__(self, enter_result=None):
        self.enter_result = enter_result

    def __enter__(self):
        return self.enter_result

    def __exit__(self, kind, error, traceback):
        return None

    async def __aenter__(self):
        return self.enter_result

    async def __aexit__(self, kind, error, traceback):
        return None


class ExitStack:
    def __init__(self):
        self._exits = []

    def enter_context(self, manager):
        value = manager.__enter__()
        self._exits.append(manager.__exit__)
        return value

    def push(self, exit):
        self._exits.append(getattr(exit, "__exit__", exit))
        return exit

    def callback(self, function, *args, **keywords):
        def leave(kind, error, traceback):
            function(*args, **keywords)

        self._exits.append(leave)
        return function

    def pop_all(self):
        made = type(self)()
        made._exits, self._exits = self._exits, []
        return made

    def close(self):
        self.__exit__(None, None, None)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        current, suppressed, changed = error, False, False
        while self._exits:
            leave = self._exits.pop()
            try:
                if leave(None if current is None else type(current), current, None):
                    current, suppressed, changed = None, True, False
            except BaseException as raised:
                current, changed = raised, True
        if changed and current is not None:
            raise current
        return suppressed and kind is not None and current is None


class AsyncExitStack:
    def __init__(self):
        self._exits = []

    def enter_context(self, manager):
        value = manager.__enter__()
        self._exits.append((False, manager.__exit__))
        return value

    async def enter_async_context(self, manager):
        value = await manager.__aenter__()
        self._exits.append((True, manager.__aexit__))
        return value

    def push(self, exit):
        self._exits.append((False, getattr(exit, "__exit__", exit)))
        return exit

    def push_async_exit(self, exit):
        self._exits.append((True, getattr(exit, "__aexit__", exit)))
        return exit

    def callback(self, function, *args, **keywords):
        self._exits.append((False, lambda kind, error, traceback: _ignored(function(*args, **keywords))))
        return function

    def push_async_callback(self, function, *args, **keywords):
        async def leave(kind, error, traceback):
            await function(*args, **keywords)

        self._exits.append((True, leave))
        return function

    async def aclose(self):
        await self.__aexit__(None, None, None)

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, error, traceback):
        current, suppressed, changed = error, False, False
        while self._exits:
            is_async, leave = self._exits.pop()
            try:
                result = leave(None if current is None else type(current), current, None)
                if is_async:
                    result = await result
                if result:
                    current, suppressed, changed = None, True, False
            except BaseException as raised:
                current, changed = raised, True
        if changed and current is not None:
            raise current
        return suppressed and kind is not None and current is None


def _ignored(value):
    return None


class redirect_stdout:
    def __init__(self, target):
        raise RuntimeError("what an agent prints goes to its log: print(..., file=target) goes elsewhere")


redirect_stderr = redirect_stdout
