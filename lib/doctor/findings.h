/* SPDX-License-Identifier: MIT */
/*
 * What the doctor found, and what follows from it. Nothing here asks the kernel:
 * tests/unit/doctor.c has a table of cases.
 *
 * Sides that share kernel and filesystem instance are one client: what they see of each other
 * proves nothing about other machines.
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
 * The record of one side, which all get after each step, as bytes of memory: terms, which names the
 * version, is compared first. All numbers but those of the place belong to the last step.
 */
struct doctor_side {
	char terms[192];     /* version and options; the same on all sides */
	uint64_t number;     /* random, drawn at the start */
	uint64_t all;	     /* a hash of the numbers of all sides; 0: not all are known yet */
	int64_t utc;	     /* when this was written */
	enum status trouble; /* not OK: this side cannot go on, and why */
	char why[768];
	/* The place. */
	char host[65], boot[37], path[256];
	uint64_t device;
	struct filesystem filesystem;
	char distrust[256]; /* why its owner or mode are wrong for a store; empty: they are right */
	char opener[160];   /* a process there that has the store open; --fix only */
	enum lock_mode recorded; /* side 0: of the store that is there; LOCK_AUTO: none */
	/* The last step. */
	int result; /* of a lock: 0: got, EAGAIN: another has it, else the errno; of making a lock
		       file and of the store: an enum status, and why */
	uint64_t rows, won,
		lost;	       /* acknowledged: rows put, claims won, claims that another had won */
	uint64_t fast;	       /* rows in the first half of the time */
	int64_t took, longest; /* milliseconds, of all and of the slowest */
	uint64_t present, taken;	  /* how many of all sides' rows and claims it sees */
	int64_t noticed, noticed_longest; /* milliseconds; -1: not measured */
	/* Side 0, last: */
	enum status verdict;
	char text[3072]; /* the last lines of its report */
};
/* Make a record that was read safe to use: terminate its texts, and limit its numbers. */
void doctor_side_tidy(struct doctor_side *side);

enum doctor_form { DOCTOR_ONE, DOCTOR_TWO, DOCTOR_NODES };
enum doctor_answer { DOCTOR_SKIPPED, DOCTOR_YES, DOCTOR_NO, DOCTOR_FAILED };

/* What was found of one mode. */
struct doctor_mode {
	enum doctor_answer lock; /* whether it excludes */
	char lock_why[768];
	enum doctor_answer load; /* whether every acknowledged row and claim is there */
	enum status load_status; /* of DOCTOR_FAILED, and of a damaged store */
	char load_why[768];
	double alone,
		contended; /* transactions a second, of one side and of all; 0: not measured */
	int64_t longest;   /* milliseconds, of a contended one */
	uint64_t acknowledged, present;
	uint64_t claims, contested, doubled; /* won, lost to another, and won by two */
};

struct doctor_findings {
	enum doctor_form form;
	bool quick, shared, vouched; /* vouched: ?assume= */
	char directory[PATH_MAX];
	char unmounted[768]; /* why the right filesystem is not mounted; empty: it is, as far as we
				know */
	const char *store;   /* NULL: only a directory was named */
	struct doctor_side *sides;
	struct filesystem_traits traits[DOCTOR_SIDES_MAX]; /* ?assume= is taken into account */
	int64_t clock_ahead[DOCTOR_SIDES_MAX], clock_error[DOCTOR_SIDES_MAX]; /* of ours, ms */
	size_t count, clients; /* 0: the sides have not met */
	bool exists;
	enum lock_mode mode;	  /* that a store there has or would get; LOCK_AUTO: not known */
	const char *mode_from;	  /* "recorded in the store", "asked for", "the default there" */
	enum status store_status; /* of opening the store that is there, and why; USAGE: it has
				     another mode */
	char store_why[768];
	struct doctor_mode modes[3]; /* by enum lock_mode */
	int64_t noticed, noticed_longest;
	enum status trouble; /* not OK: could not go on, and why */
	char trouble_why[768];
	enum status fix_status;
	char fix_why[768], fixed[256];
};

struct doctor_verdict {
	enum status status; /* OK safe, NO unsafe, else could not tell */
	char reason[1024];
	char change[2][320]; /* what to do */
	char scope[256];     /* what was not proved; empty: nothing is missing */
	char warnings[8][512];
	size_t warning_count;
	bool safe[3]; /* by enum lock_mode: --fix may record it */
};

/* "safe", "unsafe" or "could not tell". */
const char *doctor_word(enum status verdict);
enum lock_mode doctor_other_mode(enum lock_mode mode);
/* Remember the first error. STATUS_NO becomes STATUS_TEMPORARY: an error is not the answer "no". */
void doctor_trouble(struct doctor_findings *findings, enum status status, const char *why);
size_t doctor_count_clients(const struct doctor_side *sides, size_t count);
/* Add up the records of all sides, when all have put their rows and counted. */
void doctor_sum_load(const struct doctor_findings *findings, struct doctor_mode *mode);
/* Once for each text; what does not fit is dropped. */
void doctor_warn(struct doctor_verdict *verdict, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void doctor_conclude(const struct doctor_findings *findings, struct doctor_verdict *verdict);
/* A row of it. */
void doctor_show_row(struct text *text, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void doctor_put_verdict(struct json_object *object, const struct doctor_verdict *verdict);
/* A human-readable table; only its last lines; one JSON object on a line. */
void doctor_show_text(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text);
void doctor_show_verdict(const struct doctor_verdict *verdict, struct text *text);
void doctor_show_json(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text);

#endif
