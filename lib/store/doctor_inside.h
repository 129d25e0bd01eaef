/* SPDX-License-Identifier: MIT */
/*
 * One examination, shared by doctor_examine.c (what is done in which order) and doctor_measure.c
 * (the single measurements). Each measurement fills findings; it answers false when it makes no
 * sense to go on, and then findings.trouble says why.
 */
#ifndef STORE_DOCTOR_INSIDE_H
#define STORE_DOCTOR_INSIDE_H

#include "store/doctor.h"
#include "store/doctor_meet.h"
#include "store/doctor_peer.h"
#include "store/sqlite/options.h"
#include "store/url.h"

struct examination {
	const struct doctor_request *request;
	void (*tell)(const char *what);
	struct store_url url; /* zeroed where only a directory was named */
	char *directory;
	char *database;		  /* the real path of the store; NULL: only a directory was named */
	struct parameters wanted; /* of the url */
	int64_t deadline;	  /* of the measurements */

	struct doctor_meeting meeting;
	char scratch[64]; /* name; empty: none */
	char box[PATH_MAX];
	struct doctor_peer peers[DOCTOR_SIDES_MAX];
	size_t started; /* peers that are to be ended */

	struct doctor_side sides[DOCTOR_SIDES_MAX];
	struct doctor_findings findings;
};

/* ---- Asking ---- */

/* Remember the first thing that went wrong; false. */
bool examination_trouble(struct examination *examination, enum status status, const char *why);

/* A request; whoever it is given to releases it. */
struct json_object *request_for(const char *what);
/* Without waiting for the answer, which ask_hear takes. The request stays the caller's. */
bool ask_only(struct examination *examination, size_t k, struct json_object *request);
/* takes: milliseconds that it should. */
bool ask_hear(
	struct examination *examination, size_t k, int64_t takes, struct json_object **answer);
bool ask_one(struct examination *examination, size_t k, struct json_object *request, int64_t takes,
	struct json_object **answer);
/* All are asked the same at once; on false there are no answers, else answers_release. */
bool ask_all(struct examination *examination, struct json_object *request, int64_t takes,
	struct json_object *answers[DOCTOR_SIDES_MAX]);
void answers_release(struct examination *examination, struct json_object **answers);
/* *why belongs to the answer. The first of several that is not OK. */
enum status answer_status(const struct json_object *answer, const char **why);
enum status answers_status(
	struct examination *examination, struct json_object **answers, const char **why);
/* The greater of *most and a number in the answer. */
void answer_most(const struct json_object *answer, const char *name, int64_t *most);

/* ---- Measuring ---- */

bool measure_look(struct examination *examination);
/* Give all the scratch directory; --other: that it is the same directory. */
bool measure_begin(struct examination *examination);
bool measure_locks(struct examination *examination);
bool measure_names(struct examination *examination);
bool measure_stale(struct examination *examination);
/* Transactions in this mode, and with notice how long changes take to be noticed. */
bool measure_load(struct examination *examination, enum lock_mode mode, struct doctor_load *load,
	bool notice);
/* STATUS_OK: no machine sees a process that has the store open. */
enum status measure_openers(struct examination *examination, struct error *err);
/* Whether the store that is there answers. */
bool measure_store(struct examination *examination);

#endif
