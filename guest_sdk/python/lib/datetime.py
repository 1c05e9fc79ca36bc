# Dates and times. The clock is the host's: `now()` is when the slice began, and 1970 while an agent loads.

import _host

MINYEAR, MAXYEAR = 1, 9999

_DAYS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_BEFORE = (0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_MONTHS = (
    "", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_in(year, month):
    return 29 if month == 2 and _is_leap(year) else _DAYS[month]


def _ordinal(year, month, day):
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400
    return days + _BEFORE[month] + (month > 2 and _is_leap(year)) + day


def _from_ordinal(number):
    number -= 1
    cycles, number = divmod(number, 146097)
    year = cycles * 400 + 1
    centuries = min(number // 36524, 3)
    number -= centuries * 36524
    fours, number = divmod(number, 1461)
    years = min(number // 365, 3)
    number -= years * 365
    year += centuries * 100 + fours * 4 + years
    month = 12
    while _BEFORE[month] + (month > 2 and _is_leap(year)) > number:
        month -= 1
    return year, month, number - _BEFORE[month] - (month > 2 and _is_leap(year)) + 1


def _check(name, value, low, high):
    if not isinstance(value, int):
        raise TypeError("'{}' object cannot be interpreted as an integer".format(type(value).__name__))
    if not low <= value <= high:
        raise ValueError("{} must be in {}..{}".format(name, low, high))


class timedelta:
    def __init__(self, days=0, seconds=0, microseconds=0, milliseconds=0, minutes=0, hours=0, weeks=0):
        days += weeks * 7
        seconds += minutes * 60 + hours * 3600
        microseconds += milliseconds * 1000
        # Fractions of a larger unit go into the smaller ones.
        whole = int(days // 1)
        seconds += (days - whole) * 86400
        whole_seconds = int(seconds // 1)
        microseconds += (seconds - whole_seconds) * 1000000
        total = (whole * 86400 + whole_seconds) * 1000000 + int(round(microseconds))
        self._set(total)

    def _set(self, total):
        seconds, self.microseconds = divmod(total, 1000000)
        self.days, self.seconds = divmod(seconds, 86400)
        if abs(self.days) > 999999999:
            raise OverflowError("days={}; must have magnitude <= 999999999".format(self.days))
        self._total = total

    @staticmethod
    def _of(total):
        made = timedelta()
        made._set(total)
        return made

    def total_seconds(self):
        return self._total / 1000000

    def __add__(self, other):
        return timedelta._of(self._total + other._total) if isinstance(other, timedelta) else NotImplemented

    def __sub__(self, other):
        return timedelta._of(self._total - other._total) if isinstance(other, timedelta) else NotImplemented

    def __radd__(self, other):
        # What `sum` begins with.
        return self if other == 0 else NotImplemented

    def __neg__(self):
        return timedelta._of(-self._total)

    def __pos__(self):
        return self

    def __abs__(self):
        return timedelta._of(abs(self._total))

    def __mul__(self, factor):
        return timedelta._of(self._total * factor if isinstance(factor, int) else int(round(self._total * factor)))

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, timedelta):
            return self._total / other._total
        return timedelta._of(int(round(self._total / other)))

    def __floordiv__(self, other):
        if isinstance(other, timedelta):
            return self._total // other._total
        return timedelta._of(self._total // other)

    def __mod__(self, other):
        return timedelta._of(self._total % other._total)

    def __divmod__(self, other):
        return self // other, self % other

    def __eq__(self, other):
        return isinstance(other, timedelta) and self._total == other._total

    def __lt__(self, other):
        return self._total < other._total

    def __le__(self, other):
        return self._total <= other._total

    def __gt__(self, other):
        return self._total > other._total

    def __ge__(self, other):
        return self._total >= other._total

    def __hash__(self):
        return hash(self._total)

    def __bool__(self):
        return self._total != 0

    def __str__(self):
        minutes, seconds = divmod(self.seconds, 60)
        hours, minutes = divmod(minutes, 60)
        text = "{}:{:02d}:{:02d}".format(hours, minutes, seconds)
        if self.microseconds:
            text += ".{:06d}".format(self.microseconds)
        if self.days:
            text = "{} day{}, {}".format(self.days, "" if abs(self.days) == 1 else "s", text)
        return text

    def __repr__(self):
        parts = []
        for name in ("days", "seconds", "microseconds"):
            if getattr(self, name):
                parts.append("{}={}".format(name, getattr(self, name)))
        return "datetime.timedelta({})".format(", ".join(parts) or "0")


timedelta.min = timedelta(-999999999)
timedelta.max = timedelta(days=999999999, hours=23, minutes=59, seconds=59, microseconds=999999)
timedelta.resolution = timedelta(microseconds=1)


class tzinfo:
    def utcoffset(self, dt):
        raise NotImplementedError("a tzinfo subclass must implement utcoffset()")

    def tzname(self, dt):
        raise NotImplementedError("a tzinfo subclass must implement tzname()")

    def dst(self, dt):
        return None

    def fromutc(self, dt):
        return dt + self.utcoffset(dt)


class timezone(tzinfo):
    def __init__(self, offset, name=None):
        if not -86400 * 1000000 < offset._total < 86400 * 1000000:
            raise ValueError("offset must be a timedelta strictly between -24h and 24h")
        self._offset = offset
        self._name = name

    def utcoffset(self, dt):
        return self._offset

    def dst(self, dt):
        return None

    def tzname(self, dt):
        if self._name is not None:
            return self._name
        return "UTC" if not self._offset else "UTC" + _offset_text(self._offset, ":")

    def __eq__(self, other):
        return isinstance(other, timezone) and self._offset == other._offset

    def __hash__(self):
        return hash(self._offset)

    def __str__(self):
        return self.tzname(None)

    def __repr__(self):
        if self is timezone.utc:
            return "datetime.timezone.utc"
        if self._name is None:
            return "datetime.timezone({!r})".format(self._offset)
        return "datetime.timezone({!r}, {!r})".format(self._offset, self._name)


timezone.utc = timezone(timedelta(0))
UTC = timezone.utc


def _offset_text(offset, separator):
    if offset is None:
        return ""
    total = offset._total // 1000000
    sign = "-" if total < 0 else "+"
    hours, rest = divmod(abs(total), 3600)
    minutes, seconds = divmod(rest, 60)
    text = "{}{:02d}{}{:02d}".format(sign, hours, separator, minutes)
    return text + "{}{:02d}".format(separator, seconds) if seconds else text


class date:
    def __init__(self, year, month, day):
        if not isinstance(year, int):
            raise TypeError("'{}' object cannot be interpreted as an integer".format(type(year).__name__))
        if not MINYEAR <= year <= MAXYEAR:
            raise ValueError("year {} is out of range".format(year))
        _check("month", month, 1, 12)
        if not 1 <= day <= _days_in(year, month):
            raise ValueError("day is out of range for month")
        self.year, self.month, self.day = year, month, day

    @classmethod
    def today(cls):
        return cls.fromtimestamp(_host.now_ms() / 1000)

    @classmethod
    def fromtimestamp(cls, timestamp):
        return cls.fromordinal(_ordinal(1970, 1, 1) + int(timestamp // 86400))

    @classmethod
    def fromordinal(cls, number):
        return cls(*_from_ordinal(number))

    @classmethod
    def fromisoformat(cls, text):
        parts = _date_parts(text)
        if parts is None:
            raise ValueError("Invalid isoformat string: {!r}".format(text))
        return cls(*parts)

    @classmethod
    def fromisocalendar(cls, year, week, day):
        return cls.fromordinal(_iso_start(year) + (week - 1) * 7 + day - 1)

    def toordinal(self):
        return _ordinal(self.year, self.month, self.day)

    def weekday(self):
        return (date.toordinal(self) + 6) % 7

    def isoweekday(self):
        return date.toordinal(self) % 7 or 7

    def isocalendar(self):
        number = date.toordinal(self)
        year = self.year
        if number >= _iso_start(year + 1):
            year += 1
        elif number < _iso_start(year):
            year -= 1
        week, day = divmod(number - _iso_start(year), 7)
        return _iso_date(year, week + 1, day + 1)

    def timetuple(self):
        return self._timetuple(0, 0, 0)

    def _timetuple(self, hour, minute, second):
        import time

        day = date.toordinal(self) - _ordinal(self.year, 1, 1) + 1
        return time.struct_time((self.year, self.month, self.day, hour, minute, second, self.weekday(), day, -1))

    def isoformat(self):
        return "{:04d}-{:02d}-{:02d}".format(self.year, self.month, self.day)

    def ctime(self):
        return self.strftime("%a %b ") + "{:2d} 00:00:00 {:04d}".format(self.day, self.year)

    def replace(self, year=None, month=None, day=None):
        return type(self)(
            self.year if year is None else year, self.month if month is None else month, self.day if day is None else day
        )

    def strftime(self, format):
        import _dates

        return _dates.formatted(self, format)

    def __format__(self, spec):
        return self.strftime(spec) if spec else str(self)

    def _key(self):
        return (self.year, self.month, self.day)

    def __eq__(self, other):
        return type(other) is type(self) and self._key() == other._key()

    def __lt__(self, other):
        return self._key() < self._compared(other, "<")._key()

    def __le__(self, other):
        return self._key() <= self._compared(other, "<=")._key()

    def __gt__(self, other):
        return self._key() > self._compared(other, ">")._key()

    def __ge__(self, other):
        return self._key() >= self._compared(other, ">=")._key()

    def _compared(self, other, sign):
        if isinstance(other, date) and isinstance(other, datetime) == isinstance(self, datetime):
            return other
        text = "'{}' not supported between instances of '{}' and '{}'"
        raise TypeError(text.format(sign, _qualified(self), _qualified(other)))

    def __hash__(self):
        return hash(self._key())

    def __add__(self, other):
        if not isinstance(other, timedelta):
            return NotImplemented
        number = self.toordinal() + other.days
        if not 0 < number <= 3652059:
            raise OverflowError("date value out of range")
        return type(self).fromordinal(number)

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, timedelta):
            return self + timedelta(-other.days)
        if isinstance(other, date):
            return timedelta(self.toordinal() - other.toordinal())
        return NotImplemented

    def __str__(self):
        return self.isoformat()

    def __repr__(self):
        return "datetime.date({}, {}, {})".format(self.year, self.month, self.day)


def _qualified(value):
    name = type(value).__name__
    return "datetime." + name if isinstance(value, (date, time, timedelta)) else name


def _iso_start(year):
    # The Monday of the week that has the year's first Thursday.
    first = _ordinal(year, 1, 1)
    weekday = (first + 6) % 7
    return first - weekday + (7 if weekday > 3 else 0)


def _iso_date(year, week, weekday):
    from collections import namedtuple

    kind = namedtuple("IsoCalendarDate", ("year", "week", "weekday"))
    kind.__repr__ = lambda self: "datetime.IsoCalendarDate(year={}, week={}, weekday={})".format(*self)
    return kind(year, week, weekday)

date.min = date(1, 1, 1)
date.max = date(9999, 12, 31)
date.resolution = timedelta(days=1)


def _check_time(hour, minute, second, microsecond):
    _check("hour", hour, 0, 23)
    _check("minute", minute, 0, 59)
    _check("second", second, 0, 59)
    _check("microsecond", microsecond, 0, 999999)


def _time_text(value, timespec):
    if timespec == "auto":
        timespec = "microseconds" if value.microsecond else "seconds"
    text = "{:02d}".format(value.hour)
    if timespec != "hours":
        text += ":{:02d}".format(value.minute)
    if timespec in ("seconds", "milliseconds", "microseconds"):
        text += ":{:02d}".format(value.second)
    elif timespec not in ("hours", "minutes"):
        raise ValueError("Unknown timespec value")
    if timespec == "milliseconds":
        text += ".{:03d}".format(value.microsecond // 1000)
    elif timespec == "microseconds":
        text += ".{:06d}".format(value.microsecond)
    return text


class time:
    def __init__(self, hour=0, minute=0, second=0, microsecond=0, tzinfo=None, *, fold=0):
        _check_time(hour, minute, second, microsecond)
        self.hour, self.minute, self.second, self.microsecond = hour, minute, second, microsecond
        self.tzinfo, self.fold = tzinfo, fold

    @classmethod
    def fromisoformat(cls, text):
        import _dates

        parts = _dates.time_parts(text[1:] if text[:1] == "T" else text)
        if parts is None:
            raise ValueError("Invalid isoformat string: {!r}".format(text))
        return cls(*parts)

    def utcoffset(self):
        return None if self.tzinfo is None else self.tzinfo.utcoffset(None)

    def tzname(self):
        return None if self.tzinfo is None else self.tzinfo.tzname(None)

    def dst(self):
        return None if self.tzinfo is None else self.tzinfo.dst(None)

    def isoformat(self, timespec="auto"):
        return _time_text(self, timespec) + _offset_text(self.utcoffset(), ":")

    def replace(self, hour=None, minute=None, second=None, microsecond=None, tzinfo=True):
        return type(self)(
            self.hour if hour is None else hour,
            self.minute if minute is None else minute,
            self.second if second is None else second,
            self.microsecond if microsecond is None else microsecond,
            self.tzinfo if tzinfo is True else tzinfo,
        )

    def strftime(self, format):
        import _dates

        return _dates.formatted(datetime.combine(date(1900, 1, 1), self), format)

    def __format__(self, spec):
        return self.strftime(spec) if spec else str(self)

    def _key(self):
        offset = self.utcoffset()
        minutes = self.hour * 60 + self.minute - (offset._total // 60000000 if offset else 0)
        return (minutes, self.second, self.microsecond)

    def __eq__(self, other):
        return isinstance(other, time) and self._key() == other._key()

    def __lt__(self, other):
        return self._key() < other._key()

    def __le__(self, other):
        return self._key() <= other._key()

    def __gt__(self, other):
        return self._key() > other._key()

    def __ge__(self, other):
        return self._key() >= other._key()

    def __hash__(self):
        return hash(self._key())

    def __str__(self):
        return self.isoformat()

    def __repr__(self):
        return "datetime.time({})".format(_time_arguments(self, 2))


def _time_arguments(value, least):
    parts = [value.hour, value.minute, value.second, value.microsecond]
    while len(parts) > least and not parts[-1]:
        parts.pop()
    shown = [str(part) for part in parts]
    if value.tzinfo is not None:
        shown.append("tzinfo={!r}".format(value.tzinfo))
    return ", ".join(shown)


time.min = time(0, 0, 0)
time.max = time(23, 59, 59, 999999)
_time = time


def _date_parts(text):
    import _dates

    return _dates.date_parts(text)


_EPOCH = _ordinal(1970, 1, 1)


class datetime(date):
    def __init__(self, year, month, day, hour=0, minute=0, second=0, microsecond=0, tzinfo=None, *, fold=0):
        super().__init__(year, month, day)
        _check_time(hour, minute, second, microsecond)
        self.hour, self.minute, self.second, self.microsecond = hour, minute, second, microsecond
        self.tzinfo, self.fold = tzinfo, fold

    @classmethod
    def now(cls, tz=None):
        return cls._from_micros(_host.now_ms() * 1000, tz)

    today = utcnow = now

    @classmethod
    def _from_micros(cls, micros, tz):
        made = cls._plain(micros + _EPOCH * 86400000000)
        if tz is None:
            return made
        made.tzinfo = tz
        return tz.fromutc(made)

    @classmethod
    def _plain(cls, micros):
        days, rest = divmod(micros, 86400000000)
        if not 0 < days <= 3652059:
            raise OverflowError("date value out of range")
        seconds, micros = divmod(rest, 1000000)
        minutes, second = divmod(seconds, 60)
        hour, minute = divmod(minutes, 60)
        year, month, day = _from_ordinal(days)
        return cls(year, month, day, hour, minute, second, micros)

    @classmethod
    def fromtimestamp(cls, timestamp, tz=None):
        return cls._from_micros(int(round(timestamp * 1000000)), tz)

    utcfromtimestamp = fromtimestamp

    @classmethod
    def fromordinal(cls, number):
        return cls(*_from_ordinal(number))

    @classmethod
    def combine(cls, date, time, tzinfo=True):
        tz = time.tzinfo if tzinfo is True else tzinfo
        return cls(
            date.year, date.month, date.day, time.hour, time.minute, time.second, time.microsecond, tz
        )

    @classmethod
    def fromisoformat(cls, text):
        import _dates

        parts = _dates.datetime_parts(text)
        if parts is None:
            raise ValueError("Invalid isoformat string: {!r}".format(text))
        return cls(*parts)

    @classmethod
    def strptime(cls, text, format):
        import _dates

        return cls(*_dates.parsed(text, format))

    def _micros(self):
        seconds = self.hour * 3600 + self.minute * 60 + self.second
        return (self.toordinal() * 86400 + seconds) * 1000000 + self.microsecond

    def _utc_micros(self):
        offset = self.utcoffset()
        return self._micros() - (offset._total if offset is not None else 0)

    def timestamp(self):
        return (self._utc_micros() - _EPOCH * 86400000000) / 1000000

    def utcoffset(self):
        return None if self.tzinfo is None else self.tzinfo.utcoffset(self)

    def tzname(self):
        return None if self.tzinfo is None else self.tzinfo.tzname(self)

    def dst(self):
        return None if self.tzinfo is None else self.tzinfo.dst(self)

    def date(self):
        return date(self.year, self.month, self.day)

    def time(self):
        return _time(self.hour, self.minute, self.second, self.microsecond)

    def timetz(self):
        return _time(self.hour, self.minute, self.second, self.microsecond, self.tzinfo)

    def timetuple(self):
        return self._timetuple(self.hour, self.minute, self.second)

    def utctimetuple(self):
        return self._plain(self._utc_micros()).timetuple()

    def astimezone(self, tz=None):
        tz = UTC if tz is None else tz
        made = self._plain(self._utc_micros())
        made.tzinfo = tz
        return tz.fromutc(made)

    def isoformat(self, sep="T", timespec="auto"):
        text = "{:04d}-{:02d}-{:02d}{}".format(self.year, self.month, self.day, sep)
        return text + _time_text(self, timespec) + _offset_text(self.utcoffset(), ":")

    def ctime(self):
        return self.strftime("%a %b ") + "{:2d} {} {:04d}".format(self.day, self.strftime("%H:%M:%S"), self.year)

    def replace(
        self, year=None, month=None, day=None, hour=None, minute=None, second=None, microsecond=None, tzinfo=True, *,
        fold=0
    ):  # fmt: skip
        return type(self)(
            self.year if year is None else year,
            self.month if month is None else month,
            self.day if day is None else day,
            self.hour if hour is None else hour,
            self.minute if minute is None else minute,
            self.second if second is None else second,
            self.microsecond if microsecond is None else microsecond,
            self.tzinfo if tzinfo is True else tzinfo,
        )

    def _key(self):
        return self._utc_micros()

    def _compared(self, other, sign):
        other = super()._compared(other, sign)
        if (other.utcoffset() is None) != (self.utcoffset() is None):
            raise TypeError("can't compare offset-naive and offset-aware datetimes")
        return other

    def __eq__(self, other):
        if not isinstance(other, datetime) or (other.utcoffset() is None) != (self.utcoffset() is None):
            return False
        return self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __add__(self, other):
        if not isinstance(other, timedelta):
            return NotImplemented
        made = self._plain(self._micros() + other._total)
        made.tzinfo = self.tzinfo
        return made

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, timedelta):
            return self + timedelta._of(-other._total)
        if not isinstance(other, datetime):
            return NotImplemented
        if (other.utcoffset() is None) != (self.utcoffset() is None):
            raise TypeError("can't subtract offset-naive and offset-aware datetimes")
        return timedelta._of(self._utc_micros() - other._utc_micros())

    def __str__(self):
        return self.isoformat(" ")

    def __repr__(self):
        text = "datetime.datetime({}, {}, {}, {})"
        return text.format(self.year, self.month, self.day, _time_arguments(self, 2))


datetime.min = datetime(1, 1, 1)
datetime.max = datetime(9999, 12, 31, 23, 59, 59, 999999)
datetime.resolution = timedelta(microseconds=1)
