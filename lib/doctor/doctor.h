/* SPDX-License-Identifier: MIT */
/*
 * preempt-store doctor: tests whether a directory is a good place for a store.
 *
 * The work is done by 2 to DOCTOR_SIDES_MAX processes, the sides: two children of this process, or
 * with nodes one child on each machine. A launcher or an option numbers the sides. All sides run
 * the same steps (examine.c). After each step they exchange their records through files in the
 * directory (exchange.h), so all know the same and take the same next step.
 *
 * The calling process never touches the directory, so a filesystem that hangs cannot hang it:
 * doctor_run returns soon after the time is up. The sides work in a scratch directory inside
 * (scratch.h), which is removed at the end; if the doctor is killed, the next one removes it.
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
	bool quick, fix;
	bool shared;	 /* other machines use it: a filesystem of this machine only is unsafe */
	int64_t timeout; /* ms, for the whole examination; with nodes, for their arrival */
	void (*progress)(const char *what); /* called in a child; NULL: none */
};

struct doctor_report {
	enum status status; /* OK safe, NO unsafe, else could not tell */
	struct text text;   /* human-readable; on a node that got node 0's verdict, only that */
	struct text json;   /* one object on a line; empty on such a node */
};
void doctor_report_release(struct doctor_report *report);

/*
 * STATUS_OK: there is a report. STATUS_USAGE: the request makes no sense. STATUS_TEMPORARY: ended
 * by a signal (base/process/ending.h; this calls ending_catch), or no process could be started.
 */
enum status doctor_run(
	const struct doctor_request *request, struct doctor_report *report, struct error *err);

#endif
