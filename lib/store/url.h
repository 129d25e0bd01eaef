/* SPDX-License-Identifier: MIT */
/*
 * The URL of a store: [SCHEME:]PATH[?NAME[=VALUE][&NAME[=VALUE]]...]. The default scheme is
 * "sqlite". Nothing is decoded: a path cannot contain '?', and a path that begins like a scheme is
 * written "./odd:name".
 */
#ifndef STORE_URL_H
#define STORE_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

#define STORE_URL_PARAMETERS 16

struct store_url {
	char *text; /* a copy of the URL, cut into strings; the pointers below point into it */
	const char *scheme;
	const char *path; /* never empty */
	struct {
		const char *name;
		const char *value; /* NULL: given without one */
	} parameters[STORE_URL_PARAMETERS];
	size_t count;
};

/* STATUS_USAGE: no path, too many parameters, or one is given twice. */
enum status url_parse(const char *text, struct store_url *url, struct error *err);
void url_release(struct store_url *url);

/*
 * The default store of a run, STATE/preempt/RUN.db. state and home are XDG_STATE_HOME and HOME
 * (NULL: not set); if state is not an absolute path, STATE is HOME/.local/state. STATUS_USAGE:
 * neither is absolute, STATE contains '?', or run is not a valid name.
 */
enum status store_default_path(
	const char *run, const char *state, const char *home, struct text *path, struct error *err);

/*
 * The same, from the environment of this process. With create, make its directory and STATE, mode
 * 0700. STATUS_TEMPORARY: HOME (or the parent of a STATE that is not in HOME) is missing.
 */
enum status store_default_url(const char *run, bool create, struct text *url, struct error *err);

#endif
