/* SPDX-License-Identifier: MIT */
#include "base/xalloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_code.h"
#include "base/message.h"

_Noreturn void xalloc_failed(void)
{
	message_error("out of memory");
	_exit(CODE_TEMPORARY);
}

void *xneeded(void *allocated)
{
	if (!allocated)
		xalloc_failed();
	return allocated;
}

void *xmalloc(size_t size)
{
	return xneeded(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
	return xneeded(calloc(count ? count : 1, size));
}

void *xrealloc(void *array, size_t count, size_t size)
{
	return xneeded(reallocarray(array, count ? count : 1, size));
}

void *xgrow(void *array, size_t used, size_t *capacity, size_t size)
{
	if (array && used < *capacity)
		return array;
	*capacity = used ? 2 * used : 16;
	return xrealloc(array, *capacity, size);
}

char *xstrdup(const char *text)
{
	return xneeded(strdup(text));
}

char *xstrndup(const char *text, size_t most)
{
	return xneeded(strndup(text, most));
}

char *xvprintf(const char *format, va_list arguments)
{
	char *made;
	return vasprintf(&made, format, arguments) < 0 ? xneeded(NULL) : made;
}

char *xprintf(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *made = xvprintf(format, arguments);
	va_end(arguments);
	return made;
}
