/* SPDX-License-Identifier: MIT */
/*
 * What the doctor has found, and what follows from it. Pure; tests/unit/doctor.c has the cases.
 *
 * Sides on the same kernel and the same filesystem instance are one client: what they see of each
 * other proves nothing about other machines.
 */
#ifndef DOCTOR_FINDINGS_H
#define DOCTOR_FINDINGS_H

#include <json-c/json_object.h>
#include <limits.h>
#include <stddef.h>

#include "doctor/doctor.h"

#define DOCTOR_SIDES_MAX 64

/* Print into an array, and cut what does not fit. */
#define WRITE(to, ...) (void)snprintf(to, sizeof(to), __VA_ARGS__)

/* The record of one side, which all sides read after each step, as it is in memory. */
struct doctor_side {
	char terms[192]; /* version and options; the same on all sides */
	uint64_t number; /* random, drawn at the start */
	int status;	 /* an enum status: how its last step went; why says the reason */
	char why[768];
	/* The place. */
	char host[65], boot[37], path[256];
	uint64_t device;
	char filesystem[64], type[64], options[1024], warning[256];
	char distrust[256]; /* why its owner or mode are wrong for a store; empty: they are right */
	int store; /* an enum status: of asking the store of the request; NO: there is none */
	char store_why[768];
	/* The trial store. */
	char lock[24];		 /* how its processes exclude each other: "lock=file" */
	bool local;		 /* no other machine sees its filesystem, as far as can be told */
	uint64_t rows, fast;	 /* rows acknowledged, in all and in the first half of the time */
	uint64_t won, lost;	 /* claims won, and found to be another side's */
	uint64_t present, taken; /* how many rows and claims of all sides this side sees */
	int64_t longest;	 /* ms, of the slowest transaction */
	bool pinged;		 /* the next two were measured */
	int64_t noticed, noticed_longest; /* ms */
	uint64_t hash;			  /* of all above */
};

struct doctor_findings {
	const struct doctor_request *request;
	char directory[PATH_MAX];
	struct doctor_side sides[DOCTOR_SIDES_MAX];
	size_t count; /* of the sides that have met; 0: they have not */
	/* What the sides together have found in the trial store; tried: rows were counted. */
	bool tried;
	uint64_t clients, acknowledged, present;
	uint64_t claims, contested, several; /* claims won, lost to another side, won by two */
	uint64_t per_second;
	int64_t longest;
	enum status trial; /* of its calls; not STATUS_OK: trial_why is the first failure */
	char trial_why[900];
	/* Not STATUS_OK: the examination could not go on. NO: what belongs there is not mounted. */
	enum status trouble;
	char trouble_why[768];
};

struct doctor_verdict {
	enum status status; /* OK safe, NO unsafe, else could not tell */
	char reason[1024];
	char change[512]; /* what the user should do; empty: nothing */
	char scope[256];  /* what was not shown; empty: nothing */
	char warnings[8][512];
	size_t warning_count;
};

/* "safe", "unsafe" or "could not tell". */
const char *doctor_word(enum status verdict);
/* Note the first reason why the examination cannot go on. */
void doctor_trouble(struct doctor_findings *findings, enum status status, const char *why);
/* How many of the first sides are clients of their own. */
uint64_t doctor_count_clients(const struct doctor_side *sides, size_t count);
/* Add up the records of all sides, after all have counted; each put rows for so many ms. */
void doctor_sum(struct doctor_findings *findings, int64_t limit);
/* Add a warning, unless the verdict has the same one, or has no room. */
void doctor_warn(struct doctor_verdict *verdict, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void doctor_conclude(const struct doctor_findings *findings, struct doctor_verdict *verdict);
struct etcd_report;
void doctor_etcd_conclude(const struct etcd_report *seen, struct doctor_verdict *verdict);

/* ---- Show (show.c) ---- */

/* Add a row to the human-readable table. */
void doctor_show_row(struct text *text, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The last rows: what the verdict says. */
void doctor_show_verdict(const struct doctor_verdict *verdict, struct text *text);
void doctor_show_text(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text);
/* A new object with the members of a verdict; release it with doctor_end_json, as a line. */
struct json_object *doctor_begin_json(const struct doctor_verdict *verdict);
void doctor_end_json(struct json_object *object, struct text *text);
void doctor_show_json(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text);

#endif
