/* SPDX-License-Identifier: MIT */
/*
 * What runs a thread beside its caller: without descriptors or memory it says so and leaves nothing
 * behind; its end does not depend on the wall clock.
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/children/stderr_relay.h"
#include "agent/pulse/pulse.h"
#include "agent/source_group.h"
#include "agent/store_thread.h"
#include "base/clock.h"
#include "base/exit_code.h"
#include "unit.h"

static int64_t day_off; /* s, of the wall clock of this process */

/* Before libc. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	int failed = (int)syscall(SYS_clock_gettime, clock, now);
	if (!failed && clock == CLOCK_REALTIME)
		now->tv_sec += day_off;
	return failed;
}

/* The sanitizer, too, answers NULL where there is no memory. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static size_t entries_of(const char *directory)
{
	size_t count = 0;
	DIR *stream = opendir(directory);
	while (stream && readdir(stream))
		count++;
	if (stream)
		closedir(stream);
	return count;
}

static const char none[] = "/nonexistent/preempt/unit.db";

/* Each starts one and ends it at once. */
static enum status relay(struct error *err)
{
	struct stderr_relay *relay;
	enum status status = stderr_relay_start(&relay, 2, err);
	if (status == STATUS_OK)
		stderr_relay_stop(relay);
	return status;
}

static enum status worker(struct error *err)
{
	struct store_thread *thread;
	enum status status = store_thread_start(&thread, none, NULL, err);
	if (status != STATUS_OK)
		return status;
	bool whole = store_thread_descriptor(thread) >= 0;
	store_thread_stop(thread, 60000);
	return whole ? status : STATUS_DAMAGED;
}

static enum status pulse(struct error *err)
{
	struct process_identity self = {.pid = 1};
	struct pulse_options options = {.store = none, .count = 1, .who = &self};
	struct pulse *pulse;
	enum status status = pulse_start(&pulse, &options, err);
	if (status != STATUS_OK)
		return status;
	bool whole = pulse_descriptor(pulse) >= 0;
	pulse_stop(pulse, 60000);
	return whole ? status : STATUS_DAMAGED;
}

static enum status group(struct error *err)
{
	struct group_source_options options = {.store = none, .run = "r"};
	struct source *source;
	enum status status = source_group_open(&source, &options, err);
	if (status == STATUS_OK)
		source_close(source);
	return status;
}

static void without_descriptors(const char *name, enum status (*start)(struct error *err))
{
	size_t before = entries_of("/proc/self/fd");
	struct rlimit kept, limit;
	enum status status = STATUS_TEMPORARY;
	bool right = true;
	getrlimit(RLIMIT_NOFILE, &kept);
	for (unsigned more = 0; right && status != STATUS_OK && more < 16; more++) {
		struct error err = {0};
		/* The lowest free descriptor: the limit lets "more" files be opened. */
		int lowest = dup(STDIN_FILENO);
		close(lowest);
		limit = kept;
		limit.rlim_cur = (rlim_t)lowest + more;
		setrlimit(RLIMIT_NOFILE, &limit);
		status = start(&err);
		setrlimit(RLIMIT_NOFILE, &kept);
		right = (status == STATUS_OK && more) || (status == STATUS_TEMPORARY && *err.text);
		right = right && entries_of("/proc/self/fd") == before;
	}
	CHECK(right && status == STATUS_OK, "%s: says so, and leaves none behind", name);
}

int main(void)
{
	without_descriptors("stderr relay without descriptors", relay);
	without_descriptors("store thread without descriptors", worker);
	without_descriptors("heartbeat without descriptors", pulse);
	without_descriptors("source of the group without descriptors", group);
	TEST("the source of the group ends its thread, whatever the wall clock says")
	{
		size_t before = entries_of("/proc/self/fd");
		struct error err;
		day_off = -86400;
		CHECK(group(&err) == STATUS_OK);
		day_off = 0;
		CHECK_EQ(entries_of("/proc/self/fd"), before);
	}
	TEST("an agent without memory for its tasks ends with 75")
	{
		struct identity identity = {.count = UINT64_MAX, .tasks = UINT64_MAX};
		struct agent_options options = {.identity = &identity};
		struct agent_end end;
		int ended;
		fflush(NULL);
		pid_t child = fork();
		if (child == 0) {
			(void)agent_run(&options, &end);
			_exit(1);
		}
		CHECK(waitpid(child, &ended, 0) == child && WIFEXITED(ended));
		CHECK_EQ(WEXITSTATUS(ended), CODE_TEMPORARY);
	}
	return unit_end();
}
