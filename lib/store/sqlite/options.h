/* SPDX-License-Identifier: MIT */
/* The parameters in the URL of an SQLite store. */
#ifndef STORE_SQLITE_OPTIONS_H
#define STORE_SQLITE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/filesystem.h"
#include "store/url.h"

struct parameters {
	bool shared_group;
	bool must_exist;    /* never make the store; a missing one is STATUS_TEMPORARY */
	const char *assume; /* "local", "shared" or NULL */
};

/* STATUS_USAGE: a parameter is unknown, or given twice. */
enum status parameters_read(
	const struct store_url *url, struct parameters *parameters, struct error *err);

/*
 * What the filesystem is, from what was seen and the user's assume=. assume=shared does not hold if
 * the options of the mount keep locks on this machine.
 */
enum filesystem_reach parameters_reach(
	const struct parameters *parameters, enum filesystem_reach seen);

#endif
