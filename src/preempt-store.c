/* SPDX-License-Identifier: MIT */
/*
 * preempt-store COMMAND: read and change the keys of a store. Each command is a row in the table at
 * the end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/args.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/message.h"
#include "base/xalloc.h"
#include "preempt-store/doctor.h"
#include "preempt-store/member.h"
#include "proto/runs.h"
#include "run/history.h"
#include "run/options.h"
#include "store/store.h"
#include "store/url.h"

static bool if_absent, if_revision_given, with_values, since_given, older_than_given, dry_run;
static uint64_t if_revision, since_revision;
static int64_t older_than;

static const struct args_option common[] = {
	GROUP_STORE_ROW,
	GROUP_RUN_ROW("without --store: the default store of this run"),
	GROUP_TIMEOUT_ROW("how long to wait (default 30s; doctor: 1m; wait: for ever)"),
	GROUP_JSON_ROW("answer in JSON, one object per line"),
	{0},
};
static const struct args_option put_options[] = {
	{"if-absent", NULL, "only if the key is absent; else print the present value, exit 1",
		ARGS_FLAG, .target = &if_absent},
	{"if-revision", "R", "only if the key's last change was R (0: absent); else as above",
		ARGS_UNSIGNED, .target = &if_revision, .max = INT64_MAX,
		.given = &if_revision_given},
	{0},
};
static const struct args_option list_options[] = {
	{"values", NULL, "print the values, too, after a tab", ARGS_FLAG, .target = &with_values},
	{0},
};
static const struct args_option wait_options[] = {
	{"since", "R", "wait for a change after revision R, not until the key exists",
		ARGS_UNSIGNED, .target = &since_revision, .max = INT64_MAX, .given = &since_given},
	{0},
};
static const struct args_option gc_options[] = {
	{"older-than", "D", "remove runs that were closed longer ago than this", ARGS_DURATION,
		.target = &older_than, .given = &older_than_given},
	{"dry-run", NULL, "only print which runs would be removed", ARGS_FLAG, .target = &dry_run},
	{0},
};

enum status find_store_url(struct text *url, struct error *err)
{
	if (group_options.store)
		text_add(url, group_options.store);
	else if (group_options.run)
		return store_default_url(group_options.run, true, url, err);
	else
		return error_set(err, STATUS_USAGE,
			"no store is named: give --store or --run, or set PREEMPT_STORE or PREEMPT_RUN");
	return STATUS_OK;
}

static enum status open_store(struct store **store, unsigned flags, struct error *err)
{
	struct text url = {0};
	enum status status = find_store_url(&url, err);
	if (status == STATUS_OK)
		status = store_open_patient(
			store, text_string(&url), flags, group_timeout(30000), err);
	text_release(&url);
	return status;
}

static void print_escaped(const char *value, size_t length)
{
	char *escaped = xmalloc(4 * length + 1);
	text_escape(escaped, 4 * length + 1, value, length);
	fputs(escaped, stdout);
	free(escaped);
}

static void print_json(const struct store_entry *entry)
{
	struct text line = {0};
	text_add(&line, "{\"key\":");
	text_add_json_string(&line, entry->key);
	text_add(&line, ",\"value\":");
	text_add_json_bytes(&line, entry->value, entry->length);
	text_addf(&line, ",\"revision\":%" PRId64 "}", entry->revision);
	puts(text_string(&line));
	text_release(&line);
}

static void print_entry(const struct store_entry *entry)
{
	if (group_options.json) {
		print_json(entry);
		return;
	}
	/* Escape control characters on a terminal; a program gets the bytes. */
	if (isatty(STDOUT_FILENO))
		print_escaped(entry->value, entry->length);
	else
		fwrite(entry->value, 1, entry->length, stdout);
	putchar('\n');
}

/* End a command: close the store, print err if status is not STATUS_OK, return the exit code. */
static int answer_with(struct store *store, enum status status, const struct error *err)
{
	store_close(store);
	if (status == STATUS_NO)
		message_info("%s", err->text);
	return status == STATUS_OK || status == STATUS_NO ? (int)status : message_fail(err);
}

static int run_get(const struct args_rest *rest)
{
	struct error err;
	struct store *store = NULL;
	struct store_entry entry = {0};
	enum status status = open_store(&store, STORE_READ_ONLY, &err);
	if (status == STATUS_OK)
		status = store_get(store, rest->words[0], &entry, &err);
	if (status == STATUS_OK)
		print_entry(&entry);
	store_entry_release(&entry);
	return answer_with(store, status, &err);
}

/* Read the value: word, or all of stdin if word is "-". */
static enum status read_value(const char *word, struct text *value, struct error *err)
{
	enum status status = STATUS_OK;
	if (!strcmp(word, "-"))
		status = file_read_descriptor(
			STDIN_FILENO, "the value on stdin", STORE_VALUE_MAX, value, err);
	else
		text_add(value, word);
	/* A value that is too long is a mistake of the user, not damage. */
	return status == STATUS_DAMAGED
		       ? error_set(err, STATUS_USAGE, "the value on stdin has more than %d bytes",
				 STORE_VALUE_MAX)
		       : status;
}

/* answer->held: true if the value was put; otherwise the answer has the present entry. */
static enum status put(struct store *store, const char *key, const struct text *value,
	struct store_answer *answer, struct error *err)
{
	struct store_compare compare = {.key = key, .revision = (store_revision)if_revision};
	struct store_op put = {STORE_PUT, key, text_string(value), value->length};
	struct store_op get = {.kind = STORE_GET, .key = key};
	struct store_request request = {
		.compares = &compare,
		.compare_count = if_absent || if_revision_given,
		.then = &put,
		.then_count = 1,
		.otherwise = &get,
		.otherwise_count = 1,
	};
	return store_txn(store, &request, answer, err);
}

static int run_put(const struct args_rest *rest)
{
	struct error err;
	struct store *store = NULL;
	struct store_answer answer = {0};
	struct text value = {0};
	if (if_absent && if_revision_given && if_revision != 0) {
		message_error("--if-absent and --if-revision exclude each other");
		return STATUS_USAGE;
	}
	enum status status = read_value(rest->words[1], &value, &err);
	if (status == STATUS_OK)
		status = open_store(&store, STORE_CREATE, &err);
	if (status == STATUS_OK)
		status = put(store, rest->words[0], &value, &answer, &err);
	bool held = answer.held;
	if (status == STATUS_OK && held && group_options.json)
		printf("{\"revision\":%" PRId64 "}\n", answer.revision);
	if (status == STATUS_OK && !held && answer.count && answer.entries[0].value)
		print_entry(&answer.entries[0]);
	store_answer_release(&answer);
	text_release(&value);
	int code = answer_with(store, status, &err);
	return status == STATUS_OK && !held ? CODE_NO : code;
}

static int run_rm(const struct args_rest *rest)
{
	struct error err;
	struct store *store = NULL;
	struct store_answer answer = {0};
	struct store_op ops[] = {{.kind = STORE_GET, .key = rest->words[0]},
		{.kind = STORE_DELETE, .key = rest->words[0]}};
	struct store_request request = {.then = ops, .then_count = 2};
	enum status status = open_store(&store, 0, &err);
	if (status == STATUS_OK)
		status = store_txn(store, &request, &answer, &err);
	if (status == STATUS_OK && !answer.entries[0].value)
		status = error_set(&err, STATUS_NO, "there is no key \"%s\"", rest->words[0]);
	store_answer_release(&answer);
	return answer_with(store, status, &err);
}

static void print_listed(const struct store_entry *entry)
{
	if (group_options.json) {
		print_json(entry);
		return;
	}
	print_escaped(entry->key, strlen(entry->key));
	if (with_values) {
		putchar('\t');
		print_escaped(entry->value, entry->length);
	}
	putchar('\n');
}

static int run_list(const struct args_rest *rest)
{
	struct error err;
	struct store *store = NULL;
	struct store_answer answer = {0};
	struct store_range range = {.prefix = rest->count ? rest->words[0] : ""};
	char last[STORE_KEY_MAX + 1];
	enum status status = open_store(&store, STORE_READ_ONLY, &err);
	for (bool more = true; status == STATUS_OK && more;) {
		status = store_list(store, &range, &answer, &err);
		if (status != STATUS_OK)
			break;
		for (size_t i = 0; i < answer.count; i++)
			print_listed(&answer.entries[i]);
		more = answer.more && answer.count;
		if (more) {
			snprintf(last, sizeof(last), "%s", answer.entries[answer.count - 1].key);
			range.after = last;
		}
		store_answer_release(&answer);
	}
	return answer_with(store, status, &err);
}

#define ASK_MOST  30000 /* ms for one question of "wait" to the store */
#define ASK_LEAST 1000	/* also after the deadline */

/* How long the next question may take. */
static int64_t time_to_ask(int64_t deadline)
{
	int64_t left = clock_earlier(deadline - clock_now(), ASK_MOST);
	return clock_later(left, ASK_LEAST);
}

/*
 * Read the key into *entry, and the revision of the store into *seen. STATUS_TIMEOUT: the key does
 * not exist or has not changed yet. STATUS_NO: it existed before, and was deleted.
 */
static enum status check_key(struct store *store, const char *key, bool *was_there,
	struct store_entry *entry, store_revision *seen, struct error *err)
{
	struct store_op get = {.kind = STORE_GET, .key = key};
	struct store_request request = {.then = &get, .then_count = 1};
	struct store_answer answer = {0};
	enum status status = store_txn(store, &request, &answer, err);
	if (status != STATUS_OK)
		return status;
	*seen = answer.revision;
	bool there = answer.entries[0].value;
	if (there &&
		(!since_given || answer.entries[0].revision > (store_revision)since_revision)) {
		*entry = answer.entries[0];
		answer.entries[0] = (struct store_entry){0};
	} else {
		status = !there && *was_there ? STATUS_NO : STATUS_TIMEOUT;
		*was_there |= there;
	}
	store_answer_release(&answer);
	return status;
}

static int run_wait(const struct args_rest *rest)
{
	struct error err;
	struct store *store = NULL;
	struct store_entry entry = {0};
	store_revision seen = 0;
	bool was_there = false;
	int64_t deadline = clock_after(group_timeout(-1));
	const char *key = rest->words[0];
	/* A prefix ending in '/' would not include the key itself. */
	char prefix[STORE_KEY_MAX + 2];
	size_t length = strnlen(key, STORE_KEY_MAX + 1);
	while (length && key[length - 1] == '/')
		length--;
	memcpy(prefix, key, length);
	prefix[length] = '\0';

	/* Make the store if it is missing: the key may be put later. */
	enum status status = open_store(&store, STORE_CREATE, &err);
	while (status == STATUS_OK) {
		store_set_patience(store, time_to_ask(deadline));
		status = check_key(store, key, &was_there, &entry, &seen, &err);
		if (status != STATUS_TIMEOUT)
			break;
		status = store_wait(store, prefix, &seen, deadline, -1, &err);
	}
	if (status == STATUS_OK)
		print_entry(&entry);
	else if (status == STATUS_NO)
		error_set(&err, status, "key \"%s\" was deleted", key);
	else if (status == STATUS_TIMEOUT)
		error_set(&err, status, "key \"%s\" did not %s in time", key,
			since_given ? "change" : "appear");
	store_entry_release(&entry);
	return answer_with(store, status, &err);
}

static void print_run(const struct run_summary *run)
{
	char changed[32] = "-";
	if (run->changed)
		clock_format_utc(run->changed, changed);
	if (!group_options.json) {
		char state[4 * sizeof(run->state)];
		text_escape(state, sizeof(state), run->state, strlen(run->state));
		printf("%-24s %8" PRIu64 "  %-12s %s\n", run->name, run->attempts, state, changed);
		return;
	}
	struct text line = {0};
	text_add(&line, "{\"run\":");
	text_add_json_string(&line, run->name);
	text_addf(&line, ",\"attempts\":%" PRIu64 ",\"state\":", run->attempts);
	text_add_json_string(&line, run->state);
	text_addf(&line, ",\"closed\":%s", run->closed ? "true" : "false");
	if (run->changed)
		text_addf(&line, ",\"utc\":\"%s\"", changed);
	text_add(&line, "}");
	puts(text_string(&line));
	text_release(&line);
}

static int run_runs(const struct args_rest *rest)
{
	struct error err;
	struct store *store = NULL;
	struct run_summary run = {0};
	(void)rest;
	enum status status = open_store(&store, STORE_READ_ONLY, &err);
	if (status != STATUS_OK)
		return answer_with(store, status, &err);
	if (!group_options.json)
		printf("%-24s %8s  %-12s %s\n", "RUN", "ATTEMPTS", "STATE", "LAST CHANGE");
	while ((status = runs_next(store, *run.name ? run.name : NULL, &run, &err)) == STATUS_OK)
		print_run(&run);
	return answer_with(store, status == STATUS_NO ? STATUS_OK : status, &err);
}

static int run_gc(const struct args_rest *rest)
{
	struct error err;
	struct store *store = NULL;
	struct run_summary run = {0};
	(void)rest;
	if (!older_than_given) {
		message_error("gc: --older-than is missing; see preempt-store gc --help");
		return STATUS_USAGE;
	}
	enum status status = open_store(&store, 0, &err);
	if (status != STATUS_OK)
		return answer_with(store, status, &err);
	while ((status = runs_next(store, *run.name ? run.name : NULL, &run, &err)) == STATUS_OK) {
		if (!run.closed || run.changed <= 0 || clock_utc() - run.changed < older_than)
			continue;
		if (!dry_run)
			status = runs_forget(store, &run, &err);
		if (status != STATUS_OK && status != STATUS_NO)
			break;
		if (status == STATUS_OK && group_options.json)
			print_run(&run);
		else if (status == STATUS_OK)
			puts(run.name);
	}
	return answer_with(store, status == STATUS_NO ? STATUS_OK : status, &err);
}

static int run_anew(const struct args_rest *rest)
{
	struct error err;
	struct store *store = NULL;
	(void)rest;
	if (!group_options.run) {
		message_error("anew: --run is missing; see preempt-store anew --help");
		return STATUS_USAGE;
	}
	enum status status = open_store(&store, 0, &err);
	if (status == STATUS_OK)
		status = saved_forget(store, group_options.run, &err);
	return answer_with(store, status, &err);
}

static const struct args_command commands[] = {
	{"get", "KEY", "print the value of a key; exit 1 if it is absent", NULL, common, 1, 1,
		false, false, run_get},
	{"put", "KEY VALUE|- [--if-absent|--if-revision R]",
		"set a key; - reads the value from stdin", put_options, common, 2, 2, false, false,
		run_put},
	{"list", "[PREFIX] [--values]", "print the keys that begin with PREFIX, in order",
		list_options, common, 0, 1, false, false, run_list},
	{"wait", "KEY [--since R]", "wait until a key exists, and print its value", wait_options,
		common, 1, 1, false, false, run_wait},
	{"rm", "KEY", "delete a key; exit 1 if it is absent", NULL, common, 1, 1, false, false,
		run_rm},
	{"runs", "", "print the runs in the store and their state", NULL, common, 0, 0, false,
		false, run_runs},
	{"join", "[OPTION...]", "join a run by hand, wait for the others, print export lines",
		member_join_options, group_option_table, 0, 0, false, false, member_join},
	{"leave", "[--code N] [--reason TEXT]",
		"report that this task has finished, and print the code to leave with",
		member_leave_options, group_identity_table, 0, 0, false, false, member_leave},
	{"close", "[--force]", "close an attempt of which no task runs any more",
		member_close_options, group_identity_table, 0, 0, false, false, member_close},
	{"gc", "--older-than D [--dry-run]", "remove runs that have ended, and print their names",
		gc_options, common, 0, 0, false, false, run_gc},
	{"anew", "", "start a run over: forget what it has saved", NULL, common, 0, 0, false, false,
		run_anew},
	{"doctor", "[DIRECTORY] [OPTION...]",
		"check whether a directory or an etcd cluster is fit for a store", doctor_options,
		common, 0, 1, false, false, doctor_command},
	{0},
};

static const struct args_program program = {
	.name = "preempt-store",
	.summary = "Read and change the keys through which the tasks of a job agree.",
	.commands = commands,
};

int main(int argc, char **argv)
{
	return args_main(&program, argc, argv);
}
