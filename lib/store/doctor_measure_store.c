/* SPDX-License-Identifier: MIT */
/* What is measured through the store itself: what was acknowledged against what is there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "store/doctor_inside.h"

/* All in milliseconds, but for rounds. */
#define ALONE_FOR     300
#define CONTEND_FOR   1200
#define NOTICE_ROUNDS 4
#define NOTICE_FOR    2000
/* --quick */
#define QUICK_ALONE   80
#define QUICK_CONTEND 120

static bool load_failed(struct doctor_load *load, const char *why)
{
	load->answer = DOCTOR_FAILED;
	snprintf(load->why, sizeof(load->why), "%s", why);
	return true;
}

/* Each opens it; the first one makes it. On a "no" load->answer is DOCTOR_FAILED. */
static bool open_all(struct examination *examination, enum lock_mode mode, const char *name,
	struct doctor_load *load)
{
	struct doctor_findings *findings = &examination->findings;
	const char *assume = examination->wanted.assume, *why;
	char parameters[64];
	/* What was seen to exclude here, between several, may be used although it is not known. */
	if (!assume && mode == LOCK_FCNTL && findings->clients > 1 &&
		findings->ofd.answer == DOCTOR_YES)
		assume = "shared";
	snprintf(parameters, sizeof(parameters), "lock=%s%s%s", lock_mode_name(mode),
		assume ? "&assume=" : "", assume ? assume : "");
	for (size_t k = 0; k < findings->count && load->answer == DOCTOR_SKIPPED; k++) {
		struct json_object *answer, *request = request_for("open");
		json_put_text(request, "name", name);
		json_put_text(request, "parameters", parameters);
		if (!ask_one(examination, k, request, 10000, &answer))
			return false;
		if (answer_status(answer, &why) != STATUS_OK)
			load_failed(load, why);
		json_object_put(answer);
	}
	return true;
}

static bool alone(struct examination *examination, struct doctor_load *load)
{
	struct json_object *answer, *request = request_for("alone");
	const char *why;
	uint64_t done = 0;
	int64_t took = 0, limit = examination->request->quick ? QUICK_ALONE : ALONE_FOR;
	json_put_signed(request, "ms", limit);
	if (!ask_one(examination, 0, request, limit + 10000, &answer))
		return false;
	if (answer_status(answer, &why) != STATUS_OK)
		load_failed(load, why);
	else if (json_get_unsigned(answer, "done", &done) && json_get_signed(answer, "ms", &took) &&
		 took > 0)
		load->alone = (double)done * 1000 / (double)took;
	json_object_put(answer);
	return true;
}

/* What each was promised: rows and claims. The answers stay for count. */
static bool contend(struct examination *examination, struct doctor_load *load,
	struct json_object *answers[DOCTOR_SIDES_MAX])
{
	struct json_object *request = request_for("contend");
	int64_t limit = examination->request->quick ? QUICK_CONTEND : CONTEND_FOR, fast = 0;
	const char *why;
	json_put_text(request, "tag", "t");
	json_put_signed(request, "ms", limit);
	if (!ask_all(examination, request, limit + 11000, answers))
		return false;
	if (answers_status(examination, answers, &why) != STATUS_OK)
		load_failed(load, why);
	for (size_t k = 0; k < examination->findings.count; k++) {
		uint64_t rows = 0;
		int64_t early = 0;
		(void)json_get_unsigned(answers[k], "rows", &rows);
		(void)json_get_time(answers[k], "fast", &early);
		load->acknowledged += rows;
		fast += early;
		answer_most(answers[k], "longest", &load->longest);
		if (json_get_text(answers[k], "error", &why) && *why &&
			load->answer == DOCTOR_SKIPPED)
			load_failed(load, why);
	}
	load->contended = (double)fast * 2000 / (double)limit;
	return true;
}

/* Each looks for what all were promised; the one that sees least counts. */
static bool count(struct examination *examination, struct doctor_load *load,
	struct json_object *promised[DOCTOR_SIDES_MAX])
{
	struct json_object *answers[DOCTOR_SIDES_MAX], *request = request_for("count");
	struct json_object *rows = json_object_new_array();
	size_t sides = examination->findings.count;
	char *wins[DOCTOR_SIDES_MAX];
	const char *why, *claims;
	struct doctor_load worst_seen = {.present = UINT64_MAX};
	for (size_t k = 0; k < sides; k++) {
		uint64_t promise = 0;
		const char *text = "";
		(void)json_get_unsigned(promised[k], "rows", &promise);
		(void)json_get_text(promised[k], "wins", &text);
		wins[k] = (char *)text;
		json_object_array_add(rows, json_object_new_uint64(promise));
	}
	json_put_text(request, "tag", "t");
	json_object_object_add(request, "rows", rows);
	if (!ask_all(examination, request, 10000, answers))
		return false;
	for (size_t k = 0; k < sides; k++) {
		struct doctor_load seen = {0};
		if (answer_status(answers[k], &why) != STATUS_OK ||
			!json_get_unsigned(answers[k], "present", &seen.present) ||
			!json_get_text(answers[k], "claims", &claims)) {
			if (load->answer == DOCTOR_SKIPPED)
				load_failed(load, why);
			continue;
		}
		doctor_count_claims(wins, sides, claims, &seen);
		if (seen.present < worst_seen.present ||
			seen.several + seen.none > worst_seen.several + worst_seen.none)
			worst_seen = seen;
	}
	answers_release(examination, answers);
	if (worst_seen.present == UINT64_MAX)
		return true;
	load->present = worst_seen.present;
	load->claims = worst_seen.claims;
	load->contested = worst_seen.contested;
	load->several = worst_seen.several;
	load->none = worst_seen.none;
	/* Harm outweighs that something else went wrong, too. */
	if (load->present < load->acknowledged || load->several || load->none)
		load->answer = DOCTOR_NO;
	return true;
}

static bool notice(struct examination *examination)
{
	struct doctor_findings *findings = &examination->findings;
	struct json_object *answers[2];
	size_t who[] = {0, findings->count - 1};
	uint64_t done = 0;
	int64_t mean = 0, longest = 0;
	examination->tell("waiting for changes");
	for (int i = 0; i < 2; i++) {
		struct json_object *request = request_for("notice");
		json_put_bool(request, "ping", i == 0);
		json_put_unsigned(request, "rounds", NOTICE_ROUNDS);
		json_put_signed(request, "ms", NOTICE_FOR);
		bool told = ask_only(examination, who[i], request);
		json_object_put(request);
		if (!told)
			return false;
	}
	for (int i = 0; i < 2; i++) {
		if (!ask_hear(examination, who[i], NOTICE_FOR + 10000, &answers[i]))
			return false;
		if (i == 0) {
			(void)json_get_unsigned(answers[i], "done", &done);
			(void)json_get_signed(answers[i], "mean", &mean);
			(void)json_get_signed(answers[i], "longest", &longest);
		}
		json_object_put(answers[i]);
	}
	if (done) {
		findings->noticed = mean / 2;
		findings->noticed_longest = longest / 2;
	}
	return true;
}

static bool close_all(struct examination *examination)
{
	struct json_object *answers[DOCTOR_SIDES_MAX];
	if (!ask_all(examination, request_for("close"), 0, answers))
		return false;
	answers_release(examination, answers);
	return true;
}

static bool check_database(
	struct examination *examination, const char *name, struct doctor_load *load)
{
	struct json_object *answer, *request = request_for("check");
	const char *found = "";
	json_put_text(request, "name", name);
	if (!ask_one(examination, 0, request, 5000, &answer))
		return false;
	if (json_get_text(answer, "found", &found) && strcmp(found, "ok") &&
		load->answer != DOCTOR_FAILED) {
		load->answer = DOCTOR_NO;
		snprintf(load->why, sizeof(load->why), "%s", found);
	}
	json_object_put(answer);
	return true;
}

bool measure_load(struct examination *examination, enum lock_mode mode, struct doctor_load *load,
	bool with_notice)
{
	char name[32];
	struct json_object *promised[DOCTOR_SIDES_MAX];
	snprintf(name, sizeof(name), "store-%s.db", lock_mode_name(mode));
	*load = (struct doctor_load){.mode = mode};
	examination->tell("storing and counting");
	if (!open_all(examination, mode, name, load))
		return false;
	if (load->answer != DOCTOR_SKIPPED)
		return close_all(examination);
	if (!alone(examination, load) || !contend(examination, load, promised))
		return false;
	bool good = count(examination, load, promised);
	answers_release(examination, promised);
	if (good && with_notice && load->answer == DOCTOR_SKIPPED)
		good = notice(examination);
	if (!good || !close_all(examination) || !check_database(examination, name, load))
		return false;
	if (load->answer == DOCTOR_SKIPPED)
		load->answer = DOCTOR_YES;
	return true;
}

enum status measure_openers(struct examination *examination, struct error *err)
{
	struct doctor_findings *findings = &examination->findings;
	struct json_object *answers[DOCTOR_SIDES_MAX], *request = request_for("opener");
	enum status status = STATUS_OK;
	json_put_text(request, "name", strrchr(examination->database, '/') + 1);
	if (!ask_all(examination, request, 5000, answers))
		return error_set(err, findings->trouble, "%s", findings->trouble_why);
	for (size_t k = 0; k < findings->count && status == STATUS_OK; k++) {
		const char *opener = "";
		if (!json_get_text(answers[k], "opener", &opener) || !*opener)
			continue;
		status = error_set(err, STATUS_TEMPORARY,
			"%s is in use: %s on %s has it open; stop everything that uses it, on all machines",
			examination->database, opener, examination->sides[k].host);
	}
	answers_release(examination, answers);
	return status;
}

bool measure_store(struct examination *examination)
{
	struct doctor_findings *findings = &examination->findings;
	struct json_object *answer, *request = request_for("probe");
	const char *why;
	json_put_text(request, "url", findings->store);
	if (!ask_one(examination, 0, request, 3000, &answer))
		return false;
	enum status status = answer_status(answer, &why);
	/* Busy is no illness of the place. */
	if (status == STATUS_TEMPORARY)
		snprintf(findings->store_busy, sizeof(findings->store_busy), "%s", why);
	else if (status != STATUS_OK && status != STATUS_NO) {
		findings->store_status = status;
		snprintf(findings->store_why, sizeof(findings->store_why), "%s", why);
	}
	json_object_put(answer);
	return true;
}
