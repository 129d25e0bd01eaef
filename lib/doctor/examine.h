/* SPDX-License-Identifier: MIT */
/*
 * The work of one side: examine.c has the order of the steps, the other files have the steps. If a
 * step returns false, the side stops; findings.trouble says why.
 */
#ifndef DOCTOR_EXAMINE_H
#define DOCTOR_EXAMINE_H

#include "doctor/doctor.h"
#include "doctor/exchange.h"
#include "store/sqlite/options.h"

/* What a side reports to the process that started it, in shared memory. */
struct doctor_memory {
	struct doctor_findings findings; /* of the steps that are done */
	struct doctor_side sides[DOCTOR_SIDES_MAX];
	char scratch[PATH_MAX]; /* the path of the scratch directory */
	_Atomic bool named;	/* scratch is set */
	_Atomic int64_t made; /* clock_now when side 0 had made the scratch directory; 0: not yet */
	bool done;	      /* the side has finished without trouble */
};

struct examination {
	const struct doctor_request *request;
	struct doctor_findings *findings;
	struct doctor_exchange exchange;
	struct doctor_side *self;
	struct store_url url;
	struct parameters wanted; /* the parameters of the URL */
	char database[PATH_MAX]; /* the real path of the store; empty: only a directory was given */
};

/*
 * Be side number `index` of all. name: of the scratch directory. memory: of this machine's sides.
 */
void doctor_examine(const struct doctor_request *request, size_t index, const char *name,
	struct doctor_memory *memory);
/* doctor_exchange; an error becomes findings.trouble. */
bool doctor_step(
	struct examination *examination, enum status outcome, int64_t takes, struct error *err);
/*
 * Look at the directory without changing it (place.c). STATUS_NO: the filesystem that belongs there
 * is not mounted; findings.unmounted says why.
 */
enum status doctor_look_at_place(struct examination *examination, struct error *err);
/* Test whether the lock of this mode excludes (exclude.c). */
bool doctor_measure_lock(struct examination *examination, enum lock_mode mode);
/* Test and time transactions in this mode (traffic.c). */
bool doctor_measure_load(struct examination *examination, enum lock_mode mode);

#endif
