/* SPDX-License-Identifier: MIT */
/*
 * Where a store is, as text: [SCHEME:]PATH[?NAME[=VALUE][&NAME[=VALUE]]...]. Without a scheme it is
 * "sqlite". Nothing is decoded: a path cannot contain '?', and one whose first part looks like a
 * scheme is written "./odd:name". url_parse owns copies of everything: url_release.
 */
#ifndef STORE_URL_H
#define STORE_URL_H

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
};

enum status url_parse(const char *text, struct store_url *url, struct error *err);
void url_release(struct store_url *url);

/*
 * Make the directory of a default store, "STATE/preempt/NAME.db", and STATE, mode 0700. The home,
 * or where STATE is elsewhere the directory that it is in, must be there: STATUS_TEMPORARY.
 */
enum status store_make_default(const char *path, struct error *err);

/*
 * The store of a run where none is named: ${XDG_STATE_HOME:-~/.local/state}/preempt/RUN.db. Its
 * directory is made, if it can be. STATUS_USAGE without a home, STATUS_TEMPORARY as above.
 */
enum status store_default_url(const char *run, struct text *url, struct error *err);

#endif
