/* SPDX-License-Identifier: MIT */
/*
 * What the doctor found, and what follows from it. doctor_judge is a pure function of the findings,
 * with a table of cases in tests/unit/doctor.c; the other two put them into words for people and
 * for programs. Nothing here asks the kernel.
 *
 * A side is one of the processes that were put to work on the directory, each through its own mount
 * or on its own machine. Sides that share kernel and filesystem instance are one client: between
 * them nothing is shown about other machines.
 */
#ifndef STORE_DOCTOR_FINDINGS_H
#define STORE_DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "store/filesystem.h"
#include "store/lock/lock.h"

enum doctor_form { DOCTOR_ONE, DOCTOR_TWO, DOCTOR_NODES };

enum doctor_answer {
	DOCTOR_SKIPPED, /* not asked */
	DOCTOR_YES,
	DOCTOR_NO,
	DOCTOR_FAILED, /* asked, and it went wrong: why */
};

/* So that a side is one printable character: '0' + k. */
#define DOCTOR_SIDES_MAX 64

struct doctor_side {
	char host[65], boot[37];
	char path[256]; /* of the directory, cut */
	uint64_t device;
	bool trusted; /* the directory's owner and mode are right for a store; else why_not */
	char why_not[256];
	struct filesystem filesystem;
	struct filesystem_traits traits;   /* with what the user vouches for */
	int64_t free_bytes, free_inodes;   /* -1: not known */
	int64_t quota_bytes, quota_inodes; /* left of ours; -1: none, or could not be asked */
	char quota[96];			   /* why it could not be asked; empty: it was */
	bool queue;			   /* the local queue in /dev/shm can be used */
	char kernel[128], sqlite[32], version[32];
	int64_t clock_ahead, clock_error; /* of the first side's clock, milliseconds */
};

/* Do all sides see one and the same winner, or one holder. */
struct doctor_check {
	enum doctor_answer answer;
	uint64_t rounds;
	uint64_t several, none; /* rounds with more than one winner, and without any (no harm) */
	char why[256];
};

/* Longest time between a change and when it was seen, milliseconds; == looked: never. */
struct doctor_stale {
	bool measured;
	int64_t held, reopened,
		dropped; /* a file kept open; opened again; with its pages dropped */
	int64_t looked;	 /* how long we looked */
};

/* Transactions through the store, in one mode. */
struct doctor_load {
	enum doctor_answer answer; /* nothing was lost, and each claim has one winner */
	enum lock_mode mode;
	double alone, contended; /* per second, of one side and of all together; 0: not measured */
	int64_t longest;	 /* milliseconds, of a contended one */
	uint64_t acknowledged, present;
	uint64_t claims, contested; /* claims for which anybody asked, and several did */
	uint64_t several,
		none;  /* claims with several winners, and with another than the store says */
	char why[768]; /* DOCTOR_FAILED, or what is wrong with the database */
};

struct doctor_findings {
	enum doctor_form form;
	bool quick;
	bool shared;	     /* it was asked whether it is a place for several machines */
	char unmounted[768]; /* why it is not the place that it should be; empty: it may be */
	const char *directory;
	const char *store; /* NULL: only a directory was named */
	struct doctor_side *sides;
	size_t count, clients;

	/* The mode a store there has or would get. */
	bool exists;
	enum lock_mode mode;
	const char *mode_from;	 /* "recorded in the store", "asked for", "the default there"; NULL:
				    nothing could be looked at */
	enum status mode_status; /* not OK: the store refuses, and why */
	char mode_why[768];
	enum status store_status; /* of opening the one that exists; mode_status comes first */
	char store_why[768];
	char store_busy[768]; /* it did not answer just now, and why; empty: it did */
	bool vouched;	      /* ?assume=shared */

	struct doctor_check ofd, posix;
	/* One winner: of link(2), O_EXCL, rename(2) of one file, and of a directory over another.
	 */
	struct doctor_check link, create, rename, take;
	struct doctor_stale stale;
	struct doctor_load load;
	struct doctor_load other; /* in another mode, where the first is no good */
	int64_t noticed,
		noticed_longest; /* milliseconds from a put to its notice; -1: not measured */

	enum status trouble; /* not OK: could not go on, and why */
	char trouble_why[768];
	enum status fix_status; /* not OK: --fix changed nothing, or did not end, and why */
	char fix_why[768];
	char fixed[256]; /* what --fix did; empty: nothing */
};

struct doctor_verdict {
	enum status status; /* OK safe, NO unsafe, else could not tell */
	const char *word;   /* "safe", "unsafe", "could not tell" */
	char reason[1024];
	char change[2][320];	/* what to do; empty: nothing */
	char scope[256];	/* what was not shown; empty: all of it was */
	char warnings[10][512]; /* what should be changed although it is not the verdict */
	size_t warning_count;
	bool link_is_safe; /* and so may be recorded by --fix; likewise the next */
	bool fcntl_is_safe;
};

void doctor_judge(const struct doctor_findings *findings, struct doctor_verdict *verdict);

/* How many clients these sides are. */
size_t doctor_count_clients(const struct doctor_side *sides, size_t count);

/*
 * One winner for each round? wins[k][i] is '1' where side k won round i, '0' where it lost. Rounds
 * that not all sides played are left out.
 */
void doctor_count_wins(char *const *wins, size_t sides, struct doctor_check *check);

/*
 * What was promised against what is there. promised[k] as above, of claims, and '?' where the
 * answer was lost; seen[i] is '0' + k of whom the store names as the winner of claim i, '-' for
 * nobody. Adds to load.
 */
void doctor_count_claims(
	char *const *promised, size_t sides, const char *seen, struct doctor_load *load);

/* A table for people, with the verdict; and one JSON object on a line. */
void doctor_show_text(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text);
/* The verdict alone, the last lines of that table. */
void doctor_show_verdict(const struct doctor_verdict *verdict, struct text *text);
void doctor_show_json(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text);

#endif
