/* SPDX-License-Identifier: MIT */
/*
 * The table of platforms, schedulers and clouds: how each is recognised, where its notices come
 * from, what a job is called there, and what makes it run a job again. Several can be combined. A
 * platform is recognised by the environment and the firmware's tables (DMI), never over the
 * network. platform_choose is pure.
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

enum platform_dmi { DMI_NONE, DMI_VENDOR, DMI_PRODUCT, DMI_ASSET_TAG, DMI_FIELDS };

/* The signs by which platforms are recognised. */
struct platform_signs {
	char *(*lookup)(const char *name); /* as getenv */
	char dmi[DMI_FIELDS][64];	   /* empty: not readable */
};
void platform_inspect(struct platform_signs *signs);

struct platform {
	const char *name;  /* for --platform: "sge" */
	const char *title; /* of a scheduler whose jobs have an id: "Grid Engine" */

	/* It is here if both variables are set, or the firmware's text begins so. NULL: none. */
	const char *variable, *also;
	enum platform_dmi dmi;
	const char *dmi_text;

	const char *signal; /* a notice here, beside NOTICE_SIGNALS; NULL: none */
	const char *source; /* another source; NULL: none. "slurm" catches the signals itself */
	int64_t grace;	    /* ms after a signal; 0: not known */

	const char *prefix; /* of a run's name, before the job's id in `variable`; or NULL */
	const char *index;  /* the variable of a job's index in an array; NULL: it is in the id */
	const char *array_job; /* the variable that replaces `variable` if there is an index */
	const char *no_index;  /* the value of index that means none; may be NULL */

	int exit_code;	      /* the code with which it runs the job again; 0: no special one */
	bool scontrol;	      /* `scontrol requeue` makes it run the job again */
	const char *rerun;    /* the shell command that makes it run the job again; or NULL */
	const char *restarts; /* the variable that counts its restarts of the job; may be NULL */
	const char *note;     /* what the site or the user has to configure for that; or NULL */
};
/* Of several schedulers the innermost comes first; the last row has no name. */
extern const struct platform platforms[];

bool platform_is_here(const struct platform *platform, const struct platform_signs *signs);

/* For --show-platform: all platforms, which of them is recognised here, and what auto chooses. */
void platform_show(const struct platform_signs *signs, struct text *text);

enum { PLATFORM_SOURCES = 8 };

struct platform_choice {
	char sources[PLATFORM_SOURCES][64]; /* specifications (source.h) */
	size_t count;
	bool certain;	  /* the user named them: a source that cannot be opened is an error */
	int exit_code;	  /* 0: no change */
	int64_t grace;	  /* ms; -1: not known */
	const char *note; /* what has to be configured for the exit code; NULL: nothing */
	char names[128];  /* "slurm,aws" */
};
/* names: "auto", or a list: "slurm,aws". STATUS_USAGE: a name is not known. */
enum status platform_choose(const char *names, const struct platform_signs *signs,
	struct platform_choice *choice, struct error *err);

#endif
