# The clock of the host: it stands still within a slice, and nobody can wait on it.

import _host
from collections import namedtuple

_FIELDS = ("tm_year", "tm_mon", "tm_mday", "tm_hour", "tm_min", "tm_sec", "tm_wday", "tm_yday", "tm_isdst")
_struct = namedtuple("struct_time", _FIELDS)

timezone = altzone = daylight = 0
tzname = ("UTC", "UTC")


def struct_time(values):
    return _struct(*values)


def time():
    return _host.now_ms() / 1000


def time_ns():
    return _host.now_ms() * 1000000


monotonic = perf_counter = process_time = thread_time = time
monotonic_ns = perf_counter_ns = process_time_ns = time_ns


def sleep(seconds):
    raise RuntimeError("an agent can't block: `await asyncio.sleep(...)`, or `after(...)` from `agent`")


def gmtime(seconds=None):
    import datetime

    now = time() if seconds is None else seconds
    values = list(datetime.datetime._from_micros(int(now // 1) * 1000000, None).timetuple())
    return struct_time(values[:8] + [0])


localtime = gmtime


def mktime(values):
    return float(timegm(values))


def timegm(values):
    import datetime

    made = datetime.datetime(*list(values)[:6])
    return int(made.timestamp())


def strftime(format, values=None):
    import datetime

    return datetime.datetime(*list(gmtime() if values is None else values)[:6]).strftime(format)


def strptime(text, format="%a %b %d %H:%M:%S %Y"):
    import datetime

    return datetime.datetime.strptime(text, format).timetuple()


def asctime(values=None):
    return strftime("%a %b %e %H:%M:%S %Y", values)


def ctime(seconds=None):
    return asctime(gmtime(seconds))
