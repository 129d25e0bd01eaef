/* SPDX-License-Identifier: MIT */
/* Which agent tells what concerns all. */
#include "agent/announce.h"

#include <string.h>

#include "unit.h"

enum { TASKS = 6 };

static void begin(struct view *view)
{
	struct attempt attempt = {.number = 1, .tasks = TASKS};
	strcpy(attempt.run, "job");
	view_init(view, &attempt);
	view->all_there = true;
}

static enum announce_by by(const struct view *view, uint64_t task, uint64_t count)
{
	struct identity identity = {.task = task, .count = count, .tasks = TASKS};
	return announce_by(view, &identity, false);
}

int main(void)
{
	struct view view;
	TEST("the agent of task 0 tells; before any has joined, too")
	{
		struct view none = {0};
		CHECK(announce_speaker(&none, false) == 0);
		begin(&view);
		CHECK(by(&view, 0, 2) == ANNOUNCE_GROUP);
		CHECK(by(&view, 2, 4) == ANNOUNCE_OTHERS);
		view_release(&view);
	}
	TEST("where task 0 is dead or was decided without, that of the next one that is there")
	{
		begin(&view);
		view.agreement.peers[0].dead = true;
		view.members[1].unreported = true;
		CHECK(announce_speaker(&view, false) == 2);
		CHECK(by(&view, 0, 2) == ANNOUNCE_OTHERS);
		CHECK(by(&view, 2, 4) == ANNOUNCE_GROUP);
		view_release(&view);
	}
	TEST("of some that have joined, the first of these")
	{
		begin(&view);
		view.all_there = false;
		view.members[3].shown[RECORD_TASK] = true;
		CHECK(announce_speaker(&view, false) == 3);
		view_release(&view);
	}
	TEST("one that has completed tells that, and nothing that comes later; one that left does")
	{
		begin(&view);
		view.agreement.peers[0].left = REASON_COMPLETED;
		CHECK(announce_speaker(&view, true) == 0);
		CHECK(announce_speaker(&view, false) == 1);
		view.agreement.peers[0].left = REASON_SAVED;
		CHECK(announce_speaker(&view, false) == 0);
		view_release(&view);
	}
	TEST("tasks are named as one or as a range")
	{
		char name[64];
		announce_name_tasks(3, 1, name);
		CHECK_TEXT(name, "3");
		announce_name_tasks(0, 8, name);
		CHECK_TEXT(name, "0-7");
	}
	return unit_end();
}
