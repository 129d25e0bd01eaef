/* SPDX-License-Identifier: MIT */
/*
 * Where a store is, as text: [SCHEME:]PATH[?NAME[=VALUE][&NAME[=VALUE]]...]. Without a scheme it is
 * "sqlite". Nothing is decoded: a path cannot contain '?', and one whose first part looks like a
 * scheme is written "./odd:name". url_parse owns copies of everything: url_release.
 */
#ifndef STORE_URL_H
#define STORE_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

#define STORE_URL_PARAMETERS 16

struct store_url {
	char *text; /* a copy, cut up; the others point into it */
	const char *scheme;
	const char *path; /* never empty */
	struct {
		const char *name;
		const char *value; /* NULL: given without one */
	} parameters[STORE_URL_PARAMETERS];
	size_t count;
	const char *count_file; /* of count=FILE, which is none of the parameters; NULL: none */
};

/* STATUS_USAGE: no path, too many parameters, one that is given twice, or count without a file. */
enum status url_parse(const char *text, struct store_url *url, struct error *err);
void url_release(struct store_url *url);

/*
 * The store of a run where none is named: STATE/preempt/RUN.db, in HOME/.local/state where STATE is
 * not an absolute path. state and home: XDG_STATE_HOME and HOME, NULL where not set. STATUS_USAGE:
 * neither is absolute, a "?" in it, or a run that is no name.
 */
enum status store_default_path(
	const char *run, const char *state, const char *home, struct text *path, struct error *err);

/*
 * The same of this process's environment. create: make its directory, mode 0700, in the home or
 * where STATE is elsewhere in the directory that STATE is in, which must be there:
 * STATUS_TEMPORARY.
 */
enum status store_default_url(const char *run, bool create, struct text *url, struct error *err);

#endif
