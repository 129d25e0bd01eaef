/* SPDX-License-Identifier: MIT */
#include "library.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "calls.h"

/* Milliseconds; each is many times what a loaded machine needs for what the one before allows. */
#define AT_ONCE	 20000	/* what need not wait ends in */
#define PATIENCE 40000	/* of a transaction: a process that uses it up has waited */
#define HANGS	 100000 /* and when it is called one that hangs */

static struct fixture fixture;
static struct plan *plan;
static struct outcome *outcome;
static unsigned long wrong;

/* ---- One transaction with a fault ---- */

static int count_descriptors(void)
{
	int count = 0;
	DIR *entries = opendir("/proc/self/fd");
	while (entries && readdir(entries))
		count++;
	closedir(entries);
	return count;
}

/* Errors after which asking again may help at once, so that the patience may be used up. */
static bool may_take_long(int number)
{
	return number == EINTR || number == ETIMEDOUT || number == EAGAIN;
}

struct child {
	pid_t pid;
	int from, to; /* pipes: "it is done", "close the store" */
};

static struct child start(const struct act *act)
{
	struct child child;
	int done[2], close_it[2];
	char byte;
	memset(outcome, 0, sizeof(*outcome));
	plan->count = plan->hits = 0;
	if (pipe2(done, O_CLOEXEC) < 0 || pipe2(close_it, O_CLOEXEC) < 0)
		exit(99);
	child.pid = fork();
	if (child.pid == 0) {
		struct store *store = NULL;
		close(done[0]);
		close(close_it[1]);
		int before = count_descriptors();
		calls_arm(plan);
		bool waits = plan->act == ACT_FAIL_ALWAYS && may_take_long(plan->number);
		act_play(act, fixture.url, waits ? 100 : PATIENCE, &store, outcome);
		calls_arm(NULL);
		if (write(done[1], "x", 1) != 1 || read(close_it[0], &byte, 1) != 1)
			_exit(1);
		calls_arm(plan);
		store_close(store);
		calls_arm(NULL);
		outcome->descriptors = count_descriptors() - before;
		_exit(0);
	}
	close(done[1]);
	close(close_it[0]);
	child.from = done[0];
	child.to = close_it[1];
	return child;
}

/* Until it has answered or died; false: it hangs, and is ended. */
static bool await(const struct child *child)
{
	struct pollfd poller = {.fd = child->from, .events = POLLIN};
	int result;
	do
		result = poll(&poller, 1, HANGS);
	while (result < 0 && errno == EINTR);
	if (result == 0)
		kill(child->pid, SIGKILL);
	return result > 0;
}

/* Its wait status. */
static int end(const struct child *child)
{
	int status = 0;
	(void)!write(child->to, "x", 1);
	close(child->to);
	close(child->from);
	waitpid(child->pid, &status, 0);
	return status;
}

/* ---- What is expected, and what came ---- */

static struct {
	struct text before, after;
	struct text after_again; /* without revisions */
	enum status status;
	char answer[sizeof(((struct outcome *)0)->answer)];
	unsigned calls;
} normal;

__attribute__((format(printf, 2, 3))) static void complain(
	const struct act *act, const char *format, ...)
{
	va_list arguments;
	printf("# %s, %s: ", act->name, fault_told(plan));
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n#    answered %d%s after %lld ms: %s\n", outcome->status,
		outcome->known ? ", nothing changed" : "", (long long)outcome->milliseconds,
		outcome->status ? outcome->err.text : outcome->answer);
	wrong++;
}

static void prepare(const struct act *act)
{
	struct error err;
	struct store *store = NULL;
	fixture_restore(&fixture, act->state);
	if (!act->made)
		return;
	struct store_beat beat = {.token = 1, .sequence = 4, .step = 1};
	if (store_open(&store, fixture.url, 0, clock_after(PATIENCE), &err) != STATUS_OK ||
		store_beats_prepare(store, "r/1", 3, &err) != STATUS_OK ||
		store_beat(store, "r/1", 0, &beat, &err) != STATUS_OK) {
		printf("Bail out! %s\n", err.text);
		exit(99);
	}
	store_close(store);
}

static void look(struct text *lines, struct text *without_revisions)
{
	struct error err;
	text_release(lines);
	text_release(without_revisions);
	enum status status = fixture_inspect(&fixture, AT_ONCE, lines, without_revisions, &err);
	if (status != STATUS_OK && status != STATUS_NO)
		text_addf(lines, "%d %s", (int)status, err.text);
}

/* How it is without a fault, and how many calls it makes. */
static bool learn(const struct act *act)
{
	struct text ignored = {0};
	prepare(act);
	/* What only the first of all does (the page of the machine) is done. */
	look(&normal.before, &ignored);
	plan->act = ACT_COUNT;
	plan->at = 0;
	snprintf(plan->page, sizeof(plan->page), "%s", fixture.page);
	struct child child = start(act);
	bool ended = await(&child) && end(&child) == 0;
	normal.calls = plan->count;
	normal.status = outcome->status;
	memcpy(normal.answer, outcome->answer, sizeof(normal.answer));
	look(&normal.after, &ignored);
	/* And once more, because that is what callers do who did not get an answer. */
	child = start(act);
	ended = ended && await(&child) && end(&child) == 0;
	look(&ignored, &normal.after_again);
	text_release(&ignored);
	return ended && outcome->descriptors == 0 &&
	       (normal.status == STATUS_OK || normal.status == STATUS_NO ||
		       normal.status == STATUS_TIMEOUT);
}

static enum status status_of(int number)
{
	return number == EACCES || number == EPERM || number == EROFS ? STATUS_PERMISSION
								      : STATUS_TEMPORARY;
}

static void judge_answer(const struct act *act)
{
	if (outcome->milliseconds > AT_ONCE)
		complain(act, "took long");
	if (outcome->status == normal.status) {
		if (strcmp(outcome->answer, normal.answer) != 0)
			complain(act, "another answer: \"%s\"", normal.answer);
		return;
	}
	if (outcome->status == STATUS_TIMEOUT && act->waits)
		return;
	/*
	 * Mode link: whether names are made as it needs them is tried first; EPERM: they are not.
	 */
	if (outcome->status == STATUS_USAGE && plan->number == EPERM &&
		strstr(outcome->err.text, "hard links"))
		return;
	/* Mode link has no readers that cannot write: that is reported, and not why they cannot. */
	if (outcome->status == STATUS_PERMISSION &&
		strstr(outcome->err.text, "needs write permission"))
		return;
	/* What removes a directory takes this for its end, and cannot remove it then. */
	if (!strcmp(plan->hit.name, "readdir") && outcome->status == STATUS_TEMPORARY &&
		strstr(outcome->err.text, strerror(ENOTEMPTY)))
		return;
	if (outcome->status != status_of(plan->number))
		complain(act, "should be %d or %d", (int)normal.status,
			(int)status_of(plan->number));
	if (!strstr(outcome->err.text, strerror(plan->number)) &&
		!(plan->number == EAGAIN && strstr(outcome->err.text, "another")))
		complain(act, "does not say what it was");
}

/* What cannot be removed, however often it is tried, stays. */
static bool cannot_remove(void)
{
	return plan->act == ACT_FAIL_ALWAYS &&
	       (!strcmp(plan->hit.name, "unlink") || !strcmp(plan->hit.name, "rmdir") ||
		       strstr(plan->hit.file, ".lock.new-"));
}

static void judge_state(const struct act *act, int64_t patience)
{
	struct text lines = {0}, without = {0};
	struct error err = {0};
	bool done = outcome->finished && outcome->status == STATUS_OK;
	enum status status = fixture_inspect(&fixture, patience, &lines, &without, &err);
	if (status != STATUS_OK && (status != STATUS_NO || act->state != STATE_NOTHING)) {
		complain(act, "then the store does not open: %s", err.text);
	} else if (act->effect != EFFECT_PARTS || done) {
		bool before = !strcmp(text_string(&lines), text_string(&normal.before));
		bool after = !strcmp(text_string(&lines), text_string(&normal.after));
		if (!before && !after)
			complain(act, "neither done nor undone:\n%s\n#    after:\n%s",
				text_string(&lines), text_string(&normal.after));
		else if (done && !after)
			complain(act, "acknowledged, and not there");
		else if (act->effect == EFFECT_WHOLE && outcome->known && !done && !before)
			complain(act, "\"nothing was changed\", and it is there");
	}
	text_release(&lines);
	text_release(&without);
}

/* Doing it again leads to where it would have come. */
static void judge_again(const struct act *act)
{
	struct text lines = {0}, without = {0};
	struct error err = {0};
	unsigned kept = plan->at;
	enum call_act what = plan->act;
	plan->act = ACT_COUNT;
	plan->at = 0;
	struct outcome first = *outcome;
	struct child child = start(act);
	bool ended = await(&child) && end(&child) == 0;
	struct outcome second = *outcome;
	*outcome = first;
	plan->at = kept;
	plan->act = what;
	if (!ended || second.status == STATUS_TEMPORARY || second.status == STATUS_DAMAGED ||
		second.status == STATUS_PERMISSION)
		complain(act, "then again: %d %s", second.status, second.err.text);
	if (fixture_inspect(&fixture, AT_ONCE, &lines, &without, &err) != STATUS_OK)
		complain(act, "after doing it again the store does not open: %s", err.text);
	else if (strcmp(text_string(&without), text_string(&normal.after_again)) != 0)
		complain(act, "doing it again leads elsewhere:\n%s\n#   not:\n%s",
			text_string(&without), text_string(&normal.after_again));
	const char *stranger = fixture_stranger(&fixture);
	if (stranger && !cannot_remove())
		complain(act, "%s is left behind", stranger);
	text_release(&lines);
	text_release(&without);
}

static void inject(const struct act *act, const struct point *point)
{
	prepare(act);
	plan->act = point->act;
	plan->at = point->at;
	plan->number = point->number;
	struct child child = start(act);
	if (!await(&child))
		complain(act, "hangs");
	if (point->act < ACT_BEFORE) {
		judge_answer(act);
		judge_state(act, AT_ONCE);
		int status = end(&child);
		if (status != 0)
			complain(act, "closing failed");
		else if (outcome->descriptors)
			complain(act, "%d descriptors are left open", outcome->descriptors);
		if (fixture_stranger(&fixture) && outcome->status == STATUS_OK && !cannot_remove())
			complain(act, "%s is left behind", fixture_stranger(&fixture));
	} else {
		int died_of = end(&child);
		if (plan->hits && (!WIFSIGNALED(died_of) || WTERMSIG(died_of) != point->number))
			complain(act, "is not killed by it");
		judge_state(act, AT_ONCE);
	}
	judge_again(act);
}

/* ---- Stopped for longer than every timeout ---- */

static void stop(const struct act *act, const struct point *point)
{
	struct error err = {0};
	struct store *store = NULL;
	int status;
	prepare(act);
	plan->act = ACT_BEFORE;
	plan->at = point->at;
	plan->number = SIGSTOP;
	struct child child = start(act);
	/* It may end first: under load it makes another number of calls, where it waits. */
	struct pollfd poller = {.fd = child.from, .events = POLLIN};
	while (waitpid(child.pid, &status, WUNTRACED | WNOHANG) != child.pid)
		if (poll(&poller, 1, 2) > 0 && (poller.revents & POLLIN)) {
			plan->at = 0; /* nor while it closes the store */
			end(&child);
			return;
		}
	if (!WIFSTOPPED(status)) {
		complain(act, "is not stopped");
		return;
	}
	bool others = false;
	enum status answer = store_open(&store, fixture.url, STORE_CREATE, clock_after(100), &err);
	if (answer == STATUS_OK) {
		store_set_patience(store, 100);
		answer = store_put(store, "other", "1", NULL, &err);
		others = answer == STATUS_OK;
	}
	if (answer != STATUS_OK && (answer != STATUS_TEMPORARY || !strstr(err.text, "is stopped")))
		complain(act, "the others were told %d %s", (int)answer, err.text);
	store_close(store);
	kill(child.pid, SIGCONT);
	if (!await(&child) || end(&child) != 0 || outcome->status != normal.status)
		complain(act, "does not go on");
	struct text lines = {0}, without = {0};
	if (fixture_inspect(&fixture, AT_ONCE, &lines, &without, &err) != STATUS_OK)
		complain(act, "then the store does not open: %s", err.text);
	bool there = strstr(text_string(&lines), "\nother ") != NULL ||
		     !strncmp(text_string(&lines), "other ", 6);
	if (others != there)
		complain(act, "what another was acknowledged is%s there", there ? "" : " not");
	/* Without the other one's, it is what it always is. */
	if (!others && strcmp(text_string(&lines), text_string(&normal.after)) != 0)
		complain(act, "it is not there:\n%s", text_string(&lines));
	text_release(&lines);
	text_release(&without);
}

/* ---- All of them ---- */

void library_begin(const char *parameters)
{
	signal(SIGPIPE, SIG_IGN);
	plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	outcome = mmap(
		NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fixture_make(&fixture, parameters);
	snprintf(plan->directory, sizeof(plan->directory), "%s", fixture.directory);
}

struct result library_run(const struct act *act, unsigned faults, size_t most, uint64_t *seed)
{
	unsigned long wrong_before = wrong;
	struct points points = {0};
	struct result result = {0};
	if (!learn(act)) {
		printf("# without a fault: %d %s, %d descriptors left\n", outcome->status,
			outcome->err.text, outcome->descriptors);
		wrong++;
	} else {
		/* learn counted the second time, too: where the store was there. */
		prepare(act);
		plan->act = ACT_COUNT;
		struct child child = start(act);
		(void)(await(&child) && end(&child) == 0);
		points_of(faults, false, plan->log, normal.calls, &points);
		result.possible = points.count;
		points_thin(&points, most, seed);
	}
	for (size_t i = 0; i < points.count; i++)
		if (points.list[i].number == SIGSTOP && points.list[i].act == ACT_BEFORE)
			stop(act, &points.list[i]);
		else
			inject(act, &points.list[i]);
	result.made = points.count;
	result.wrong = wrong - wrong_before;
	points_release(&points);
	return result;
}

void library_end(void)
{
	fixture_remove(&fixture);
}
