/* SPDX-License-Identifier: MIT */
/*
 * Stand-ins for functions of base/process/reaper.c, base/process/process.c and notice/source_set.c
 * that have no work here, because simulated trainings are no processes. Also in ../bench/crowd.
 */
#include "base/process/process.h"
#include "base/process/reaper.h"
#include "base/xalloc.h"
#include "nothing.h"
#include "notice/source_set.h"

NOTHING(reaper_add, const struct reaper *, pid_t)
NOTHING(reaper_remove, const struct reaper *, pid_t)

char *reaper_make_directory(const struct reaper *reaper, const char *parent, const char *name)
{
	(void)reaper;
	return xprintf("%s/%s0", parent, name);
}

ANSWERS(false, bool, reaper_keep, struct reaper *)
NOTHING(process_rename, const char *)
ANSWERS(STATUS_OK, enum status, source_set_add, struct source_set *, struct source *,
	struct error *)
NOTHING(source_set_release, struct source_set *)
NOTHING(source_set_watch, const struct source_set *, struct loop *)
ANSWERS(false, bool, source_set_take_held, struct source_set *, struct notice *)
