/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
	if (!err)
		return status;
	char raw[sizeof(err->text)];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(raw, sizeof(raw), format, arguments);
	va_end(arguments);
	err->status = status;
	text_escape(err->text, sizeof(err->text), raw, strlen(raw));
	return status;
}

const char *error_cure(int number)
{
	switch (number) {
	case ENOSPC:
	case EDQUOT: return "; free space there";
	case EMFILE:
	case ENFILE: return "; close files, or raise the limit (ulimit -n)";
	case EFBIG: return "; raise the limit of the file size (ulimit -f)";
	default: return "";
	}
}

static enum status set_cured(
	struct error *err, int number, const char *cure, const char *format, va_list arguments)
{
	char what[sizeof(err->text)];
	vsnprintf(what, sizeof(what), format, arguments);
	return error_set(err, error_status_of_errno(number), "cannot %s: %s%s", what,
		strerror(number), cure);
}

enum status error_errno(struct error *err, int number, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	enum status status = set_cured(err, number, error_cure(number), format, arguments);
	va_end(arguments);
	return status;
}

enum status error_cured(struct error *err, int number, const char *cure, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	enum status status = set_cured(err, number, cure, format, arguments);
	va_end(arguments);
	return status;
}

enum status error_prefix(struct error *err, const char *format, ...)
{
	char prefix[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(prefix, sizeof(prefix), format, arguments);
	va_end(arguments);
	struct error old = *err;
	return error_set(err, old.status, "%s: %s", prefix, old.text);
}

enum status error_status_of_errno(int number)
{
	switch (number) {
	case EACCES:
	case EPERM:
	case EROFS: return STATUS_PERMISSION;
	case ENAMETOOLONG: return STATUS_USAGE; /* trying again cannot help */
	default: return STATUS_TEMPORARY;
	}
}
