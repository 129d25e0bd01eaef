/* SPDX-License-Identifier: MIT */
/*
 * preempt-store doctor: is the place of a store right for one, by trying it. Three forms: this
 * machine alone; two mounts of one directory here; the same command on several machines, which find
 * each other through the directory (doctor_meet.h).
 *
 * Who touches the directory are child processes, so that a filesystem that hangs cannot hang the
 * caller: doctor_run comes back soon after the time is up. Everything is tried in a scratch
 * directory inside, which is removed in any case; what a killed doctor left there is removed by the
 * next one.
 *
 *   doctor.c	      the caller's side: a child, its time, its signals
 *   doctor_examine.c what is done in which order, in that child
 *   doctor_measure.c, doctor_measure_store.c  the single measurements: answers into findings
 *   doctor_worker.c, doctor_race.c, doctor_load.c  what a worker does
 *   doctor_peer.c    how requests get there
 *   doctor_judge.c   what follows; doctor_show.c: in words
 */
#ifndef STORE_DOCTOR_H
#define STORE_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct doctor_request {
	const char *url;       /* the store, whether it exists or not; NULL: */
	const char *directory; /* only a directory */
	const char *other;     /* the same directory through another mount; NULL: none */
	uint64_t nodes;	       /* the same command runs on so many (2 to DOCTOR_SIDES_MAX); 0: no */
	const char *session;   /* tells launches apart, may be empty; nodes only */
	bool quick, fix;
	bool shared;	 /* other machines shall see it: a place of this machine only is unsafe */
	int64_t timeout; /* milliseconds: to wait for the nodes, else for all of it */
	void (*progress)(const char *what); /* NULL: none; called in this process */
};

struct doctor_report {
	enum status status; /* OK safe, NO unsafe, else could not tell */
	struct text text;   /* for people, with the verdict last; nodes: all but one only that */
	struct text json;   /* nodes: of one of them only */
};
void doctor_report_release(struct doctor_report *report);

/*
 * STATUS_OK: there is a report. STATUS_USAGE where it is not understood what to look at;
 * STATUS_TEMPORARY when the time is up and nothing came back, or after a signal (base/ending.h,
 * which this calls ending_catch of).
 */
enum status doctor_run(
	const struct doctor_request *request, struct doctor_report *report, struct error *err);

/* In the child: fills the report, as above. */
enum status doctor_examine(const struct doctor_request *request, struct doctor_report *report,
	void (*tell)(const char *what), struct error *err);

#endif
