# The little of `calendar` that is arithmetic.

from datetime import _MONTHS, _WEEKDAYS, _days_in, _is_leap, _ordinal

MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY, SUNDAY = range(7)

day_name = list(_WEEKDAYS)
day_abbr = [name[:3] for name in _WEEKDAYS]
month_name = list(_MONTHS)
month_abbr = [name[:3] for name in _MONTHS]

isleap = _is_leap


def leapdays(y1, y2):
    return len([year for year in range(y1, y2) if _is_leap(year)])


def weekday(year, month, day):
    return (_ordinal(year, month, day) + 6) % 7


def monthrange(year, month):
    if not 1 <= month <= 12:
        raise ValueError("bad month number {}; must be 1-12".format(month))
    return weekday(year, month, 1), _days_in(year, month)


def monthcalendar(year, month):
    first, days = monthrange(year, month)
    numbers = [0] * first + list(range(1, days + 1))
    numbers += [0] * (-len(numbers) % 7)
    return [numbers[at : at + 7] for at in range(0, len(numbers), 7)]


def timegm(values):
    import time

    return time.timegm(values)
