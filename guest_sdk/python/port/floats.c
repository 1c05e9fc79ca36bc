/* Floats as text and back, exactly: upstream's own conversions are off by a digit now and then. The C library's are
   right; what Python wants beyond them is here. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "py/mpprint.h"
#include "py/parsenum.h"
#include "py/runtime.h"

enum {
  MAX_DIGITS = 17,
  /* No float is told by fewer that is not told by these, shortened. */
  SAFE_DIGITS = 15,
  REPR_BYTES = 32,
  DEFAULT_PRECISION = 6,
  /* A float has 309 digits before its point at most. */
  LONGEST_WHOLE = 320,
  MAX_PRECISION = 1100,
  GROUP = 3,
};

/* The fewest digits that give the same float again, as `d.ddde[+-]xx`. */
static void shortest(double value, char *out) {
  /* Numbers below the normal ones have fewer digits than that. */
  for (int digits = value < 0x1p-1022 ? 1 : SAFE_DIGITS; digits <= MAX_DIGITS; digits++) {
    snprintf(out, REPR_BYTES, "%.*e", digits - 1, value);
    if (strtod(out, NULL) == value) break;
  }
}

/* Splits it into its digits, without zeros at the end, and its exponent. */
static int split(const char *text, char *digits) {
  const char *e = strchr(text, 'e');
  size_t count = 0;
  for (const char *c = text; c < e; c++) {
    if (*c != '.') digits[count++] = *c;
  }
  while (count > 1 && digits[count - 1] == '0') count--;
  digits[count] = 0;
  return atoi(e + 1);
}

static size_t put_positional(char *out, const char *digits, int exponent) {
  size_t count = strlen(digits), used = 0;
  if (exponent < 0) {
    out[used++] = '0';
    out[used++] = '.';
    for (int i = -1; i > exponent; i--) out[used++] = '0';
    memcpy(out + used, digits, count);
    return used + count;
  }
  for (size_t i = 0; i < count || i <= (size_t)exponent; i++) {
    if (i == (size_t)exponent + 1) out[used++] = '.';
    out[used++] = i < count ? digits[i] : '0';
  }
  return used;
}

/* `repr`, but for the ".0" of a whole number. */
int engine_float_repr(double value, char *out, size_t size, char format, int precision, char sign) {
  (void)size, (void)format, (void)precision;
  size_t used = 0;
  if (signbit(value) && !isnan(value)) out[used++] = '-';
  else if (sign != 0) out[used++] = sign;
  value = fabs(value);
  if (!isfinite(value)) {
    strcpy(out + used, isnan(value) ? "nan" : "inf");
    return (int)strlen(out);
  }
  char text[REPR_BYTES], digits[MAX_DIGITS + 1];
  shortest(value, text);
  int exponent = split(text, digits);
  if (exponent >= -4 && exponent < 16) {
    used += put_positional(out + used, digits, exponent);
    out[used] = 0;
    return (int)used;
  }
  out[used++] = digits[0];
  if (digits[1] != 0) used += (size_t)snprintf(out + used, REPR_BYTES - used, ".%s", digits + 1);
  return (int)used + snprintf(out + used, REPR_BYTES - used, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

/* What upstream formats with elsewhere: complex numbers. */
int mp_format_float(double value, char *out, size_t size, char format, int precision, char sign) {
  if (format == 'g') return engine_float_repr(value, out, size, format, precision, sign);
  char pattern[] = "%.*f";
  pattern[3] = format;
  return snprintf(out, size, pattern, precision < 0 ? DEFAULT_PRECISION : precision, value);
}

/* Puts commas between groups of digits before the point. */
static size_t group_digits(char *text, size_t size) {
  size_t whole = 0;
  while (text[whole] >= '0' && text[whole] <= '9') whole++;
  size_t commas = whole == 0 ? 0 : (whole - 1) / GROUP;
  memmove(text + whole + commas, text + whole, size - whole + 1);
  for (size_t from = whole, to = whole + commas, in_group = 0; to > from;) {
    if (in_group == GROUP) {
      text[--to] = ',';
      in_group = 0;
      continue;
    }
    text[--to] = text[--from];
    in_group++;
  }
  return size + commas;
}

static size_t put_number(char *out, size_t size, double value, char format, int precision) {
  if (precision == ENGINE_REPR) {
    size_t used = (size_t)engine_float_repr(value, out, size, 'g', 0, 0);
    if (strpbrk(out, ".en") == NULL) {
      strcpy(out + used, ".0");
      used += 2;
    }
    return used;
  }
  char pattern[] = "%.*f";
  pattern[3] = format;
  return (size_t)snprintf(out, size, pattern, precision < 0 ? DEFAULT_PRECISION : precision, value);
}

/* A float of a format string. Replaces upstream's, which has room for 32 characters. */
int mp_print_float(const mp_print_t *print, double value, char format, int flags, char fill, int width, int precision) {
  if (precision > MAX_PRECISION) mp_raise_ValueError(MP_ERROR_TEXT("precision too large"));
  size_t size = LONGEST_WHOLE + LONGEST_WHOLE / GROUP + MAX_PRECISION + 8;
  char *text = alloca(size);
  char sign = signbit(value) && !isnan(value) ? '-' : flags & PF_FLAG_SHOW_SIGN ? '+' : flags & PF_FLAG_SPACE_SIGN ? ' ' : 0;
  size_t used = 0;
  if (sign != 0) text[used++] = sign;
  size_t number = put_number(text + used, size - used, fabs(value), format, precision);
  if (flags & PF_FLAG_SHOW_COMMA) number = group_digits(text + used, number);
  used += number;
  if (flags & PF_FLAG_ADD_PERCENT) text[used++] = '%';
  char *rest = text;
  int printed = 0;
  if (flags & PF_FLAG_PAD_AFTER_SIGN && sign != 0) {
    printed = mp_print_strn(print, text, 1, 0, 0, 1);
    rest++, used--, width--;
  }
  return printed + mp_print_strn(print, rest, used, flags, fill, width);
}

/* `round(value, digits)`: to the decimal that is nearest to what the float really is. */
double engine_round(double value, int digits) {
  if (!isfinite(value) || digits > LONGEST_WHOLE) return value;
  if (digits < -LONGEST_WHOLE) return copysign(0, value);
  if (digits < 0) {
    double unit = pow(10, -digits);
    return nearbyint(value / unit) * unit;
  }
  char text[2 * LONGEST_WHOLE + 8];
  snprintf(text, sizeof text, "%.*f", digits, value);
  return strtod(text, NULL);
}

/* Whether it is a plain decimal number; upstream knows all else that Python takes for one. */
static bool is_decimal(const char *text, size_t size) {
  size_t i = 0, digits = 0;
  if (i < size && (text[i] == '+' || text[i] == '-')) i++;
  for (; i < size && text[i] >= '0' && text[i] <= '9'; i++) digits++;
  if (i < size && text[i] == '.') i++;
  for (; i < size && text[i] >= '0' && text[i] <= '9'; i++) digits++;
  if (digits == 0) return false;
  if (i == size) return true;
  if ((text[i++] | 0x20) != 'e') return false;
  if (i < size && (text[i] == '+' || text[i] == '-')) i++;
  size_t first = i;
  while (i < size && text[i] >= '0' && text[i] <= '9') i++;
  return i == size && i > first;
}

mp_obj_t upstream_parse_num_decimal(const char *str, size_t len, bool allow_imag, bool force_complex, mp_lexer_t *lex);

mp_obj_t mp_parse_num_decimal(const char *str, size_t len, bool allow_imag, bool force_complex, mp_lexer_t *lex) {
  if (force_complex || !is_decimal(str, len)) return upstream_parse_num_decimal(str, len, allow_imag, force_complex, lex);
  char *text = m_new(char, len + 1);
  memcpy(text, str, len);
  text[len] = 0;
  double value = strtod(text, NULL);
  m_del(char, text, len + 1);
  return mp_obj_new_float(value);
}
