/* format: numbers for people. */
#pragma once

#include <stddef.h>

/* "1.27 us", "3.405 ms": four digits and the unit that suits; "-" for what is not a number. The text
 * is given back. */
const char *format_time(double ns, char *text, size_t size);
