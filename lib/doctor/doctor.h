/* SPDX-License-Identifier: MIT */
/*
 * preempt-store doctor: whether a directory keeps what a store promises, tried with a store.
 *
 * The sides are two processes of this machine, or one process on each of N nodes. They meet in a
 * scratch directory inside (meet.h), open one store there, put rows and claims through the calls of
 * store.h, and count them (traffic.c). After each step they exchange their records, so that all
 * know the same. conclude.c says what follows from it, and show.c prints that.
 *
 * The calling process never touches the directory: a filesystem that hangs hangs only the sides,
 * and doctor_run returns soon after the time is up (run.c). If the doctor is killed, the scratch
 * directory stays; a doctor that runs there a day later removes it.
 *
 * To read: findings.h, side.c, traffic.c, meet.h, conclude.c, run.c. A store in etcd: etcd.c.
 */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct doctor_request {
	const char *url; /* the store, which need not exist; NULL: only directory is given */
	const char *directory;
	const char *other;   /* the same directory through another mount; NULL: none */
	uint64_t nodes;	     /* how many nodes (2 to DOCTOR_SIDES_MAX) run this command; 0: one */
	uint64_t node;	     /* the number of this node, from 0 */
	const char *session; /* with nodes: differs between two launches */
	bool quick;
	bool shared;	 /* other machines use it: a filesystem of this machine only is unsafe */
	int64_t timeout; /* ms, for the whole examination; with nodes, for their arrival */
};

struct doctor_report {
	enum status status; /* OK safe, NO unsafe, else could not tell */
	struct text text;   /* for people; on a node after the first, only the verdict */
	struct text json;   /* one object on a line; on such a node, nothing */
};
void doctor_report_release(struct doctor_report *report);

/*
 * STATUS_OK: there is a report. STATUS_USAGE: the request makes no sense. STATUS_TEMPORARY: ended
 * by a signal (base/process/ending.h; this calls ending_catch), or no process could be started.
 */
enum status doctor_run(
	const struct doctor_request *request, struct doctor_report *report, struct error *err);
/* The same of a store in etcd: its members, its alarms, and a write that is read back. */
enum status doctor_run_etcd(
	const struct doctor_request *request, struct doctor_report *report, struct error *err);

#endif
