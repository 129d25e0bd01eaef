/* SPDX-License-Identifier: MIT */
/* Resources: how they are defined, built once, rebuilt, and fail for those that use them. */
#include "queue/worker/resource.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "queue/template.h"
#include "scratch_queue.h"
#include "unit.h"

#define PATIENCE 60000 /* ms; what takes longer has failed */

static struct reaper reaper;
static struct queue_worker worker = {.name = "w-1", .index = 4};
static struct slot_context place = {
	.queue = &queue, .worker = &worker, .reaper = &reaper, .kill_after = PATIENCE};
static struct resources resources;

static char sh[] = "sh", option[] = "-c";

/* Define NAME by a shell command that runs in the scratch directory. */
static bool define(const char *name, const char *text)
{
	char *copy = strdup(text), *argv[] = {sh, option, copy, NULL};
	enum status status = resource_define(&queue, name, argv, scratch, &err);
	free(copy);
	return status == STATUS_OK;
}

static enum resource_state need(const char *first, const char *second)
{
	char *names[] = {strdup(first), second ? strdup(second) : NULL, NULL};
	enum resource_state state = resources_need(&resources, names, &err);
	free(names[0]);
	free(names[1]);
	return state;
}

/* As a worker's loop does, until it is no longer being built. */
static enum resource_state settle(const char *first, const char *second)
{
	int64_t deadline = clock_after(PATIENCE);
	enum resource_state state;
	while ((state = need(first, second)) == RESOURCE_BUILDING && clock_now() < deadline) {
		struct pollfd ended = {.fd = resources.descriptor, .events = POLLIN};
		(void)poll(&ended, 1, clock_poll_timeout(deadline));
		resources_tick(&resources);
	}
	return state;
}

/* Where it is: what the environment of a command says; "" where nothing. */
static const char *where(const char *name)
{
	static char path[256];
	char *copy = strdup(name), *names[] = {copy, NULL};
	char **list = resources_environment(&resources, names);
	char prefix[128];
	size_t length = (size_t)snprintf(prefix, sizeof(prefix), "PREEMPT_RESOURCE_%s=", name);
	*path = '\0';
	if (list && list[0] && !strncmp(list[0], prefix, length) && !list[1])
		snprintf(path, sizeof(path), "%s", list[0] + length);
	template_free(list);
	free(copy);
	return path;
}

static const char *content(const char *directory, const char *name)
{
	static char bytes[512];
	char path[512];
	struct text text = {0};
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	snprintf(bytes, sizeof(bytes), "%s",
		file_read_whole(path, sizeof(bytes) - 1, &text, &err) == STATUS_OK
			? text_string(&text)
			: "(cannot be read)");
	text_release(&text);
	return bytes;
}
static bool is_there(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}
static bool waits_for(bool (*condition)(const char *), const char *path, bool wanted)
{
	int64_t deadline = clock_after(PATIENCE);
	while (condition(path) != wanted && clock_now() < deadline)
		clock_sleep_until(clock_after(2));
	return condition(path) == wanted;
}
/* Whether the process whose number is in this file lives. */
static bool lives(const char *name)
{
	struct process_identity process;
	pid_t pid = atoi(content(scratch, name));
	return pid > 0 && process_identify(pid, &process, &err) == STATUS_OK &&
	       process_check(&process) == PROCESS_ALIVE;
}

static void definitions(void)
{
	static char name[RESOURCE_NAME_MAX + 2], long_word[70000];
	static const struct {
		const char *name, *word, *directory;
	} refused[] = {{name, "true", "/"}, {"", "true", "/"}, {"a-b", "true", "/"},
		{"../x", "true", "/"}, {"1a", "true", "/"}, {"a", "true", "here"}, {"a", NULL, "/"},
		{"a", "{per-worker:a", "/"}, {"a", long_word, "/"}};
	char **argv = NULL, *directory = NULL;
	memset(long_word, 'x', sizeof(long_word) - 1);
	memset(name, 'A', sizeof(name) - 1);

	TEST("what cannot be a resource is refused")
	{
		for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
			char *words[] = {(char *)(uintptr_t)refused[i].word, NULL};
			CHECK_EQ(resource_define(&queue, refused[i].name, words,
					 refused[i].directory, &err),
				STATUS_USAGE);
		}
		CHECK_EQ(resource_find(&queue, "a", &argv, &directory, &err), STATUS_NO);
		CHECK(strstr(err.text, "no resource a"));
		char plain[] = "true", *words[] = {plain, NULL};
		CHECK_EQ(resource_define(&queue, name + 1, words, "/", &err), STATUS_OK);
	}
}

static void builds(void)
{
	char path[256];
	if (resources_open(&resources, &place, &err) != STATUS_OK)
		exit(99);
	TEST("a resource is built once, where it was defined, for all that need it")
	{
		CHECK(define("A", "echo x >>builds; pwd >\"$PREEMPT_RESOURCE_DIR/place\"; echo "
				  "$PREEMPT_RESOURCE $PREEMPT_QUEUE $PREEMPT_WORKER "
				  "$PREEMPT_WORKER_INDEX {worker} >$PREEMPT_RESOURCE_A/who"));
		CHECK_EQ(need("A", NULL), RESOURCE_BUILDING);
		CHECK_EQ(need("A", NULL), RESOURCE_BUILDING);
		CHECK_TEXT(where("A"), "");
		CHECK_EQ(settle("A", NULL), RESOURCE_READY);
		CHECK_EQ(need("A", "A"), RESOURCE_READY);
		CHECK_TEXT(content(scratch, "builds"), "x\n");
		CHECK_TEXT(content(where("A"), "who"), "A q w-1 4 w-1\n");
		snprintf(path, sizeof(path), "%s\n", scratch);
		CHECK_TEXT(content(where("A"), "place"), path);
	}
}

static void failures(void)
{
	TEST("a failed build is told to all that need it, and leaves nothing")
	{
		CHECK(define("BAD",
			"sleep 1000 & echo $! >left; echo half >$PREEMPT_RESOURCE_DIR/half; "
			"echo \"$PREEMPT_RESOURCE_DIR\" >bad; echo no data >&2; exit 3"));
		CHECK_EQ(settle("A", "BAD"), RESOURCE_FAILED);
		CHECK_TEXT(err.text, "resource BAD: its build ended with 3: no data");
		/* All that waited for it are told. */
		CHECK_EQ(need("BAD", NULL), RESOURCE_FAILED);
		CHECK_EQ(need("A", NULL), RESOURCE_READY);
		CHECK(waits_for(lives, "left", false));
		char path[256];
		snprintf(path, sizeof(path), "%s", content(scratch, "bad"));
		path[strcspn(path, "\n")] = '\0';
		CHECK(strlen(path) > 10 && !is_there(path));
		CHECK_TEXT(where("BAD"), "");
	}
	TEST("what cannot be built says why")
	{
		char none[] = "/no/such/command", *argv[] = {none, NULL};
		CHECK_EQ(need("NONE", NULL), RESOURCE_FAILED);
		CHECK(strstr(err.text, "no resource NONE"));
		CHECK_EQ(resource_define(&queue, "NONE", argv, "/", &err), STATUS_OK);
		resources_tick(&resources);
		CHECK_EQ(need("NONE", NULL), RESOURCE_FAILED);
		CHECK(strstr(err.text, "/no/such/command"));
		CHECK_EQ(resource_define(&queue, "NONE", argv, "/no/such/place", &err), STATUS_OK);
		resources_tick(&resources);
		CHECK_EQ(need("NONE", NULL), RESOURCE_FAILED);
		CHECK(strstr(err.text, "/no/such/place"));
		CHECK(define("KILLED", "kill -9 $$"));
		CHECK_EQ(settle("KILLED", NULL), RESOURCE_FAILED);
		CHECK_TEXT(err.text, "resource KILLED: its build was ended by signal 9");
		CHECK_EQ(
			need("A_NAME_THAT_IS_FAR_TOO_LONG_TO_BE_THE_NAME_OF_ANY_RESOURCE_THAT_IS_HERE",
				NULL),
			RESOURCE_FAILED);
	}
	TEST("75, and a place that cannot be made, are not a failure")
	{
		CHECK(define("LATER", "exit 75"));
		CHECK_EQ(settle("LATER", NULL), RESOURCE_POSTPONED);
		resources_release(&resources);
		CHECK_EQ(resources_open(&resources, &place, &err), STATUS_OK);
		setenv("TMPDIR", "/no/such/place", 1);
		CHECK_EQ(need("A", NULL), RESOURCE_POSTPONED);
		CHECK(strstr(err.text, "/no/such/place"));
		setenv("TMPDIR", scratch, 1);
		resources_tick(&resources);
		CHECK_EQ(settle("A", NULL), RESOURCE_READY);
	}
}

static void worker_killed(void)
{
	TEST("a worker that is killed leaves no build and no resource behind")
	{
		char path[256];
		CHECK(define("LONG", "echo $PREEMPT_RESOURCE_DIR >path; echo $$ >kill.new; "
				     "mv kill.new kill; exec sleep 1000"));
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			if (reaper_start(&reaper, &err) != STATUS_OK ||
				resources_open(&resources, &place, &err) != STATUS_OK)
				_exit(1);
			(void)need("LONG", NULL);
			pause();
			_exit(1);
		}
		CHECK(waits_for(lives, "kill", true));
		snprintf(path, sizeof(path), "%s", content(scratch, "path"));
		path[strcspn(path, "\n")] = '\0';
		CHECK(is_there(path));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		CHECK(waits_for(lives, "kill", false));
		CHECK(waits_for(is_there, path, false));
	}
}

int main(void)
{
	scratch_make();
	setenv("TMPDIR", scratch, 1);
	unsetenv("PREEMPT_AGENT");
	reopen("q");
	worker_killed();
	if (reaper_start(&reaper, &err) != STATUS_OK)
		return 99;
	builds();
	failures();
	definitions();
	close_all();
	reaper_stop(&reaper);
	scratch_remove();
	return unit_end();
}
