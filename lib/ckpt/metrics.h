/* SPDX-License-Identifier: MIT */
/*
 * The metrics of a checkpoint: a few named values such as "loss=0.25", given at its commit or
 * written by the training framework. A value that is not a finite number is recorded, but never is
 * the best. Pure; owns nothing.
 */
#ifndef CKPT_METRICS_H
#define CKPT_METRICS_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

#define METRICS_MAX	 16 /* at most given to a commit */
#define METRICS_ROOM	 64 /* at most taken from a framework */
#define METRIC_NAME_SIZE 48

struct metric {
	char name[METRIC_NAME_SIZE]; /* UTF-8 without '=' and control characters; not empty */
	double value;		     /* NAN: not a number, or infinite */
};

/* In the order in which they were given; each name once. */
struct metrics {
	struct metric items[METRICS_ROOM];
	size_t count;
};

/* Add a metric from "NAME=VALUE"; VALUE is a decimal number, nan, inf or -inf. STATUS_USAGE. */
enum status metrics_read(const char *text, struct metrics *metrics, struct error *err);

/* Add a metric of a framework, if its name is valid and new, not step or epoch, and there is room;
 * and all numbers in an object. */
void metrics_add(struct metrics *metrics, const char *name, double value);
void metrics_collect(struct json_object *object, struct metrics *metrics);

/* Whether there is a finite value of this name. */
bool metrics_get(const struct metrics *metrics, const char *name, double *value);

/* Add the metrics of `from` whose names are new, up to METRICS_MAX. */
void metrics_merge(struct metrics *metrics, const struct metrics *from);

/* Write {"loss": 0.25, "score": null}, with the shortest numbers that are exact. */
void metrics_write(const struct metrics *metrics, struct text *text);
/* Read such an object; NULL: no metrics. False: it is not such an object. */
bool metrics_parse(struct json_object *object, struct metrics *metrics);

#endif
