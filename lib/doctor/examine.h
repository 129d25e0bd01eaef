/* SPDX-License-Identifier: MIT */
/*
 * What one side does: examine.c has the order, the other files the single steps. A step answers
 * false where it makes no sense to go on; findings.trouble says why.
 */
#ifndef DOCTOR_EXAMINE_H
#define DOCTOR_EXAMINE_H

#include "doctor/doctor.h"
#include "doctor/exchange.h"
#include "store/sqlite/options.h"

/* What a side reports to the process that started it, in shared memory. */
struct doctor_memory {
	struct doctor_findings findings; /* as far as it came */
	struct doctor_side sides[DOCTOR_SIDES_MAX];
	char scratch[PATH_MAX]; /* the path of the scratch directory */
	_Atomic bool named;	/* scratch is complete */
	_Atomic int64_t made;	/* side 0: when it had made it, by clock_now; 0: not yet */
	bool done;		/* it has finished without trouble */
};

struct examination {
	const struct doctor_request *request;
	struct doctor_findings *findings;
	struct doctor_exchange exchange;
	struct doctor_side *self;
	struct store_url url;
	struct parameters wanted; /* of url */
	char database[PATH_MAX]; /* the real path of the store; empty: only a directory was named */
};

/* name: of the scratch directory. memory: of the sides here; index chooses one of them. */
void doctor_examine(const struct doctor_request *request, size_t index, const char *name,
	struct doctor_memory *memory);
/* doctor_exchange, and what went wrong goes into the findings. */
bool doctor_step(
	struct examination *examination, enum status outcome, int64_t takes, struct error *err);
/* Progress for the user who waits: only the first side here prints it. */
void doctor_tell(const struct examination *examination, const char *what);
/*
 * What can be learned of the directory without changing it (place.c). STATUS_NO: the filesystem
 * that belongs there is not mounted: findings.unmounted says why.
 */
enum status doctor_look_at_place(struct examination *examination, struct error *err);
/* Whether the lock of this mode excludes (exclude.c). */
bool doctor_measure_lock(struct examination *examination, enum lock_mode mode);
/* Transactions in this mode (traffic.c). */
bool doctor_measure_load(struct examination *examination, enum lock_mode mode);

#endif
