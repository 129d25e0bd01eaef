/* SPDX-License-Identifier: MIT */
#include "run/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/process/process.h"
#include "live/cut_off.h"
#include "live/outage.h"
#include "platform/slurm.h"
#include "run/attempt.h"
#include "store/url.h"

#define ASK_LEAST 1000	/* ms for each question to the store, at least, also after a deadline */
#define ASK_MOST  30000 /* ms */

struct group_options group_options;
struct heartbeat_options heartbeat_options = {
	.rules = {.period = HEARTBEAT_PERIOD, .limit = HEARTBEAT_LIMIT, .first = HEARTBEAT_FIRST}};
struct agreement_config agreement_options = {.report_timeout = AGREEMENT_REPORT_TIMEOUT,
	.save_timeout = AGREEMENT_SAVE_TIMEOUT,
	.startup = AGREEMENT_STARTUP};

/* clang-format off */
/* The options that every program of a run has. */
#define IDENTITY_ROWS \
	GROUP_STORE_ROW, \
	GROUP_RUN_ROW(GROUP_RUN_HELP), \
	{"attempt", "K", "which start of the run (default: the newest)", ARGS_UNSIGNED, \
		.target = &group_options.attempt, .environment = "PREEMPT_ATTEMPT", .min = 1, \
		.max = 999999999, .given = &group_options.attempt_given}, \
	{"task", "I", "which task this is, from 0 (default: $PREEMPT_TASK, the launcher's)", \
		ARGS_UNSIGNED, .target = &group_options.task, .max = TASKS_MAX - 1, \
		.given = &group_options.task_given}, \
	{"tasks", "N", "how many tasks there are (default: the launcher's)", ARGS_UNSIGNED, \
		.target = &group_options.tasks, .environment = "PREEMPT_TASKS", .min = 1, \
		.max = TASKS_MAX, .given = &group_options.tasks_given}

const struct args_option group_identity_table[] = {
	IDENTITY_ROWS,
	{0},
};

const struct args_option group_option_table[] = {
	IDENTITY_ROWS,
	GROUP_TIMEOUT_ROW("give up after this long: 90, 90s, 2m, 250ms"),
	GROUP_JSON_ROW("answer in JSON"),
	{0},
};
/* clang-format on */

int64_t group_timeout(int64_t otherwise)
{
	return group_options.timeout_given ? group_options.timeout : otherwise;
}

enum status heartbeat_options_complete(bool beats, struct error *err)
{
	struct heartbeat_options *options = &heartbeat_options;
	struct heartbeat_rules *rules = &options->rules;
	enum status status = STATUS_OK;
	if (beats && rules->period < 100)
		return error_set(err, STATUS_USAGE, "--period: at least 100ms");
	rules->timeout = group_timeout(heartbeat_timeout(rules->period));
	if (!options->cut_off_given)
		rules->cut_off = cut_off_default(rules);
	return status;
}

/* "HOST-PID-HASH": the hash is of boot, pid namespace, pid and start time of this process. */
static bool make_nonce(char *nonce, size_t size)
{
	struct process_identity self = {0};
	char key[160], host[33];
	if (process_identify(0, &self, NULL) != STATUS_OK)
		return false;
	snprintf(key, sizeof(key), "%s %llu %ld %llu", self.boot,
		(unsigned long long)self.pid_namespace, (long)self.pid,
		(unsigned long long)self.start);
	snprintf(host, sizeof(host), "%.*s", (int)strcspn(self.host, "."), self.host);
	for (char *c = host; *c; c++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-", *c))
			*c = '_';
	snprintf(nonce, size, "%s-%ld-%016llx", host, (long)self.pid,
		(unsigned long long)XXH64(key, strlen(key), 0));
	return true;
}

enum status group_identify(
	enum identity_need need, uint64_t local, struct identity *identity, struct error *err)
{
	char nonce[96];
	struct signs signs;
	struct identity_request request = {
		.need = need,
		.run = group_options.run,
		.task_given = group_options.task_given,
		.task = group_options.task,
		.tasks_given = group_options.tasks_given,
		.tasks = group_options.tasks,
		.local = local,
	};
	if (need == IDENTITY_START && make_nonce(nonce, sizeof(nonce)))
		request.nonce = nonce;
	signs_inspect(&signs);
	return identity_find(&signs, &request, identity, err);
}

bool group_is_shell(struct error *err)
{
	struct signs signs;
	struct slurm_shell shell;
	signs_inspect(&signs);
	if (outage_is_joined() || group_options.task_given ||
		slurm_shell_find(&signs, &shell, NULL) != STATUS_OK)
		return false;
	error_set(err, STATUS_NO,
		"this is %s of Slurm job %llu, which is not a task: nothing to do", shell.kind,
		(unsigned long long)shell.job);
	return true;
}

enum status group_find_agent(pid_t *agent, bool *prolog, struct error *err)
{
	pid_t task = ancestors_prolog_task();
	*prolog = task != 0;
	if (task && group_is_shell(err))
		return STATUS_NO;
	pid_t reader = task ? task : ancestors_reader();
	*agent = reader ? reader : getppid();
	return STATUS_OK;
}

uint64_t group_asked_attempt(void)
{
	bool left_behind = outage_is_joined() && !args_is_typed("attempt");
	return group_options.attempt_given && !left_behind ? group_options.attempt : 0;
}

enum status group_own_task(uint64_t *task, struct error *err)
{
	const char *source;
	return identity_own_task(&signs_environment, task, &source, err);
}

enum status group_store_url(const char *run, bool create, char *url, size_t size, struct error *err)
{
	struct text text = {0};
	enum status status = STATUS_OK;
	if (group_options.store && *group_options.store)
		text_add(&text, group_options.store);
	else
		status = store_default_url(run, create, &text, err);
	if (status == STATUS_OK && (size_t)snprintf(url, size, "%s", text_string(&text)) >= size)
		status = error_set(err, STATUS_USAGE, "--store: the path is too long");
	text_release(&text);
	return status;
}

enum status group_find(
	enum identity_need need, bool create, struct group_run *run, struct error *err)
{
	memset(run, 0, sizeof(*run));
	enum status status = group_identify(need, 0, &run->identity, err);
	return status == STATUS_OK
		       ? group_store_url(run->identity.run, create, run->url, sizeof(run->url), err)
		       : status;
}

static int64_t ask_until(int64_t deadline)
{
	int64_t most = clock_earlier(deadline, clock_after(ASK_MOST));
	return clock_later(most, clock_after(ASK_LEAST));
}

void group_ask_until(struct store *store, int64_t deadline)
{
	store_set_deadline(store, ask_until(deadline));
}

enum status group_open(enum identity_need need, bool joined, int64_t deadline,
	struct group_run *run, struct error *err)
{
	struct attempt attempt;
	int64_t until = ask_until(deadline);
	enum status status = group_find(need, false, run, err);
	if (status == STATUS_OK)
		status = joined ? outage_open_joined(&run->store, run->url, until, err)
				: store_open(&run->store, run->url, 0, until, err);
	if (status == STATUS_OK) {
		store_set_deadline(run->store, until);
		status = attempt_find(
			run->store, run->identity.run, group_options.attempt, &attempt, err);
		group_ask_until(run->store, deadline);
	}
	if (status == STATUS_OK && need == IDENTITY_TASK)
		status = attempt_check_task(&attempt, run->identity.task, err);
	if (status == STATUS_OK)
		view_init(&run->view, &attempt);
	return status;
}

void group_close(struct group_run *run)
{
	view_release(&run->view);
	store_close(run->store);
	run->store = NULL;
}
