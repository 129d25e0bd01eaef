/* SPDX-License-Identifier: MIT */
/* Print a status as a table, as JSON or as metrics. All functions are pure, and append to text. */
#ifndef STATUS_TABLE_H
#define STATUS_TABLE_H

#include "status/run_status.h"

/* More tasks than this are shown in one row for each state, unless style.all is set. */
#define TABLE_TASKS 64

struct table_style {
	bool colour;
	bool all;     /* a row for each task, and all earlier attempts */
	size_t width; /* longer lines are cut to this; 0: none is cut */
	int64_t utc;  /* the time now */
};

/* Add lines for a user to read. */
void table_add(struct text *text, const struct run_status *status, const struct table_style *style);
/* Add one line with a JSON object. */
void table_add_json(
	struct text *text, const struct run_status *status, const struct table_style *style);

/* For Prometheus's text format, call samples_begin, samples_add for each run, samples_end. */
struct sample_page;
struct sample_page *samples_begin(void);
void samples_add(struct sample_page *page, const struct run_status *status, int64_t utc);
/* Append the page to text, and release it. */
void samples_end(struct sample_page *page, struct text *text);

#endif
