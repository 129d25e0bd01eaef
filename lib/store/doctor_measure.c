/* SPDX-License-Identifier: MIT */
/* What is measured without the store: the place itself, locks, names, staleness. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/json.h"
#include "store/doctor_inside.h"
#include "store/doctor_place.h"

/* All in milliseconds, but for rounds. */
#define RACE_ROUNDS  80
#define RACE_FOR     500
#define STALE_FOR    1500
#define FREED_WITHIN 2000
/* --quick */
#define QUICK_ROUNDS 10
#define QUICK_RACE   60

/* ---- Looking ---- */

static bool look_at_all(struct examination *examination, size_t *looked)
{
	struct doctor_findings *findings = &examination->findings;
	struct json_object *answers[DOCTOR_SIDES_MAX];
	const char *assume = examination->wanted.assume, *why;
	struct json_object *request = request_for("look");
	json_put_bool(request, "shared_group", examination->wanted.shared_group);
	examination->tell("looking at the directory");
	/* One after the other, so that the time of each answer is known. */
	for (size_t k = 0; k < findings->count; k++) {
		struct doctor_side *side = &examination->sides[k];
		struct doctor_peer *peer = &examination->peers[k];
		int64_t utc;
		if (!ask_one(examination, k, json_object_get(request), 0, &answers[k])) {
			json_object_put(request);
			return false;
		}
		int64_t took = clock_now() - peer->asked;
		enum status status = answer_status(answers[k], &why);
		doctor_place_read(answers[k], side, &utc);
		if (status != STATUS_OK)
			examination_trouble(examination, status, why);
		json_object_put(answers[k]);
		if (status != STATUS_OK) {
			json_object_put(request);
			return false;
		}
		*looked = k + 1;
		side->clock_error = took / 2 + 1;
		side->clock_ahead = utc - peer->asked_utc - took / 2;
		side->traits = filesystem_classify(&side->filesystem);
		side->traits.reach = parameters_reach(&examination->wanted, side->traits.reach);
		/* A store that was named is to be used as it is; else it is only a hint. */
		if (!side->trusted && findings->store)
			return examination_trouble(examination, STATUS_PERMISSION, side->why_not);
	}
	json_object_put(request);
	findings->vouched = assume && !strcmp(assume, "shared");
	findings->clients = doctor_count_clients(examination->sides, findings->count);
	return true;
}

bool measure_look(struct examination *examination)
{
	size_t looked = 0;
	bool good = look_at_all(examination, &looked);
	/* Only of those is there anything to say. */
	examination->findings.count = looked;
	return good;
}

/* ---- The scratch directory, and whether it is one ---- */

static bool pass_note(struct examination *examination, size_t from, size_t to, bool *arrived)
{
	char name[32], note[33];
	const char *got, *why;
	unsigned char random[16];
	struct json_object *answer;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return examination_trouble(examination, STATUS_TEMPORARY, "no random numbers");
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(note + 2 * i, 3, "%02x", random[i]);
	snprintf(name, sizeof(name), "note.%zu.%zu", from, to);
	struct json_object *request = request_for("write");
	json_put_text(request, "name", name);
	json_put_text(request, "text", note);
	if (!ask_one(examination, from, request, 0, &answer))
		return false;
	enum status status = answer_status(answer, &why);
	if (status != STATUS_OK)
		examination_trouble(examination, status, why);
	json_object_put(answer);
	if (status != STATUS_OK)
		return false;
	request = request_for("read");
	json_put_text(request, "name", name);
	if (!ask_one(examination, to, request, 3000, &answer))
		return false;
	*arrived = json_get_text(answer, "text", &got) && !strcmp(got, note);
	json_object_put(answer);
	return true;
}

bool measure_begin(struct examination *examination)
{
	struct doctor_findings *findings = &examination->findings;
	char text[768];
	const char *why;
	for (size_t k = 0; k < findings->count; k++) {
		struct json_object *answer, *request = request_for("begin");
		json_put_text(request, "scratch", examination->scratch);
		json_put_unsigned(request, "index", k);
		json_put_unsigned(request, "count", findings->count);
		if (!ask_one(examination, k, request, 3000, &answer))
			return false;
		enum status status = answer_status(answer, &why);
		snprintf(text, sizeof(text), "%s", why);
		json_object_put(answer);
		if (status == STATUS_OK)
			continue;
		if (status == STATUS_NO && findings->form == DOCTOR_TWO) {
			snprintf(text, sizeof(text),
				"%.200s and %.200s are not the same directory: what is made in the "
				"first does not appear in the second; give the same one through its "
				"other mount",
				examination->directory, examination->request->other);
			status = STATUS_USAGE;
		} else if (status == STATUS_NO) {
			status = STATUS_TEMPORARY;
		}
		return examination_trouble(examination, status, text);
	}
	for (size_t k = 1; k < findings->count; k++) {
		bool there = false, back = false;
		if (!pass_note(examination, 0, k, &there) || !pass_note(examination, k, 0, &back))
			return false;
		if (there && back)
			continue;
		snprintf(text, sizeof(text),
			"%.200s on %s is not the same directory, or does not show what others write",
			examination->sides[k].path, examination->sides[k].host);
		return examination_trouble(examination,
			findings->form == DOCTOR_TWO ? STATUS_USAGE : STATUS_TEMPORARY, text);
	}
	return true;
}

/* ---- Locks ---- */

static struct json_object *lock_request(const char *what, const char *kind)
{
	char name[32];
	struct json_object *request = request_for(what);
	snprintf(name, sizeof(name), "lock.%s", kind);
	json_put_text(request, "kind", kind);
	json_put_text(request, "name", name);
	return request;
}

/* A lock of kind is held or tried by k: whether it was got. false: go on no more. */
static bool lock(struct examination *examination, size_t k, const char *what, const char *kind,
	struct doctor_check *check, bool *got)
{
	const char *why;
	struct json_object *answer;
	*got = false;
	if (!ask_one(examination, k, lock_request(what, kind), 0, &answer))
		return false;
	enum status status = answer_status(answer, &why);
	if (status != STATUS_OK) {
		check->answer = DOCTOR_FAILED;
		snprintf(check->why, sizeof(check->why), "%s", why);
	}
	(void)json_get_bool(answer, "got", got);
	json_object_put(answer);
	return true;
}

/* While holder holds it nobody else gets it, and afterwards everybody does. */
static bool lock_round(struct examination *examination, size_t holder, const char *kind,
	struct doctor_check *check)
{
	bool got, ignored;
	if (!lock(examination, holder, "hold", kind, check, &got))
		return false;
	if (!got && check->answer == DOCTOR_SKIPPED) {
		check->answer = DOCTOR_FAILED;
		snprintf(check->why, sizeof(check->why), "nobody holds it, and it is not granted");
	}
	for (size_t k = 0; k < examination->findings.count && check->answer == DOCTOR_SKIPPED;
		k++) {
		if (k == holder)
			continue;
		if (!lock(examination, k, "try", kind, check, &got))
			return false;
		if (!got)
			continue;
		check->answer = DOCTOR_NO;
		snprintf(check->why, sizeof(check->why),
			"%.60s on %.40s got it while %.60s on %.40s held it",
			examination->sides[k].path, examination->sides[k].host,
			examination->sides[holder].path, examination->sides[holder].host);
	}
	if (!lock(examination, holder, "drop", kind, check, &ignored))
		return false;
	int64_t deadline = clock_after(FREED_WITHIN);
	for (size_t k = 0; k < examination->findings.count && check->answer == DOCTOR_SKIPPED;
		k++) {
		do {
			if (!lock(examination, k, "try", kind, check, &got))
				return false;
		} while (!got && check->answer == DOCTOR_SKIPPED && clock_now() < deadline);
		if (got || check->answer != DOCTOR_SKIPPED)
			continue;
		check->answer = DOCTOR_FAILED;
		snprintf(check->why, sizeof(check->why), "it is not free %d s after its release",
			FREED_WITHIN / 1000);
	}
	return true;
}

static bool measure_lock(
	struct examination *examination, const char *kind, struct doctor_check *check)
{
	struct doctor_check first = {0}, last = {0};
	if (!lock_round(examination, 0, kind, &first) ||
		!lock_round(examination, examination->findings.count - 1, kind, &last))
		return false;
	*check = first.answer != DOCTOR_SKIPPED ? first : last;
	if (check->answer == DOCTOR_SKIPPED)
		check->answer = DOCTOR_YES;
	return true;
}

bool measure_locks(struct examination *examination)
{
	examination->tell("trying locks");
	return measure_lock(examination, "ofd", &examination->findings.ofd) &&
	       measure_lock(examination, "posix", &examination->findings.posix);
}

/* ---- Names ---- */

static bool measure_race(
	struct examination *examination, const char *kind, struct doctor_check *check)
{
	struct json_object *answers[DOCTOR_SIDES_MAX], *request = request_for("race");
	char *wins[DOCTOR_SIDES_MAX];
	const char *why;
	bool quick = examination->request->quick;
	int64_t limit = quick ? QUICK_RACE : RACE_FOR;
	json_put_text(request, "kind", kind);
	/* Directories cost more. */
	uint64_t rounds = quick ? QUICK_ROUNDS : RACE_ROUNDS;
	json_put_unsigned(request, "rounds", strcmp(kind, "take") ? rounds : rounds / 2);
	json_put_signed(request, "ms", limit);
	if (!ask_all(examination, request, limit + 1000, answers))
		return false;
	enum status status = answers_status(examination, answers, &why);
	for (size_t k = 0; k < examination->findings.count; k++) {
		const char *text = "";
		(void)json_get_text(answers[k], "wins", &text);
		wins[k] = (char *)text;
	}
	if (status != STATUS_OK) {
		check->answer = DOCTOR_FAILED;
		snprintf(check->why, sizeof(check->why), "%s", why);
	} else {
		doctor_count_wins(wins, examination->findings.count, check);
	}
	answers_release(examination, answers);
	return true;
}

bool measure_names(struct examination *examination)
{
	struct doctor_findings *findings = &examination->findings;
	examination->tell("racing for names");
	return measure_race(examination, "link", &findings->link) &&
	       measure_race(examination, "create", &findings->create) &&
	       measure_race(examination, "rename", &findings->rename) &&
	       measure_race(examination, "take", &findings->take);
}

/* ---- Staleness ---- */

bool measure_stale(struct examination *examination)
{
	struct doctor_stale *stale = &examination->findings.stale;
	struct json_object *answers[DOCTOR_SIDES_MAX], *request = request_for("stale");
	const char *why;
	examination->tell("reading what others write");
	json_put_signed(request, "ms", STALE_FOR);
	if (!ask_all(examination, request, STALE_FOR + 1000, answers))
		return false;
	if (answers_status(examination, answers, &why) == STATUS_OK) {
		stale->measured = true;
		stale->looked = STALE_FOR;
		for (size_t k = 0; k < examination->findings.count; k++) {
			answer_most(answers[k], "held", &stale->held);
			answer_most(answers[k], "reopened", &stale->reopened);
			answer_most(answers[k], "dropped", &stale->dropped);
		}
	}
	answers_release(examination, answers);
	return true;
}
