/* SPDX-License-Identifier: MIT */
/* The steps of one side, in their order: the same on every side. */
#include "doctor/examine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "doctor/scratch.h"
#include "store/convert.h"
#include "store/lock/lockfile.h"
#include "store/store.h"

/* All in milliseconds. */
#define PROBE_FOR   1000
#define SEARCH_FOR  5000
#define MEASURE_FOR 60000 /* once the nodes have met */
#define FIX_FOR	    25000
#define FIX_WATCH   10000 /* longer than the default period, in which an agent writes a beat */

bool doctor_step(
	struct examination *examination, enum status outcome, int64_t takes, struct error *err)
{
	enum status status = doctor_exchange(&examination->exchange, outcome, takes, err);
	if (status != STATUS_OK)
		doctor_trouble(examination->findings, status, err->text);
	return status == STATUS_OK;
}

/* Show progress to the user; only the first side of this machine does. */
static void tell(const struct examination *examination, const char *what)
{
	const struct doctor_request *request = examination->request;
	if (request->progress && (request->nodes || examination->exchange.index == 0))
		request->progress(what);
}

/* ---- Which directory ---- */

/* The directory of the store of the request. */
static enum status find_store(
	struct examination *examination, char directory[PATH_MAX], struct error *err)
{
	const char *text = examination->request->url;
	struct store_url *url = &examination->url;
	char *database = examination->database;
	struct stat st;
	enum status status = url_parse(text, url, err);
	if (status == STATUS_OK && strcmp(url->scheme, "sqlite"))
		status = error_set(err, STATUS_USAGE,
			"store %s is not a file: there is nothing to examine", text);
	if (status == STATUS_OK)
		status = parameters_read(url, &examination->wanted, err);
	if (status != STATUS_OK)
		return status;
	/* The directory of a store behind a symbolic link is that of the link's target. */
	if (!realpath(url->path, database))
		snprintf(database, PATH_MAX, "%s%s", strchr(url->path, '/') ? "" : "./", url->path);
	if (stat(database, &st) == 0 && S_ISDIR(st.st_mode))
		return error_set(err, STATUS_USAGE,
			"store %s is a directory: name the file of the store in it, or give the directory "
			"without --store",
			database);
	char *parent = file_directory_of(database);
	snprintf(directory, PATH_MAX, "%s", parent);
	free(parent);
	return STATUS_OK;
}

static enum status find_directory(struct examination *examination, struct error *err)
{
	const struct doctor_request *request = examination->request;
	char *directory = examination->findings->directory;
	if (request->url) {
		enum status status = find_store(examination, directory, err);
		if (status != STATUS_OK)
			return status;
	} else {
		snprintf(directory, PATH_MAX, "%s", request->directory);
	}
	if (request->other && examination->exchange.index == 1)
		snprintf(directory, PATH_MAX, "%s", request->other);
	if (!*directory)
		return error_set(err, STATUS_USAGE, "the path of a directory is empty");
	if (strchr(directory, '?'))
		return error_set(err, STATUS_USAGE, "%s: the path of a store cannot contain \"?\"",
			directory);
	return STATUS_OK;
}

/* ---- The existing store ---- */

/* Side 0: read the recorded mode, and try whether the store answers. */
static void read_store(struct examination *examination)
{
	struct doctor_findings *findings = examination->findings;
	struct lockfile file = {.descriptor = -1};
	struct store *store = NULL;
	struct store_entry entry = {0};
	struct error err = {0};
	char path[PATH_MAX + 8];
	snprintf(path, sizeof(path), "%s.lock", examination->database);
	enum status status = lockfile_inspect(&file, path, examination->wanted.shared_group, &err);
	if (status == STATUS_OK)
		examination->self->recorded = file.mode;
	lockfile_close(&file);
	if (status == STATUS_OK || status == STATUS_NO)
		status = store_open(
			&store, findings->store, STORE_READ_ONLY, clock_after(PROBE_FOR), &err);
	if (status == STATUS_OK) {
		store_set_patience(store, PROBE_FOR);
		status = store_get(store, "doctor", &entry, &err);
		store_entry_release(&entry);
		store_close(store);
	}
	/* If the store is refused there, the test in the scratch directory will find the reason. */
	if (status != STATUS_OK && status != STATUS_NO && status != STATUS_USAGE) {
		findings->store_status = status;
		snprintf(findings->store_why, sizeof(findings->store_why), "%s", err.text);
	}
}

/*
 * Find the mode that a store there has or would get. If the sides would choose different modes,
 * take LOCK_LINK, which needs less.
 */
static void find_mode(struct examination *examination)
{
	struct doctor_findings *findings = examination->findings;
	enum lock_mode asked = examination->wanted.mode, mode;
	enum lock_mode recorded = findings->sides[0].recorded;
	struct error err;
	findings->exists = recorded != LOCK_AUTO;
	findings->mode = findings->exists ? recorded : asked;
	findings->mode_from = findings->exists	   ? "recorded in the store"
			      : asked != LOCK_AUTO ? "asked for"
						   : "the default there";
	for (size_t k = 0; k < findings->count; k++) {
		struct filesystem_traits *traits = &findings->traits[k];
		*traits = filesystem_classify(&findings->sides[k].filesystem);
		traits->reach = parameters_reach(&examination->wanted, traits->reach);
		if (asked == LOCK_AUTO && !findings->exists && findings->mode != LOCK_LINK &&
			lock_mode_choose(LOCK_AUTO, traits, &mode, NULL) == STATUS_OK)
			findings->mode = mode;
	}
	if (findings->exists && asked != LOCK_AUTO && asked != recorded &&
		findings->store_status != STATUS_DAMAGED) {
		findings->store_status =
			lock_mode_follow(recorded, asked, &findings->traits[0], &err);
		snprintf(findings->store_why, sizeof(findings->store_why), "%s", err.text);
	}
	findings->vouched = examination->wanted.assume;
	findings->clients = doctor_count_clients(findings->sides, findings->count);
}

/* ---- In order ---- */

static enum status begin(struct examination *examination, const char *name,
	struct doctor_memory *memory, struct error *err)
{
	const struct doctor_request *request = examination->request;
	struct doctor_findings *findings = examination->findings;
	struct doctor_side *self = examination->self;
	tell(examination, "looking at the directory");
	enum status status = find_directory(examination, err);
	if (status != STATUS_OK)
		return status;
	/* The path must leave room for the names of a store's files. */
	if (snprintf(memory->scratch, PATH_MAX, "%s/%s", findings->directory, name) >=
		PATH_MAX - 256)
		return error_set(
			err, STATUS_USAGE, "%.200s...: the path is too long", findings->directory);
	examination->exchange.scratch = xstrdup(memory->scratch);
	memory->named = true;
	if (getrandom(&self->number, sizeof(self->number), 0) != sizeof(self->number))
		return error_set(err, STATUS_TEMPORARY, "no random numbers");
	snprintf(self->terms, sizeof(self->terms),
		"preempt-tools " PREEMPT_VERSION " %zu%s%s%s lock=%s assume=%s", sizeof(*self),
		request->quick ? " --quick" : "", request->fix ? " --fix" : "",
		request->url ? " --store" : "", lock_mode_name(examination->wanted.mode),
		examination->wanted.assume ? examination->wanted.assume : "");
	return doctor_look_at_place(examination, err);
}

static enum status meet(
	struct examination *examination, struct doctor_memory *memory, struct error *err)
{
	const struct doctor_request *request = examination->request;
	struct doctor_exchange *exchange = &examination->exchange;
	enum status status = STATUS_OK;
	if (exchange->index == 0) {
		status = doctor_scratch_make(exchange->scratch, err);
		memory->made = clock_now();
		if (status == STATUS_OK && request->url)
			read_store(examination);
	}
	if (status != STATUS_OK)
		return status;
	if (request->nodes)
		tell(examination, "waiting for the other nodes");
	status = doctor_meet(exchange, err);
	if (status == STATUS_NO)
		return error_set(err, request->other ? STATUS_USAGE : STATUS_TEMPORARY,
			"%.300s is not the same directory: what is made in the other does not appear in "
			"it; give the same one through its other mount",
			examination->findings->directory);
	const struct doctor_side *sides = exchange->sides;
	for (size_t k = 1; k < exchange->count && status == STATUS_OK; k++)
		if (strcmp(sides[k].terms, sides[0].terms))
			status = error_set(err, STATUS_USAGE,
				"%s runs %s, and %s runs %s: start the same command on all nodes",
				sides[0].host, sides[0].terms, sides[k].host, sides[k].terms);
	return status;
}

/*
 * Each side writes its record after it has read all records of the step before. So it has read its
 * clock between the time at which we wrote our record of the step before, and now.
 */
static bool compare_clocks(struct examination *examination)
{
	struct doctor_findings *findings = examination->findings;
	struct error err;
	int64_t began = examination->self->utc;
	if (!doctor_step(examination, STATUS_OK, 0, &err))
		return false;
	int64_t error = (clock_utc() - began) / 2 + 1;
	for (size_t k = 0; k < findings->count; k++) {
		bool ours = k == examination->exchange.index;
		findings->clock_error[k] = ours ? 0 : error;
		findings->clock_ahead[k] = ours ? 0 : findings->sides[k].utc - began - error;
	}
	return true;
}

static bool measure(struct examination *examination)
{
	struct doctor_findings *findings = examination->findings;
	const enum lock_mode modes[] = {findings->mode, doctor_other_mode(findings->mode)};
	tell(examination, "trying locks");
	for (size_t i = 0; i < 2; i++)
		if (!doctor_measure_lock(examination, modes[i]))
			return false;
	tell(examination, "storing and counting");
	for (size_t i = 0; i < 2; i++) {
		/* --quick: test the other mode only if it is wanted, or the first one is unsafe. */
		bool needed = i == 0 || !findings->quick || modes[1] == examination->wanted.mode ||
			      findings->modes[findings->mode].load != DOCTOR_YES;
		if (needed && findings->modes[modes[i]].lock == DOCTOR_YES &&
			!doctor_measure_load(examination, modes[i]))
			return false;
	}
	return true;
}

/* ---- --fix ---- */

/* Each side looks for a process of its machine that has the store open through its mount. */
static bool find_openers(struct examination *examination)
{
	struct doctor_side *self = examination->self;
	struct error err;
	char path[2 * PATH_MAX];
	snprintf(path, sizeof(path), "%s%s", examination->findings->directory,
		strrchr(examination->database, '/'));
	convert_find_opener(path, self->opener, sizeof(self->opener));
	return doctor_step(examination, STATUS_OK, SEARCH_FOR, &err);
}

static enum status convert(
	struct examination *examination, bool finish, enum lock_mode *mode, struct error *err)
{
	const struct doctor_findings *findings = examination->findings;
	for (size_t k = 0; k < findings->count; k++)
		if (*findings->sides[k].opener)
			return error_set(err, STATUS_TEMPORARY,
				"%s is in use: %s on %s has it open; stop everything that uses it, on all "
				"machines",
				examination->database, findings->sides[k].opener,
				findings->sides[k].host);
	tell(examination, "watching the store for 10 seconds, to see that it is not used");
	return convert_mode(examination->database, &examination->wanted, finish ? LOCK_AUTO : *mode,
		FIX_WATCH, mode, err);
}

/*
 * Side 0: finish a change that was interrupted; or record the other mode if it is safe, and the URL
 * asks for it or the store's mode is unsafe.
 */
static void fix(struct examination *examination)
{
	struct doctor_findings *findings = examination->findings;
	enum lock_mode mode = doctor_other_mode(findings->mode);
	struct doctor_verdict verdict;
	struct error err = {0};
	doctor_conclude(findings, &verdict);
	bool finish = findings->store_status == STATUS_DAMAGED;
	bool wrong = findings->store_status == STATUS_USAGE || !verdict.safe[findings->mode];
	snprintf(findings->fixed, sizeof(findings->fixed), "nothing%s",
		findings->exists ? "" : ": there is no store yet");
	if (!findings->exists || (!finish && !(wrong && verdict.safe[mode])))
		return;
	enum status status = convert(examination, finish, &mode, &err);
	if (status == STATUS_NO) /* damaged, and not by an interrupted --fix */
		return;
	if (status != STATUS_OK) {
		findings->fix_status = status;
		snprintf(findings->fix_why, sizeof(findings->fix_why), "%s", err.text);
		return;
	}
	snprintf(findings->fixed, sizeof(findings->fixed), "%s lock=%s",
		finish ? "finished what was interrupted: recorded" : "recorded",
		lock_mode_name(mode));
	findings->mode = mode;
	findings->store_status = STATUS_OK;
}

/* Side 0 sends the verdict to the others. */
static bool publish_verdict(struct examination *examination)
{
	struct doctor_side *self = examination->self;
	struct doctor_verdict verdict;
	struct text text = {0};
	struct error err;
	if (examination->exchange.index == 0) {
		doctor_conclude(examination->findings, &verdict);
		doctor_show_verdict(&verdict, &text);
		self->verdict = verdict.status;
		snprintf(self->text, sizeof(self->text), "%s", text_string(&text));
		text_release(&text);
	}
	return doctor_step(examination, STATUS_OK, examination->request->fix ? FIX_FOR : 0, &err);
}

/* The whole examination. False: findings.trouble or findings.unmounted says why not. */
static bool examine(struct examination *examination, const char *name, struct doctor_memory *memory)
{
	const struct doctor_request *request = examination->request;
	struct doctor_findings *findings = examination->findings;
	struct error err = {0};
	enum status status = begin(examination, name, memory, &err);
	if (*findings->unmounted)
		return false;
	if (status == STATUS_OK)
		status = meet(examination, memory, &err);
	if (status != STATUS_OK) {
		doctor_trouble(findings, status, err.text);
		return false;
	}
	findings->count = examination->exchange.count;
	if (request->nodes)
		examination->exchange.deadline = clock_after(MEASURE_FOR);
	find_mode(examination);
	if (!compare_clocks(examination) || !measure(examination) ||
		(request->fix && !find_openers(examination)))
		return false;
	if (request->fix && examination->exchange.index == 0)
		fix(examination);
	return publish_verdict(examination);
}

void doctor_examine(const struct doctor_request *request, size_t index, const char *name,
	struct doctor_memory *memory)
{
	struct doctor_memory *ours = &memory[request->nodes ? 0 : index];
	struct examination examination = {.request = request,
		.findings = &ours->findings,
		.exchange = {.made = request->nodes ? NULL : &memory->made,
			.index = index,
			.count = request->nodes ? request->nodes : 2,
			.deadline = clock_after(request->timeout),
			.sides = ours->sides},
		.self = &ours->sides[index],
		.wanted = {.mode = LOCK_AUTO}};
	ours->done = examine(&examination, name, ours);
	doctor_exchange_end(&examination.exchange);
	url_release(&examination.url);
	free(examination.exchange.scratch);
}
