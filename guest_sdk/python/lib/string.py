# Constants and templates of text.

whitespace = " \t\n\r\v\f"
ascii_lowercase = "abcdefghijklmnopqrstuvwxyz"
ascii_uppercase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ascii_letters = ascii_lowercase + ascii_uppercase
digits = "0123456789"
hexdigits = digits + "abcdefABCDEF"
octdigits = "01234567"
punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
printable = digits + ascii_letters + punctuation + whitespace


def capwords(s, sep=None):
    return (sep or " ").join([word.capitalize() for word in s.split(sep)])


class Template:
    delimiter = "$"

    def __init__(self, template):
        self.template = template

    def substitute(self, mapping=None, **named):
        return self._filled(mapping, named, True)

    def safe_substitute(self, mapping=None, **named):
        return self._filled(mapping, named, False)

    def _filled(self, mapping, named, strict):
        values = dict(mapping or {})
        values.update(named)
        out = []
        text = self.template
        at = 0
        while True:
            start = text.find(self.delimiter, at)
            if start < 0:
                out.append(text[at:])
                return "".join(out)
            out.append(text[at:start])
            name, end = _name(text, start + 1)
            if text.startswith(self.delimiter, start + 1):
                out.append(self.delimiter)
                end = start + 2
            elif not name:
                if strict:
                    line = text.count("\n", 0, start) + 1
                    column = start - text.rfind("\n", 0, start)
                    raise ValueError("Invalid placeholder in string: line {}, col {}".format(line, column))
                out.append(self.delimiter)
                end = start + 1
            elif name in values:
                out.append(str(values[name]))
            elif strict:
                raise KeyError(name)
            else:
                out.append(text[start:end])
            at = end


def _name(text, at):
    braced = text[at : at + 1] == "{"
    start = end = at + braced
    while end < len(text) and (text[end] == "_" or text[end] in ascii_letters or (end > start and text[end] in digits)):
        end += 1
    if braced and text[end : end + 1] != "}":
        return "", at
    return text[start:end], end + braced


class Formatter:
    def format(self, format_string, *args, **named):
        from _format import format_text

        return format_text(format_string, args, named)

    def vformat(self, format_string, args, named):
        from _format import format_text

        return format_text(format_string, args, named)
