/* SPDX-License-Identifier: MIT */
/*
 * Stand-ins for functions of base/process/reaper.c, base/process/process.c and notice/source_set.c
 * that have no work here, because simulated trainings are no processes. Also in ../bench/crowd.
 */
#include <poll.h>

#include "base/clock.h"
#include "base/process/process.h"
#include "base/process/reaper.h"
#include "base/xalloc.h"
#include "notice/source_set.h"

void reaper_add(const struct reaper *reaper, pid_t group)
{
	(void)reaper, (void)group;
}

void reaper_remove(const struct reaper *reaper, pid_t group)
{
	(void)reaper, (void)group;
}

char *reaper_make_directory(const struct reaper *reaper, const char *parent, const char *name)
{
	(void)reaper;
	return xprintf("%s/%s0", parent, name);
}

bool reaper_keep(struct reaper *reaper)
{
	(void)reaper;
	return false;
}

void process_rename(const char *name)
{
	(void)name;
}

enum status source_set_add(struct source_set *watch, struct source *source, struct error *err)
{
	(void)watch, (void)source, (void)err;
	return STATUS_OK;
}

void source_set_release(struct source_set *watch)
{
	(void)watch;
}

void source_set_wait(struct source_set *watch, const int *others, size_t count, int64_t until)
{
	struct pollfd polls[4];
	(void)watch;
	for (size_t i = 0; i < count; i++)
		polls[i] = (struct pollfd){.fd = others[i], .events = POLLIN};
	if (count)
		(void)poll(polls, count, clock_poll_timeout(until));
}

bool source_set_take_held(struct source_set *watch, struct notice *notice)
{
	(void)watch, (void)notice;
	return false;
}
