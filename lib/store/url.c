/* SPDX-License-Identifier: MIT */
#include "store/url.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mounts.h"
#include "base/parse.h"

/* The length of "SCHEME" where text begins with "SCHEME:", else 0. */
static size_t scheme_length(const char *text)
{
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-");
	return text[length] == ':' ? length : 0;
}

enum status url_parse(const char *text, struct store_url *url, struct error *err)
{
	struct store_url parsed = {.scheme = "sqlite"};
	parsed.text = strdup(text);
	if (!parsed.text)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	char *rest = parsed.text;
	size_t length = scheme_length(rest);
	if (length) {
		rest[length] = '\0';
		parsed.scheme = rest;
		rest += length + 1;
	}
	parsed.path = strsep(&rest, "?");
	while (rest) {
		char *value = strsep(&rest, "&");
		if (!*value)
			continue;
		if (parsed.count == STORE_URL_PARAMETERS) {
			url_release(&parsed);
			return error_set(
				err, STATUS_USAGE, "store \"%s\": too many parameters", text);
		}
		parsed.parameters[parsed.count].name = strsep(&value, "=");
		parsed.parameters[parsed.count++].value = value;
	}
	if (!*parsed.path) {
		url_release(&parsed);
		return error_set(err, STATUS_USAGE, "store \"%s\": the path is missing", text);
	}
	*url = parsed;
	return STATUS_OK;
}

void url_release(struct store_url *url)
{
	free(url->text);
	*url = (struct store_url){0};
}

enum status store_make_default(const char *path, struct error *err)
{
	const char *home = getenv("HOME");
	char *directory = file_directory_of(path);
	char *state = directory ? file_directory_of(directory) : NULL;
	/* The home must be there, or what XDG_STATE_HOME is in; the rest may be missing. */
	char *base = !state ? NULL
		     : home && *home == '/' && mount_tables_is_below(state, home)
			     ? strdup(home)
			     : file_directory_of(state);
	enum status status = base ? mounts_make_directories(directory, base, 0700, err)
				  : error_set(err, STATUS_TEMPORARY, "out of memory");
	free(base);
	free(state);
	free(directory);
	return status;
}

enum status store_default_url(const char *run, struct text *url, struct error *err)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	if (parse_name(run, "run", err) != STATUS_OK)
		return STATUS_USAGE;
	struct text path = {0};
	/* The XDG specification: a path that is not absolute is to be ignored. */
	if (state && *state == '/')
		text_addf(&path, "%s/preempt", state);
	else if (home && *home == '/')
		text_addf(&path, "%s/.local/state/preempt", home);
	else
		return error_set(err, STATUS_USAGE,
			"there is no home directory for a default store; give --store or set PREEMPT_STORE");
	text_addf(url, "sqlite:%s/%s.db", text_string(&path), run);
	text_addf(&path, "/%s.db", run);
	/* Where this fails for another reason, opening the store says why. */
	enum status status = store_make_default(text_string(&path), err);
	text_release(&path);
	if (status == STATUS_TEMPORARY)
		return status;
	return url->failed ? error_set(err, STATUS_TEMPORARY, "out of memory") : STATUS_OK;
}
