/* SPDX-License-Identifier: MIT */
/* What the URL of a store says of it: lock, takeover, shared-group, must-exist, assume. */
#ifndef STORE_SQLITE_OPTIONS_H
#define STORE_SQLITE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/filesystem.h"
#include "store/lock/lock_mode.h"
#include "store/url.h"

struct parameters {
	enum lock_mode mode; /* LOCK_AUTO: not given */
	bool shared_group;
	bool must_exist;    /* that it is missing is STATUS_TEMPORARY, and it is never made */
	const char *assume; /* "local", "shared" or NULL */
	int64_t takeover;   /* milliseconds, TAKEOVER_LEAST to TAKEOVER_MOST; 0: not given */
};

/* STATUS_USAGE: one is not known, out of range, or given twice. */
enum status parameters_read(
	const struct store_url *url, struct parameters *parameters, struct error *err);

/*
 * What the filesystem is with what the user vouches for. That locks reach other machines is not
 * believed where this mount's own options say that they do not.
 */
enum filesystem_reach parameters_reach(
	const struct parameters *parameters, enum filesystem_reach seen);

#endif
