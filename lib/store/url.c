/* SPDX-License-Identifier: MIT */
#include "store/url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mounts.h"
#include "base/parse.h"
#include "base/xalloc.h"

/* The length of "SCHEME" where text begins with "SCHEME:", else 0. */
static size_t scheme_length(const char *text)
{
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-");
	return text[length] == ':' ? length : 0;
}

static enum status check_distinct(const struct store_url *url, struct error *err)
{
	for (size_t i = 0; i < url->count; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(url->parameters[k].name, url->parameters[i].name))
				return error_set(err, STATUS_USAGE,
					"store %s: \"%s\" is given twice", url->path,
					url->parameters[i].name);
	return STATUS_OK;
}

enum status url_parse(const char *text, struct store_url *url, struct error *err)
{
	struct store_url parsed = {.scheme = "sqlite"};
	parsed.text = xstrdup(text);
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
	enum status status = check_distinct(&parsed, err);
	if (status == STATUS_OK)
		*url = parsed;
	else
		url_release(&parsed);
	return status;
}

void url_release(struct store_url *url)
{
	free(url->text);
	*url = (struct store_url){0};
}

enum status store_default_path(
	const char *run, const char *state, const char *home, struct text *path, struct error *err)
{
	const char *below = "";
	if (parse_name(run, "run", err) != STATUS_OK)
		return STATUS_USAGE;
	/* The XDG specification says to ignore a relative path. */
	if (!state || *state != '/') {
		state = home;
		below = "/.local/state";
	}
	if (!state || *state != '/')
		return error_set(err, STATUS_USAGE,
			"HOME is not set, so there is no place for the store: give --store or set "
			"PREEMPT_STORE");
	/* In a URL, '?' begins the parameters. */
	if (strchr(state, '?'))
		return error_set(err, STATUS_USAGE,
			"%s has a \"?\" in it: give --store or set PREEMPT_STORE", state);
	text_addf(path, "%s%s/preempt/%s.db", state, below, run);
	return STATUS_OK;
}

/* Make directory and its missing parents below base, which must exist. */
static enum status make_below(const char *base, char *directory, struct error *err)
{
	bool made;
	enum status status = STATUS_OK;
	if (access(base, F_OK) < 0)
		return errno != ENOENT && errno != ENOTDIR
			       ? error_errno(err, errno, "look at %s", base)
			       : error_set(err, STATUS_TEMPORARY,
					 "cannot make %s: there is no directory %s; is its "
					 "filesystem mounted?",
					 directory, base);
	for (char *end = directory + strlen(base); status == STATUS_OK && *end;) {
		end = strchrnul(end + 1, '/');
		char kept = *end;
		*end = '\0';
		status = file_make_directory(directory, 0700, &made, err);
		*end = kept;
	}
	return status;
}

static enum status make_default(const char *path, struct error *err)
{
	const char *home = getenv("HOME");
	char *directory = file_directory_of(path);
	char *state = file_directory_of(directory);
	size_t length = home ? strlen(home) : 0;
	while (length > 1 && home[length - 1] == '/')
		length--;
	char *base = length && *home == '/' && !strncmp(state, home, length) &&
				     (length == 1 || state[length] == '/')
			     ? xstrndup(home, length)
			     : file_directory_of(state);
	enum status status = mounts_check(err);
	if (status == STATUS_OK)
		status = make_below(base, directory, err);
	free(base);
	free(state);
	free(directory);
	return status;
}

enum status store_default_url(const char *run, bool create, struct text *url, struct error *err)
{
	enum status status =
		store_default_path(run, getenv("XDG_STATE_HOME"), getenv("HOME"), url, err);
	return status == STATUS_OK && create ? make_default(text_string(url), err) : status;
}
