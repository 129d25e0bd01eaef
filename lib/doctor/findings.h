/* SPDX-License-Identifier: MIT */
/*
 * The findings of the doctor, and the conclusions. Pure; tests/unit/doctor.c has a table of cases.
 *
 * Sides on the same kernel and the same filesystem instance are one client: what they see of each
 * other proves nothing about other machines.
 */
#ifndef DOCTOR_FINDINGS_H
#define DOCTOR_FINDINGS_H

#include <json-c/json_object.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "store/filesystem.h"
#include "store/lock/lock_mode.h"

#define DOCTOR_SIDES_MAX 64

/*
 * The record of one side, which all sides read after each step. It is written as it is in memory; a
 * reader first compares terms, which has the version.
 */
struct doctor_side {
	char terms[192];     /* version and options; the same on all sides */
	uint64_t number;     /* random, drawn at the start */
	uint64_t all;	     /* a hash of the numbers of all sides; 0: not known yet */
	int64_t utc;	     /* the time at which this was written */
	enum status trouble; /* not STATUS_OK: this side cannot go on; why says the reason */
	char why[768];
	/* The place. */
	char host[65], boot[37], path[256];
	uint64_t device;
	struct filesystem filesystem;
	char distrust[256]; /* why its owner or mode are wrong for a store; empty: they are right */
	char opener[160];   /* --fix: a process of this machine that has the store open */
	enum lock_mode recorded; /* side 0: the mode of the existing store; LOCK_AUTO: no store */
	/* The last step. */
	int result; /* of taking a lock: 0, EAGAIN (another side has it) or another errno; of other
		       steps: an enum status, with the reason in why */
	uint64_t rows, won,
		lost;	       /* acknowledged: rows put, claims won, claims won by another side */
	uint64_t fast;	       /* rows put in the first half of the time */
	int64_t took, longest; /* milliseconds, of all transactions and of the slowest */
	uint64_t present, taken;	  /* how many rows and claims of all sides this side sees */
	int64_t noticed, noticed_longest; /* milliseconds; -1: not measured */
	/* Of side 0, in the last step: */
	enum status verdict;
	char text[3072]; /* the last lines of the report */
};
/* Make a record that was read safe to use: terminate its strings, and limit its numbers. */
void doctor_side_tidy(struct doctor_side *side);

enum doctor_form { DOCTOR_ONE, DOCTOR_TWO, DOCTOR_NODES };
enum doctor_answer { DOCTOR_SKIPPED, DOCTOR_YES, DOCTOR_NO, DOCTOR_FAILED };

/* The findings on one lock mode. */
struct doctor_mode {
	enum doctor_answer lock; /* whether it excludes */
	char lock_why[768];
	enum doctor_answer load; /* whether all acknowledged rows and claims are there */
	enum status load_status; /* the status of DOCTOR_FAILED, or of a damaged store */
	char load_why[768];
	double alone, contended; /* transactions per second of one side, and of all at once; 0: not
				    measured */
	int64_t longest;	 /* the slowest contended transaction, in milliseconds */
	uint64_t acknowledged, present;
	uint64_t claims, contested,
		doubled; /* claims won, lost to another side, won by two sides */
};

struct doctor_findings {
	enum doctor_form form;
	bool quick, shared, vouched; /* vouched: ?assume= */
	char directory[PATH_MAX];
	char unmounted[768]; /* which filesystem should be mounted and is not; empty: none */
	const char *store;   /* NULL: only a directory was given */
	struct doctor_side *sides;
	struct filesystem_traits traits[DOCTOR_SIDES_MAX]; /* after ?assume= was applied */
	/* How much each clock is ahead of ours, +- the error, in ms. */
	int64_t clock_ahead[DOCTOR_SIDES_MAX], clock_error[DOCTOR_SIDES_MAX];
	size_t count, clients; /* numbers of sides and of clients; 0: the sides have not met */
	bool exists;
	enum lock_mode
		mode; /* the mode that a store there has or would get; LOCK_AUTO: not known */
	const char *mode_from;	  /* "recorded in the store", "asked for", "the default there" */
	enum status store_status; /* of opening the existing store; USAGE: it has another mode */
	char store_why[768];
	struct doctor_mode modes[3]; /* by enum lock_mode */
	int64_t noticed, noticed_longest;
	enum status trouble; /* not STATUS_OK: the examination could not go on */
	char trouble_why[768];
	enum status fix_status;
	char fix_why[768], fixed[256];
};

struct doctor_verdict {
	enum status status; /* OK safe, NO unsafe, else could not tell */
	char reason[1024];
	char change[2][320]; /* what the user should do */
	char scope[256];     /* what the examination could not show; empty: nothing */
	char warnings[8][512];
	size_t warning_count;
	bool safe[3]; /* by enum lock_mode: --fix may record this mode */
};

/* "safe", "unsafe" or "could not tell". */
const char *doctor_word(enum status verdict);
enum lock_mode doctor_other_mode(enum lock_mode mode);
/* Note the first error. STATUS_NO becomes STATUS_TEMPORARY: an error is not the answer "no". */
void doctor_trouble(struct doctor_findings *findings, enum status status, const char *why);
size_t doctor_count_clients(const struct doctor_side *sides, size_t count);
/* Add up the records of all sides, after all have put rows and counted them. */
void doctor_sum_load(const struct doctor_findings *findings, struct doctor_mode *mode);
/* Add a warning, unless the verdict has the same one, or has no room. */
void doctor_warn(struct doctor_verdict *verdict, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void doctor_conclude(const struct doctor_findings *findings, struct doctor_verdict *verdict);
/* Add a row to the human-readable table. */
void doctor_show_row(struct text *text, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void doctor_put_verdict(struct json_object *object, const struct doctor_verdict *verdict);
/* Write a human-readable table, its last lines (the verdict), or a JSON object on one line. */
void doctor_show_text(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text);
void doctor_show_verdict(const struct doctor_verdict *verdict, struct text *text);
void doctor_show_json(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text);

#endif
