/* SPDX-License-Identifier: MIT */
/*
 * What was measured of a checkpoint, given when it is committed: "loss=0.25", or written by the
 * training framework. A few values with names; what is not a finite number is recorded as measured,
 * and never the best of anything. Pure; owns nothing.
 */
#ifndef CKPT_METRICS_H
#define CKPT_METRICS_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

#define METRICS_MAX	 16 /* given to a commit */
#define METRICS_ROOM	 64 /* collected from what a framework wrote */
#define METRIC_NAME_SIZE 48

struct metric {
	char name[METRIC_NAME_SIZE]; /* UTF-8 without '=' and control characters; not empty */
	double value;		     /* NAN: not a number, or infinite */
};

/* In the order given; each name once. */
struct metrics {
	struct metric items[METRICS_ROOM];
	size_t count;
};

/* Add one of "NAME=VALUE", VALUE a decimal number, nan, inf or -inf. STATUS_USAGE: refused. */
enum status metrics_read(const char *text, struct metrics *metrics, struct error *err);
/* Whether name can be the name of one; else err says why. */
enum status metrics_check_name(const char *name, const char *what, struct error *err);

/* Add one that a framework wrote, unless there is no room, it is there, or that is no name. */
void metrics_add(struct metrics *metrics, const char *name, double value);
/* Add the numbers of an object, without those whose names are in except (NULL, or NULL at its end).
 */
void metrics_collect(
	struct json_object *object, const char *const *except, struct metrics *metrics);

/* Whether there is a finite value of that name. */
bool metrics_get(const struct metrics *metrics, const char *name, double *value);

/* Those of from whose names are not there yet, while there is room. */
void metrics_merge(struct metrics *metrics, const struct metrics *from);

/* {"loss": 0.25, "score": null}. Numbers are as short as they can be and exact. */
void metrics_write(const struct metrics *metrics, struct text *text);
/* False: that is no such object. NULL: none. */
bool metrics_parse(struct json_object *object, struct metrics *metrics);

#endif
