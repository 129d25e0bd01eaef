/* SPDX-License-Identifier: MIT */
/* Where a start of a run goes on, by what the run has saved and by what is in its directories. */
#include "run/history.h"

#include "unit.h"

static const struct {
	const char *title;
	struct saved saved;
	enum status search; /* of all directories that are named */
	uint64_t found;
	enum saved_start start;
} rows[] = {
	/* No store that could be asked: the directories alone decide. */
	{"not asked, a checkpoint", {.kind = SAVED_UNKNOWN}, STATUS_OK, 7, START_FOUND},
	{"not asked, none, or no directory", {.kind = SAVED_UNKNOWN}, STATUS_NO, 0, START_FRESH},
	{"not asked, no parent", {.kind = SAVED_UNKNOWN}, STATUS_TEMPORARY, 0, START_UNASKED},
	/* Never saved, or started anew. */
	{"never, a checkpoint", {.kind = SAVED_NEVER}, STATUS_OK, 7, START_FOUND},
	{"never, none, or no directory", {.kind = SAVED_NEVER}, STATUS_NO, 0, START_FRESH},
	{"never, no parent", {.kind = SAVED_NEVER}, STATUS_TEMPORARY, 0, START_UNASKED},
	{"never, a damaged listing", {.kind = SAVED_NEVER}, STATUS_DAMAGED, 0, START_UNASKED},
	/* Saved. */
	{"saved, that one", {.kind = SAVED_STEP, .step = 40}, STATUS_OK, 40, START_FOUND},
	{"saved, a newer one", {.kind = SAVED_STEP, .step = 40}, STATUS_OK, 50, START_FOUND},
	{"saved, an older one", {.kind = SAVED_STEP, .step = 40}, STATUS_OK, 39, START_OLDER},
	{"saved, one of step 0", {.kind = SAVED_STEP, .step = 40}, STATUS_OK, 0, START_OLDER},
	{"saved step 0, that one", {.kind = SAVED_STEP}, STATUS_OK, 0, START_FOUND},
	{"saved, none, or no directory", {.kind = SAVED_STEP, .step = 40}, STATUS_NO, 0,
		START_REFUSED},
	{"saved step 0, none", {.kind = SAVED_STEP}, STATUS_NO, 0, START_REFUSED},
	{"saved, no parent", {.kind = SAVED_STEP, .step = 40}, STATUS_TEMPORARY, 0, START_UNASKED},
};

int main(void)
{
	struct error err = {0};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK(saved_decide(&rows[i].saved,
			      &(struct saved_search){rows[i].search, rows[i].found, "", NULL}) ==
				rows[i].start,
			" %s", rows[i].title);

	TEST("the refusal names step, attempt, directory and the way out")
	{
		const struct saved saved = {
			SAVED_STEP, .step = 40, .attempt = 3, .where = "/shared/out", .host = "n1"};
		CHECK(saved_judge(&saved, "train",
			      &(struct saved_search){STATUS_NO, 0, "outt:hf", NULL},
			      &err) == STATUS_TEMPORARY);
		CHECK(strstr(err.text, "step 40 in attempt 3, in /shared/out (host n1)"));
		CHECK(strstr(err.text, "no complete checkpoint in outt:hf"));
		CHECK(strstr(err.text, "--anew") && strstr(err.text, "anew --run train"));
	}
	TEST("what the search could not ask stays its own answer")
	{
		const struct saved saved = {SAVED_STEP, .step = 40};
		CHECK(saved_judge(&saved, "train",
			      &(struct saved_search){STATUS_PERMISSION, 0, "out", NULL},
			      &err) == STATUS_PERMISSION);
	}
	return unit_end();
}
