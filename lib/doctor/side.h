/* SPDX-License-Identifier: MIT */
/* The work of one side: side.c has the order of the steps, traffic.c those with the store. */
#ifndef DOCTOR_SIDE_H
#define DOCTOR_SIDE_H

#include "doctor/findings.h"
#include "doctor/meet.h"
#include "store/url.h"

#define MEASURE_FOR 60000 /* milliseconds, once the nodes have met */

/* What a side reports to the process that started it, in memory that both share. */
struct doctor_work {
	struct doctor_findings findings; /* of the steps that are done */
	char scratch[PATH_MAX];		 /* the path of the scratch directory */
	_Atomic bool named;		 /* scratch is set */
	_Atomic int64_t made; /* clock_now when side 0 had made the scratch directory; 0: not yet */
	bool done;	      /* the side has finished without trouble */
};

struct examination {
	const struct doctor_request *request;
	struct doctor_findings *findings;
	struct doctor_side *self;
	struct meeting meeting;
	struct store_url url; /* of the request */
	bool shared_group;    /* as the URL says */
	struct store *store;  /* the trial store; NULL: not open */
};

/* Be side number `index`. name: of the scratch directory. work: of this machine's sides. */
void doctor_be_side(const struct doctor_request *request, size_t index, const char *name,
	struct doctor_work *work);
/* After the sides have met: put rows and claims, and count them. */
void doctor_try(struct examination *examination);
/* Words for how the processes of the store at this path exclude each other; "": not known. */
void doctor_name_lock(const char *database, char *words, size_t size);

#endif
