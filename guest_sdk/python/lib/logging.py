# Logging, into the agent's log: the host keeps level, time and order, so there is one handler and no format of ours.

NOTSET, DEBUG, INFO, WARNING, ERROR, CRITICAL = 0, 10, 20, 30, 40, 50
WARN, FATAL = WARNING, CRITICAL

_NAMES = {0: "NOTSET", 10: "DEBUG", 20: "INFO", 30: "WARNING", 40: "ERROR", 50: "CRITICAL"}
_loggers = {}


def getLevelName(level):
    if isinstance(level, str):
        for number, name in _NAMES.items():
            if name == level:
                return number
    return _NAMES.get(level, "Level {}".format(level))


def addLevelName(level, name):
    _NAMES[level] = name


def _number(level):
    if isinstance(level, str):
        level = getLevelName(level)
        if isinstance(level, str):
            raise ValueError("Unknown level: {!r}".format(level))
    return level


class LogRecord:
    def __init__(self, name, levelno, msg, args, exc_info):
        self.name = name
        self.levelno = levelno
        self.levelname = getLevelName(levelno)
        self.msg = msg
        self.args = args
        self.exc_info = exc_info

    def getMessage(self):
        text = str(self.msg)
        if not self.args:
            return text
        args = self.args
        return text % (args[0] if len(args) == 1 and isinstance(args[0], dict) and args[0] else args)


class Filter:
    def __init__(self, name=""):
        self.name = name

    def filter(self, record):
        return record.name == self.name or record.name.startswith(self.name + ".") or not self.name


class _Filtered:
    def __init__(self):
        self.filters = []

    def addFilter(self, filter):
        self.filters.append(filter)

    def removeFilter(self, filter):
        self.filters.remove(filter)

    def _passes(self, record):
        for one in self.filters:
            if not (one.filter(record) if hasattr(one, "filter") else one(record)):
                return False
        return True


class Formatter:
    def __init__(self, fmt=None, datefmt=None, style="%"):
        self._format = fmt or "%(message)s"

    def format(self, record):
        values = {"message": record.getMessage(), "name": record.name, "levelname": record.levelname}
        values["levelno"], values["asctime"] = record.levelno, ""
        return self._format % values


class Handler(_Filtered):
    def __init__(self, level=NOTSET):
        super().__init__()
        self.level = _number(level)
        self.formatter = None

    def setLevel(self, level):
        self.level = _number(level)

    def setFormatter(self, formatter):
        self.formatter = formatter

    def format(self, record):
        return record.getMessage() if self.formatter is None else self.formatter.format(record)

    def handle(self, record):
        if record.levelno >= self.level and self._passes(record):
            self.emit(record)

    def emit(self, record):
        raise NotImplementedError("emit must be implemented by Handler subclasses")

    def flush(self):
        pass

    def close(self):
        pass


class NullHandler(Handler):
    def emit(self, record):
        pass


class StreamHandler(Handler):
    """Writes to a stream that it is given; without one, to the agent's log."""

    def __init__(self, stream=None):
        super().__init__()
        self.stream = stream

    def emit(self, record):
        text = self.format(record)
        if self.stream is None:
            _to_host(record.levelno, text)
        else:
            self.stream.write(text + "\n")


def _to_host(level, text):
    from agent import log

    if level >= ERROR:
        log.error(text)
    elif level >= WARNING:
        log.warning(text)
    elif level >= INFO:
        log.info(text)
    else:
        log.debug(text)


class Logger(_Filtered):
    def __init__(self, name, level=NOTSET):
        super().__init__()
        self.name = name
        self.level = _number(level)
        self.handlers = []
        self.propagate = True
        self.disabled = False
        self.parent = None

    def setLevel(self, level):
        self.level = _number(level)

    def getEffectiveLevel(self):
        logger = self
        while logger is not None:
            if logger.level:
                return logger.level
            logger = logger.parent
        return NOTSET

    def isEnabledFor(self, level):
        return not self.disabled and level >= max(self.getEffectiveLevel(), _disabled[0] + 1)

    def addHandler(self, handler):
        if handler not in self.handlers:
            self.handlers.append(handler)

    def removeHandler(self, handler):
        if handler in self.handlers:
            self.handlers.remove(handler)

    def hasHandlers(self):
        return bool(self.handlers or (self.parent is not None and self.propagate and self.parent.hasHandlers()))

    def getChild(self, suffix):
        return getLogger(suffix if self is root else self.name + "." + suffix)

    def log(self, level, msg, *args, exc_info=None, stack_info=False, stacklevel=1, extra=None):
        if not self.isEnabledFor(level):
            return
        record = LogRecord(self.name, level, msg, args, exc_info)
        for name, value in (extra or {}).items():
            setattr(record, name, value)
        if not self._passes(record):
            return
        if exc_info:
            record.msg, record.args = record.getMessage() + "\n" + _trace(exc_info), ()
        logger, found = self, False
        while logger is not None:
            for handler in logger.handlers:
                found = True
                handler.handle(record)
            logger = logger.parent if logger.propagate else None
        if not found:
            _to_host(level, record.getMessage())

    def debug(self, msg, *args, **options):
        self.log(DEBUG, msg, *args, **options)

    def info(self, msg, *args, **options):
        self.log(INFO, msg, *args, **options)

    def warning(self, msg, *args, **options):
        self.log(WARNING, msg, *args, **options)

    warn = warning

    def error(self, msg, *args, **options):
        self.log(ERROR, msg, *args, **options)

    def exception(self, msg, *args, exc_info=True, **options):
        self.log(ERROR, msg, *args, exc_info=exc_info, **options)

    def critical(self, msg, *args, **options):
        self.log(CRITICAL, msg, *args, **options)

    fatal = critical

    def __repr__(self):
        return "<Logger {} ({})>".format(self.name, getLevelName(self.getEffectiveLevel()))


def _trace(exc_info):
    import traceback

    if isinstance(exc_info, BaseException):
        return "".join(traceback.format_exception(exc_info)).rstrip("\n")
    return traceback.format_exc().rstrip("\n")


root = Logger("root", WARNING)
_disabled = [NOTSET - 1]


def disable(level=CRITICAL):
    _disabled[0] = level


def getLogger(name=None):
    if not name or name == "root":
        return root
    found = _loggers.get(name)
    if found is None:
        found = _loggers[name] = Logger(name)
        above = name.rpartition(".")[0]
        found.parent = getLogger(above) if above else root
    return found


def basicConfig(*, level=None, handlers=None, format=None, datefmt=None, stream=None, force=False, **options):
    if level is not None:
        root.setLevel(level)
    if root.handlers and not force:
        return
    root.handlers = list(handlers or [StreamHandler(stream)])
    if format is not None:
        for handler in root.handlers:
            if handler.formatter is None:
                handler.setFormatter(Formatter(format))


debug, info, warning, error = root.debug, root.info, root.warning, root.error
exception, critical, log = root.exception, root.critical, root.log
warn, fatal = warning, critical


class LoggerAdapter:
    def __init__(self, logger, extra=None):
        self.logger = logger
        self.extra = extra

    def process(self, msg, keywords):
        keywords["extra"] = self.extra
        return msg, keywords

    def log(self, level, msg, *args, **keywords):
        msg, keywords = self.process(msg, keywords)
        self.logger.log(level, msg, *args, **keywords)

    def debug(self, msg, *args, **keywords):
        self.log(DEBUG, msg, *args, **keywords)

    def info(self, msg, *args, **keywords):
        self.log(INFO, msg, *args, **keywords)

    def warning(self, msg, *args, **keywords):
        self.log(WARNING, msg, *args, **keywords)

    def error(self, msg, *args, **keywords):
        self.log(ERROR, msg, *args, **keywords)

    def critical(self, msg, *args, **keywords):
        self.log(CRITICAL, msg, *args, **keywords)
