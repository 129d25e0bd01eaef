/* SPDX-License-Identifier: MIT */
/* What a worker decides by itself: its share of the time that is left, and its name. */
#include "queue/say.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit.h"

static void name_of(const char *given, struct queue_worker *worker)
{
	struct queue_work options = {.worker = given, .slots = 3, .limit = 6};
	say_name(&options, worker);
}

int main(void)
{
	struct queue_worker worker;
	TEST("of the time until a deadline some is kept for handing in")
	{
		CHECK_EQ(queue_work_share(120000), 117000);
		CHECK_EQ(queue_work_share(30000), 27000);
		CHECK_EQ(queue_work_share(4000), 3000);
		CHECK_EQ(queue_work_share(100), 75);
		CHECK_EQ(queue_work_share(0), 0);
		CHECK_EQ(queue_work_share(-5000), 0);
	}
	TEST("a worker has the name of the option, else by its index, else by host and process")
	{
		char pid[32];
		unsetenv("PREEMPT_TASK");
		unsetenv("SLURM_ARRAY_TASK_ID");
		unsetenv("JOB_COMPLETION_INDEX");
		name_of(NULL, &worker);
		snprintf(pid, sizeof(pid), "-%ld", (long)getpid());
		CHECK(strstr(worker.name, pid));
		CHECK_EQ(worker.index, UINT64_MAX);
		CHECK_EQ(worker.slots, 3);
		setenv("JOB_COMPLETION_INDEX", "4", 1);
		name_of(NULL, &worker);
		CHECK_TEXT(worker.name, "4");
		CHECK_EQ(worker.index, 4);
		setenv("SLURM_ARRAY_TASK_ID", "17", 1);
		name_of(NULL, &worker);
		CHECK_TEXT(worker.name, "17");
		name_of("left", &worker);
		CHECK_TEXT(worker.name, "left");
		CHECK_EQ(worker.index, 17);
		name_of("5", &worker);
		CHECK_EQ(worker.index, 5);
		setenv("PREEMPT_TASK", "garbage", 1);
		name_of(NULL, &worker);
		CHECK_TEXT(worker.name, "17");
	}
	TEST("a line of the joblog")
	{
		char word[] = "a b", *argv[] = {word, NULL};
		const struct queue_item item = {.id = 7, .argv = argv};
		struct queue_result result = {
			.started = 1500, .ended = 2750, .out = 5, .host = "h"};
		struct text line = {0};
		result.ending.code = 3;
		joblog_row(&line, &item, &result);
		CHECK_TEXT(text_string(&line), "7\th\t1.500\t     1.250\t0\t5\t3\t0\t'a b'\n");
		text_release(&line);
	}
	return unit_end();
}
