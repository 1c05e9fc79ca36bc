# Dates and times as text: ISO 8601, and the directives of `strftime` and `strptime`.

from datetime import _MONTHS, _WEEKDAYS, _days_in, _from_ordinal, _iso_start, _offset_text, _ordinal, timedelta, timezone


def _number(text, size):
    if len(text) != size or not text.isdigit():
        return None
    return int(text)


def date_parts(text):
    """Year, month and day of an ISO date, or `None`."""
    plain = text
    if len(text) == 10 and text[4] == text[7] == "-":
        plain = text[:4] + text[5:7] + text[8:]
    if "W" in text:
        return _week_date(text)
    if len(plain) != 8 or not plain.isdigit():
        return None
    return int(plain[:4]), int(plain[4:6]), int(plain[6:])


def _week_date(text):
    year, _, rest = text.replace("-", "").partition("W")
    year, week, day = _number(year, 4), _number(rest[:2], 2), _number(rest[2:] or "1", 1)
    if year is None or not week or not day or day > 7:
        return None
    return _from_ordinal(_iso_start(year) + (week - 1) * 7 + day - 1)


def time_parts(text):
    """Hour, minute, second, microsecond and time zone of an ISO time, or `None`."""
    text, zone = _zone_of(text)
    if zone is False:
        return None
    clock, _, fraction = text.replace(",", ".").partition(".")
    digits = clock.replace(":", "")
    if len(digits) not in (2, 4, 6) or not digits.isdigit() or ("." in text and (not fraction or not fraction.isdigit())):
        return None
    if ":" in clock and [len(part) for part in clock.split(":")] != [2] * (len(digits) // 2):
        return None
    digits += "0000"
    micros = int((fraction + "000000")[:6])
    return int(digits[:2]), int(digits[2:4]), int(digits[4:6]), micros, zone


def _zone_of(text):
    if text[-1:] in ("Z", "z"):
        return text[:-1], timezone.utc
    for index in range(len(text) - 1, -1, -1):
        if text[index] in "+-":
            return text[:index], _zone(text[index:])
    return text, None


def _zone(text):
    digits = text[1:].replace(":", "")
    if len(digits) not in (2, 4, 6) or not digits.isdigit():
        return False
    digits += "0000"
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]), seconds=int(digits[4:6]))
    if not offset:
        return timezone.utc
    return timezone(-offset if text[0] == "-" else offset)


def datetime_parts(text):
    size = 10 if text[4:5] == "-" or "W" in text[:8] and "-" in text[:5] else 8
    day = date_parts(text[:size])
    if day is None or len(text) == size + 1:
        return None
    if len(text) == size:
        return day
    clock = time_parts(text[size + 1 :])
    return None if clock is None else day + clock


def formatted(value, format):
    """`value` as the format says; a date is midnight."""
    hour, minute = getattr(value, "hour", 0), getattr(value, "minute", 0)
    second, micros = getattr(value, "second", 0), getattr(value, "microsecond", 0)
    offset = value.utcoffset() if hasattr(value, "utcoffset") else None
    zone = value.tzname() if hasattr(value, "tzname") else None
    day = _ordinal(value.year, value.month, value.day) - _ordinal(value.year, 1, 1) + 1
    weekday = (_ordinal(value.year, value.month, value.day) + 6) % 7
    out = []
    at = 0
    while at < len(format):
        char = format[at]
        at += 1
        if char != "%" or at == len(format):
            out.append(char)
            continue
        letter = format[at]
        at += 1
        if letter == ":" and format[at : at + 1] == "z":
            at += 1
            out.append(_offset_text(offset, ":"))
        elif letter in _NUMBERS:
            kind, size = _NUMBERS[letter]
            number = {
                "year": value.year, "month": value.month, "day": value.day, "hour": hour, "minute": minute,
                "second": second, "micros": micros, "short": value.year % 100, "half": hour % 12 or 12, "yearday": day,
                "weekday": (weekday + 1) % 7, "isoday": weekday + 1, "sundays": (day + 6 - (weekday + 1) % 7) // 7,
                "mondays": (day + 6 - weekday) // 7,
            }[kind]  # fmt: skip
            out.append("{:0{}d}".format(number, size))
        elif letter in "GV":
            iso = value.isocalendar()
            out.append("{:04d}".format(iso[0]) if letter == "G" else "{:02d}".format(iso[1]))
        elif letter == "e":
            out.append("{:2d}".format(value.day))
        elif letter in "aA":
            out.append(_WEEKDAYS[weekday] if letter == "A" else _WEEKDAYS[weekday][:3])
        elif letter in "bBh":
            out.append(_MONTHS[value.month] if letter == "B" else _MONTHS[value.month][:3])
        elif letter == "p":
            out.append("AM" if hour < 12 else "PM")
        elif letter == "z":
            out.append(_offset_text(offset, ""))
        elif letter == "Z":
            out.append(zone or "")
        elif letter in _COMPOSED:
            out.append(formatted(value, _COMPOSED[letter]))
        elif letter == "s":
            out.append(str(int(value.timestamp())))
        elif letter in "%nt":
            out.append({"%": "%", "n": "\n", "t": "\t"}[letter])
        else:
            out.append("%" + letter)
    return "".join(out)


_NUMBERS = {
    "Y": ("year", 4), "m": ("month", 2), "d": ("day", 2), "H": ("hour", 2), "M": ("minute", 2), "S": ("second", 2),
    "f": ("micros", 6), "y": ("short", 2), "I": ("half", 2), "j": ("yearday", 3), "w": ("weekday", 1),
    "u": ("isoday", 1), "U": ("sundays", 2), "W": ("mondays", 2),
}  # fmt: skip
_COMPOSED = {
    "c": "%a %b %e %H:%M:%S %Y",
    "x": "%m/%d/%y",
    "X": "%H:%M:%S",
    "D": "%m/%d/%y",
    "T": "%H:%M:%S",
    "R": "%H:%M",
    "F": "%Y-%m-%d",
    "r": "%I:%M:%S %p",
}


def parsed(text, format):
    """Arguments of a `datetime`, read as the format says."""
    found = {}
    reader = _Reader(text, format)
    reader.read(format, found)
    if reader.at != len(text):
        raise ValueError("unconverted data remains: " + text[reader.at :])
    year = found.get("Y")
    if year is None:
        short = found.get("y")
        year = 1900 if short is None else short + (2000 if short < 69 else 1900)
    month, day = found.get("m", 1), found.get("d", 1)
    if "j" in found and "m" not in found:
        year, month, day = _from_ordinal(_ordinal(year, 1, 1) + found["j"] - 1)
    elif day > _days_in(year, month):
        raise ValueError("day is out of range for month")
    hour = found.get("H")
    if hour is None:
        hour = found.get("I", 0)
        if "I" in found and "p" in found:
            hour = hour % 12 + (12 if found["p"] == "pm" else 0)
    micros = found.get("f", 0)
    return year, month, day, hour, found.get("M", 0), found.get("S", 0), micros, found.get("z")


# The most digits that a directive takes, and the least and greatest number.
_READ = {
    "Y": (4, 1, 9999), "m": (2, 1, 12), "d": (2, 1, 31), "H": (2, 0, 23), "I": (2, 1, 12), "M": (2, 0, 59),
    "S": (2, 0, 61), "y": (2, 0, 99), "j": (3, 1, 366), "w": (1, 0, 6), "u": (1, 1, 7), "U": (2, 0, 53), "W": (2, 0, 53),
}  # fmt: skip


class _Reader:
    def __init__(self, text, format):
        self.text = text
        self.at = 0
        self._format = format

    def _wrong(self):
        return ValueError("time data {!r} does not match format {!r}".format(self.text, self._format))

    def read(self, format, found):
        at = 0
        while at < len(format):
            char = format[at]
            at += 1
            if char == "%":
                self._directive(format[at : at + 1], found)
                at += 1
            elif char.isspace():
                if self.at >= len(self.text) or not self.text[self.at].isspace():
                    raise self._wrong()
                while self.at < len(self.text) and self.text[self.at].isspace():
                    self.at += 1
            elif self.text[self.at : self.at + 1].lower() == char.lower():
                self.at += 1
            else:
                raise self._wrong()

    def _directive(self, letter, found):
        if letter in _READ:
            most, low, high = _READ[letter]
            number = self._digits(most if letter != "Y" else 4, 4 if letter == "Y" else 1, low, high)
            found[letter] = number
        elif letter == "f":
            start = self.at
            self._digits(6, 1, 0, 999999)
            found["f"] = int((self.text[start : self.at] + "00000")[:6])
        elif letter in ("b", "B", "h"):
            found["m"] = self._word([name if letter == "B" else name[:3] for name in _MONTHS[1:]]) + 1
        elif letter in ("a", "A"):
            self._word([name if letter == "A" else name[:3] for name in _WEEKDAYS])
        elif letter == "p":
            found["p"] = ("am", "pm")[self._word(["am", "pm"])]
        elif letter == "z":
            found["z"] = self._offset()
        elif letter == "Z":
            self._word(["UTC", "GMT", "Z"])
        elif letter in _COMPOSED:
            self.read(_COMPOSED[letter].replace("%e", "%d"), found)
        elif letter == "%" and self.text[self.at : self.at + 1] == "%":
            self.at += 1
        elif letter == "%":
            raise self._wrong()
        else:
            raise ValueError("'{}' is a bad directive in format '{}'".format(letter, self._format))

    def _digits(self, most, least, low, high):
        end = self.at
        while end < len(self.text) and end - self.at < most and self.text[end].isdigit():
            end += 1
        # As many digits as make a number that fits.
        while end - self.at >= least and not low <= int(self.text[self.at : end]) <= high:
            end -= 1
        if end - self.at < least:
            raise self._wrong()
        number = int(self.text[self.at : end])
        self.at = end
        return number

    def _word(self, words):
        rest = self.text[self.at :].lower()
        for index, word in enumerate(words):
            if rest.startswith(word.lower()):
                self.at += len(word)
                return index
        raise self._wrong()

    def _offset(self):
        if self.text[self.at : self.at + 1] in ("Z", "z"):
            self.at += 1
            return timezone.utc
        end = self.at + 1
        while end < len(self.text) and (self.text[end].isdigit() or self.text[end] == ":"):
            end += 1
        zone = _zone(self.text[self.at : end]) if self.text[self.at : self.at + 1] in ("+", "-") else False
        if zone is False:
            raise self._wrong()
        self.at = end
        return zone
