/* SPDX-License-Identifier: MIT */
/*
 * Presets for platforms: where notices come from, and which exit code a launcher expects. Several
 * can be combined. A platform is recognised by the environment and the firmware's tables (DMI),
 * never over the network. platform_choose is pure.
 *
 * A platform that the user has not named, but that was recognised, adds sources and nothing else:
 * it never changes an exit code, and never makes the group rely on a grace period.
 */
#ifndef NOTICE_PLATFORM_H
#define NOTICE_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* The signs by which platforms are recognised. */
struct platform_signs {
	bool slurm;				     /* SLURM_JOB_ID */
	bool lsf, sge, pbs;			     /* LSB_JOBID; JOB_ID, SGE_ROOT; PBS_JOBID */
	bool kubernetes;			     /* KUBERNETES_SERVICE_HOST */
	char vendor[64], product[64], asset_tag[64]; /* DMI; empty: not readable */
};
void platform_inspect(struct platform_signs *signs);

struct platform {
	const char *name;
	const char *signal;  /* a notice here, beside NOTICE_SIGNALS; NULL: none */
	const char *source;  /* another source; NULL: none. "slurm" catches the signals itself */
	int exit_code;	     /* the code that means "saved, run me again" */
	int64_t grace;	     /* ms after a signal; -1: not known */
	const char *warning; /* printed when the user names the platform; NULL: none */
	const char *sign;    /* how it is recognised, for messages */
	bool (*here)(const struct platform_signs *signs); /* NULL: only when named */
};
/* All platforms; the last has no name. */
extern const struct platform platforms[];

/* For --show-platform: all platforms, which of them is recognised here, and what auto chooses. */
void platform_show(const struct platform_signs *signs, struct text *text);

enum { PLATFORM_SOURCES = 8 };

struct platform_choice {
	char sources[PLATFORM_SOURCES][64]; /* specifications (source.h) */
	size_t count;
	bool certain;	     /* the user named them: a source that cannot be opened is an error */
	int exit_code;	     /* 0: no change */
	int64_t grace;	     /* ms; -1: not known */
	const char *warning; /* NULL: none */
	char names[128];     /* "slurm,aws" */
};
/* names: "auto", or a list: "slurm,aws". STATUS_USAGE: a name is not known. */
enum status platform_choose(const char *names, const struct platform_signs *signs,
	struct platform_choice *choice, struct error *err);

#endif
