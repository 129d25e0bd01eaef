/* SPDX-License-Identifier: MIT */
#include "spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/xalloc.h"

enum status spec_priority(const char *text, int *priority, struct error *err)
{
	uint64_t size;
	bool negative = *text == '-';
	if (parse_unsigned(text + negative, 0, QUEUE_PRIORITY_MAX, &size, "--priority", NULL) !=
		STATUS_OK)
		return error_set(err, STATUS_USAGE, "--priority: \"%s\" is not from -%d to %d",
			text, QUEUE_PRIORITY_MAX, QUEUE_PRIORITY_MAX);
	*priority = negative ? -(int)size : (int)size;
	return STATUS_OK;
}

enum status spec_path(const char *path, const char *what, char **absolute, struct error *err)
{
	char *here = *path == '/' ? NULL : getcwd(NULL, 0);
	if (*path != '/' && !here)
		return error_set(err, STATUS_USAGE, "%s: this directory has no path: %s", what,
			strerror(errno));
	bool is_here = !strcmp(path, ".");
	*absolute = xprintf(
		"%s%s%s", here ? here : "", here && !is_here ? "/" : "", is_here ? "" : path);
	free(here);
	return STATUS_OK;
}

static bool is_variable(const char *name, size_t length)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	size_t good = 0;
	while (good < length &&
		(strchr(letters, name[good]) || (good && name[good] >= '0' && name[good] <= '9')))
		good++;
	return length && good == length;
}

enum status spec_variable(const char *entry, char **made, struct error *err)
{
	const char *equals = strchrnul(entry, '=');
	if (!is_variable(entry, (size_t)(equals - entry)))
		return error_set(
			err, STATUS_USAGE, "--env: \"%s\" is neither NAME=VALUE nor NAME", entry);
	const char *value = *equals ? "" : getenv(entry);
	if (!value)
		return error_set(err, STATUS_USAGE, "--env: there is no variable %s here", entry);
	*made = xprintf("%s%s%s", entry, *equals ? "" : "=", value);
	return STATUS_OK;
}

enum status spec_resource(const char *name, char **made, struct error *err)
{
	size_t length =
		strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
	if (name[length] || length < 1 || length > 64)
		return error_set(err, STATUS_USAGE,
			"--resource: \"%s\" is not 1 to 64 letters, digits and _", name);
	*made = xstrdup(name);
	return STATUS_OK;
}

enum status spec_list(const struct args_list *list,
	enum status (*add)(const char *, char **, struct error *), char ***made, struct error *err)
{
	if (!list->count)
		return STATUS_OK;
	*made = xcalloc(list->count + 1, sizeof(**made));
	enum status status = STATUS_OK;
	for (size_t i = 0; i < list->count && status == STATUS_OK; i++)
		status = add(list->items[i], &(*made)[i], err);
	return status;
}

static size_t list_bytes(char *const *words)
{
	size_t bytes = 0;
	for (; words && *words; words++)
		bytes += strlen(*words) + 4;
	return bytes;
}

size_t spec_bytes(const struct queue_item *item)
{
	const char *const texts[] = {item->tag, item->directory, item->input, item->output};
	size_t bytes = list_bytes(item->argv) + list_bytes(item->environment) +
		       list_bytes(item->resources);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		bytes += texts[i] ? strlen(texts[i]) : 0;
	return bytes + (item->after ? 2 * strlen(item->after) : 0);
}
