/* SPDX-License-Identifier: MIT */
/*
 * Faults at the calls of libc: calls.c stands before libc, counts the calls that concern files
 * of a store, and at the N-th does what the plan says. It is linked into crash and
 * powerloss, which fork and arm the child; and it is calls.so, to be preloaded into a program with
 * FAULTS=FILE in its environment, where FILE holds a plan that begins armed.
 *
 * The plan lies in memory that all processes share, so that the one which planned sees how far a
 * killed one came.
 */
#ifndef FAULTS_CALLS_H
#define FAULTS_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CALLS_LOGGED   4096
#define CALLS_RECORDED (8 * 1024 * 1024)

enum call_act {
	ACT_COUNT,	 /* nothing but counting */
	ACT_FAIL,	 /* fail with an errno, and do not do it */
	ACT_FAIL_ALWAYS, /* the same, and every later call of the same name on the same file */
	ACT_HALF,	 /* read or write half as much as asked */
	ACT_HALF_FAIL,	 /* the same, and every later one fails */
	ACT_LATE,	 /* do it, then fail: an answer that was lost */
	ACT_LATE_GONE,	 /* the same, and every later call on any file fails */
	ACT_BEFORE,	 /* a signal to ourselves before it */
	ACT_AFTER,	 /* and after it */
};

/* One call as it came. */
struct call {
	char name[16];
	char file[80]; /* the end of the path */
	bool writes;   /* opens for writing, makes, changes */
	bool locks;
};

struct plan {
	bool armed;	     /* begin counting at once: for calls.so */
	char directory[256]; /* what concerns files in it is counted, */
	char page[128];	     /* and what concerns files whose names begin so; may be empty */
	struct call only;    /* its name and file, where not empty: nothing else is counted */
	enum call_act act;
	unsigned at; /* 1: the first; 0: none */
	int number;  /* errno, or signal */

	/* The result. */
	_Atomic unsigned count;
	_Atomic unsigned hits;
	struct call hit;
	struct call log[CALLS_LOGGED];

	/* What was changed, where recording: struct change one behind the other. */
	bool record;
	_Atomic size_t recorded; /* bytes */
	unsigned char changes[CALLS_RECORDED];
};

enum change_kind {
	CHANGE_WRITE,
	CHANGE_SIZE,   /* offset: the new size */
	CHANGE_SYNC,   /* of a file or directory */
	CHANGE_CREATE, /* inode gets the first name */
	CHANGE_NAME,   /* inode gets the first name, by link */
	CHANGE_RENAME, /* first to second name */
	CHANGE_UNNAME, /* the first name goes */
};

struct change {
	enum change_kind kind;
	ino_t inode;
	uint64_t offset, length; /* of the bytes that follow */
	char name[2][128];	 /* within the directory */
};

/* In this process, from now on; NULL: no more. */
void calls_arm(struct plan *plan);

#endif
