/* SPDX-License-Identifier: MIT */
/* Resources: built once, by the first command that needs them; rebuilt; and failing for their
 * users. */
#include "queue/resource.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "queue/slot.h"
#include "queue/template.h"
#include "scratch_queue.h"
#include "unit.h"

#define PATIENCE 60000 /* ms; what takes longer has failed */
#define SLOTS	 4

static struct reaper reaper;
static struct queue_worker worker = {.name = "w-1", .index = 4};
static char *resources;
static struct slot_context place = {.queue = &queue,
	.worker = &worker,
	.reaper = &reaper,
	.resources = &resources,
	.kill_after = PATIENCE};
static struct slot slots[SLOTS];

/* NAME is built by a shell command that runs in the scratch directory. */
static void define(const char *name, const char *text)
{
	char sh[] = "sh", option[] = "-c", *copy = xstrdup(text);
	char *argv[] = {sh, option, copy, NULL};
	struct queue_item item = {.argv = argv, .directory = scratch};
	CHECK_EQ(queue_resource_put(&queue, name, &item, &err), STATUS_OK);
	free(copy);
}

/* Start a command for a shell that needs these resources. */
static void start(struct slot *slot, const char *text, const char *first, const char *second)
{
	static uint64_t id;
	char *words[] = {(char *)(uintptr_t)text, NULL};
	char *names[] = {(char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL};
	struct queue_view run = {.item = {.id = ++id,
					 .argv = template_copy(words),
					 .resources = template_copy(names),
					 .shell = true},
		.history = {.starts = 1},
		.token = "0123456789abcdef"};
	slot->place = &place;
	slot_start(slot, &run);
}

/* Wait for its end. Returns its exit code, or -1. */
static int end(struct slot *slot)
{
	int64_t deadline = clock_after(PATIENCE);
	while (slot->state != SLOT_ENDED && clock_now() < deadline) {
		struct pollfd ended = {.fd = slot->child.end.descriptor, .events = POLLIN};
		(void)poll(&ended, 1, clock_poll_timeout(clock_earlier(slot_due(slot), deadline)));
		slot_tick(slot, clock_now());
	}
	return slot->result.ending.kind == ENDING_EXITED ? slot->result.ending.code : -1;
}

/* The file that a descriptor or a name in the scratch directory is of. */
static const char *content(int descriptor)
{
	static char bytes[1024];
	ssize_t n = pread(descriptor, bytes, sizeof(bytes) - 1, 0);
	bytes[n > 0 ? n : 0] = '\0';
	return bytes;
}
static const char *content_of(const char *name)
{
	static char bytes[1024];
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	FILE *file = fopen(path, "r");
	bytes[file ? fread(bytes, 1, sizeof(bytes) - 1, file) : 0] = '\0';
	if (file)
		fclose(file);
	return bytes;
}

static void clear(struct slot *slot)
{
	slot_clear(slot, true, QUEUE_FAILED);
}

static bool waits_for(const char *name)
{
	int64_t deadline = clock_after(PATIENCE);
	while (!*content_of(name) && clock_now() < deadline)
		clock_sleep_until(clock_after(2));
	return *content_of(name);
}

static void builds(void)
{
	TEST("it is built once, where it was defined, for all that need it at once")
	{
		define("A",
			"echo x >>builds; pwd >\"$PREEMPT_RESOURCE_DIR/place\"; cat; sleep 0.1; "
			"echo $PREEMPT_RESOURCE $PREEMPT_QUEUE $PREEMPT_WORKER "
			"$PREEMPT_WORKER_INDEX {worker} >$PREEMPT_RESOURCE_A/who; echo said");
		for (int i = 0; i < SLOTS; i++)
			start(&slots[i], "cat $PREEMPT_RESOURCE_A/*", "A", i % 2 ? "A" : NULL);
		for (int i = 0; i < SLOTS; i++) {
			char wanted[256];
			snprintf(wanted, sizeof(wanted), "%s\nA q w-1 4 w-1\n", scratch);
			CHECK_EQ(end(&slots[i]), 0);
			CHECK_TEXT(content(slots[i].out), wanted);
			clear(&slots[i]);
		}
		CHECK_TEXT(content_of("builds"), "x\n");
	}
	TEST("what has left it removed is built again")
	{
		start(&slots[0], "rm -r $PREEMPT_RESOURCE_A", "A", NULL);
		CHECK_EQ(end(&slots[0]), 0);
		clear(&slots[0]);
		start(&slots[0], "cat $PREEMPT_RESOURCE_A/who", "A", NULL);
		CHECK_EQ(end(&slots[0]), 0);
		CHECK_TEXT(content(slots[0].out), "A q w-1 4 w-1\n");
		clear(&slots[0]);
		CHECK_TEXT(content_of("builds"), "x\nx\n");
	}
	TEST("a builder that is killed leaves nothing half built, and the next one builds")
	{
		define("B", "echo x >>half; echo x >$PREEMPT_RESOURCE_DIR/$(wc -l <half); "
			    "[ $(wc -l <half) = 2 ] || exec sleep 1000");
		start(&slots[0], "true", "B", NULL);
		CHECK(waits_for("half"));
		start(&slots[1], "ls $PREEMPT_RESOURCE_B", "B", NULL);
		slot_tell(&slots[0], ENDING_CANCELLED, SIGTERM, CLOCK_NEVER);
		(void)end(&slots[0]);
		clear(&slots[0]);
		CHECK_EQ(end(&slots[1]), 0);
		CHECK_TEXT(content(slots[1].out), "2\n");
		clear(&slots[1]);
	}
}

static void failures(void)
{
	TEST("a build that fails is told to all that wait for it, and leaves nothing")
	{
		define("BAD", "echo half >$PREEMPT_RESOURCE_DIR/half; echo x >>tries; "
			      "until [ -e go ]; do sleep 0.01; done; echo no data >&2; exit 3");
		char go[128], wchan[64], state[64] = "";
		for (int i = 0; i < 2; i++)
			start(&slots[i], "echo never", "A", "BAD");
		CHECK(waits_for("tries"));
		/* Until both are there: one of them waits for the lock. */
		snprintf(wchan, sizeof(wchan), "pgrep -P %d,%d -x flock >/dev/null",
			slots[0].child.pid, slots[1].child.pid);
		int64_t deadline = clock_after(PATIENCE);
		while (system(wchan) != 0 && clock_now() < deadline)
			clock_sleep_until(clock_after(5));
		snprintf(go, sizeof(go), "%s/go", scratch);
		(void)file_write_whole(go, state, 0, 0600, false, NULL);
		for (int i = 0; i < 2; i++) {
			CHECK_EQ(end(&slots[i]), 3);
			CHECK_TEXT(slots[i].result.ending.text,
				"resource BAD: its build ended with 3");
			CHECK_TEXT(content(slots[i].out), "");
			clear(&slots[i]);
		}
		CHECK_TEXT(content_of("tries"), "x\n");
		/* The next one tries again. */
		start(&slots[0], "echo never", "BAD", NULL);
		CHECK_EQ(end(&slots[0]), 3);
		clear(&slots[0]);
		CHECK_TEXT(content_of("tries"), "x\nx\n");
	}
	TEST("42 and 43 of a build do not run its command again and again; 75 is 75")
	{
		define("C", "exit 42");
		define("D", "exit 75");
		start(&slots[0], "true", "C", NULL);
		CHECK_EQ(end(&slots[0]), 1);
		clear(&slots[0]);
		start(&slots[0], "true", "D", NULL);
		CHECK_EQ(end(&slots[0]), 75);
		clear(&slots[0]);
	}
	TEST("one that was never defined fails its command; other names are refused")
	{
		start(&slots[0], "true", "NONE", NULL);
		CHECK_EQ(end(&slots[0]), 1);
		CHECK(strstr(slots[0].result.ending.text, "no resource NONE"));
		clear(&slots[0]);
		CHECK_EQ(resource_check_name("a-b", &err), STATUS_USAGE);
		CHECK_EQ(resource_check_name("", &err), STATUS_USAGE);
		CHECK_EQ(resource_check_name("1a", &err), STATUS_USAGE);
		CHECK_EQ(resource_check_name("a1_", &err), STATUS_OK);
	}
}

static void worker_killed(void)
{
	TEST("a worker that is killed leaves no build and no resource behind")
	{
		struct process_identity build;
		struct stat st;
		char path[256];
		define("LONG", "echo $PREEMPT_RESOURCE_DIR >path; echo $$ >kill.new; "
			       "mv kill.new kill; exec sleep 1000");
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			if (reaper_start(&reaper, &err) != STATUS_OK)
				_exit(1);
			start(&slots[0], "true", "LONG", NULL);
			pause();
			_exit(1);
		}
		CHECK(waits_for("kill"));
		CHECK_EQ(process_identify(atoi(content_of("kill")), &build, &err), STATUS_OK);
		snprintf(path, sizeof(path), "%s", content_of("path"));
		path[strcspn(path, "\n")] = '\0';
		CHECK(stat(path, &st) == 0);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		int64_t deadline = clock_after(PATIENCE);
		while ((process_check(&build) != PROCESS_GONE || stat(path, &st) == 0) &&
			clock_now() < deadline)
			clock_sleep_until(clock_after(2));
		CHECK(process_check(&build) == PROCESS_GONE && stat(path, &st) < 0);
		char out[256];
		snprintf(out, sizeof(out), "%s/1.0123456789abcdef.out", queue.files);
		unlink(out);
		memcpy(strrchr(out, '.'), ".err", 5);
		unlink(out);
	}
}

int main(void)
{
	scratch_make();
	setenv("TMPDIR", scratch, 1);
	unsetenv("PREEMPT_AGENT");
	reopen("q.db");
	worker_killed();
	if (reaper_start(&reaper, &err) != STATUS_OK)
		return 99;
	builds();
	failures();
	if (resources)
		(void)file_remove_tree(resources, NULL);
	free(resources);
	close_all();
	reaper_stop(&reaper);
	scratch_remove();
	return unit_end();
}
