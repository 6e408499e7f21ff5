/* format: numbers for people. */
#pragma once

#include <stddef.h>

/* "1.27 µs", "3.405 ms": four digits and the unit that suits; "-" for what is not a number. The text
 * is given back. */
const char *format_time(double ns, char *text, size_t size);

/* As people read it: "us" and "x" after a number as "µs" and "×", 1.31e+03 as 1310. */
const char *format_text(const char *text, char *out, size_t size);

/* "5.14", "12938", "0.0002": as many digits as asked for, all digits before the point, and an exponent
 * only from 1e9 on and below 1e-4. "-" for what is not a number. The text is given back. */
const char *format_number(double value, int digits, char *text, size_t size);
