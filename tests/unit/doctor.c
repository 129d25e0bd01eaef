/* SPDX-License-Identifier: MIT */
/* What follows from what the doctor found: the table of cases. */
#include "doctor/findings.h"

#include <stdlib.h>

#include "base/json.h"
#include "unit.h"

#define LOCAL	FILESYSTEM_LOCAL
#define SHARED	FILESYSTEM_SHARED
#define NODE	FILESYSTEM_NODE
#define UNKNOWN FILESYSTEM_UNKNOWN
#define FCNTL	LOCK_FCNTL
#define LINK	LOCK_LINK
#define YES	DOCTOR_YES
#define NO	DOCTOR_NO
#define FAILED	DOCTOR_FAILED
#define SKIP	DOCTOR_SKIPPED
#define SAFE	STATUS_OK
#define BAD	STATUS_NO
#define BUSY	STATUS_TEMPORARY
#define BARRED	STATUS_PERMISSION

/* One store that is looked for on one or two clients. */
struct example {
	const char *name;
	enum filesystem_reach reach;
	size_t clients;
	enum lock_mode mode;
	bool exists, refused; /* refused: the store itself says no to this mode there */
	/*
	 * Whether the locks of fcntl and of link exclude, transactions in this mode and in the
	 * other: Y, N, F (it failed), - (not tried).
	 */
	const char *answers;
	enum status trouble;
	enum status wanted;
	const char *change; /* is in what is to be done; "": nothing is; NULL: whatever */
	const char *scope;  /* is in what was not shown; likewise */
};

static const struct example examples[] = {
	/* name, reach, clients, mode, exists, refused, answers, trouble, wanted, change, scope */
	{"local disk", LOCAL, 1, FCNTL, 0, 0, "YYY-", 0, SAFE, "", ""},
	{"local disk, mode link", LOCAL, 1, LINK, 1, 0, "YYY-", 0, SAFE, "", ""},
	{"local disk without hard links", LOCAL, 1, FCNTL, 0, 0, "YFY-", 0, SAFE, "", ""},
	{"known to reach, one machine", SHARED, 1, FCNTL, 0, 0, "YYY-", 0, SAFE, "",
		"not measured"},
	{"known to reach, shown on two", SHARED, 2, FCNTL, 0, 0, "YYY-", 0, SAFE, "",
		"mounts of one machine"},
	{"thought to reach, and does not", SHARED, 2, FCNTL, 0, 0, "NY-Y", 0, BAD, "?lock=link",
		NULL},
	{"the same with a store", SHARED, 2, FCNTL, 1, 0, "NY-Y", 0, BAD, "doctor --fix --store",
		NULL},
	{"neither locks nor names", SHARED, 2, FCNTL, 0, 0, "NN--", 0, BAD, "NFSv4", NULL},
	{"neither locks nor links", SHARED, 2, FCNTL, 0, 0, "NF--", 0, BAD, "NFSv4", NULL},
	{"link works but was not tried through the store", SHARED, 2, FCNTL, 0, 0, "NY--", 0, BAD,
		"NFSv4", NULL},
	{"no lock service", SHARED, 1, FCNTL, 0, 0, "FY-Y", 0, BAD, "?lock=link", NULL},
	{"locks of one machine, fcntl asked for", NODE, 1, FCNTL, 0, 1, "YYFY", 0, BAD,
		"?lock=link", NULL},
	{"a store of fcntl on such a mount", NODE, 1, FCNTL, 1, 1, "YYFY", 0, BAD, "doctor --fix",
		NULL},
	{"locks of one machine, link", NODE, 1, LINK, 0, 0, "YYY-", 0, SAFE, "", "not shown"},
	{"locks of one machine, link, on two", NODE, 2, LINK, 0, 0, "NYY-", 0, SAFE, "",
		"mounts of one machine"},
	{"link, but two win", NODE, 2, LINK, 0, 0, "NN--", 0, BAD, "NFSv4", NULL},
	{"link, but no hard links", NODE, 1, LINK, 0, 0, "YF--", 0, BAD, "NFSv4", NULL},
	{"link loses rows", NODE, 2, LINK, 0, 0, "NYN-", 0, BAD, "NFSv4", NULL},
	{"fcntl loses rows although its locks exclude", SHARED, 2, FCNTL, 0, 0, "YYNY", 0, BAD,
		"?lock=link", NULL},
	{"unknown, fcntl, one machine", UNKNOWN, 1, FCNTL, 0, 1, "YYFY", 0, BUSY, "--nodes 2",
		NULL},
	{"unknown, fcntl, one machine, no links", UNKNOWN, 1, FCNTL, 0, 1, "YFF-", 0, BUSY,
		"--other", NULL},
	{"unknown, fcntl, two exclude", UNKNOWN, 2, FCNTL, 0, 1, "YYY-", 0, BAD, "?assume=shared",
		NULL},
	{"unknown, fcntl, two do not exclude", UNKNOWN, 2, FCNTL, 0, 1, "NYFY", 0, BAD,
		"?lock=link", NULL},
	{"unknown, link", UNKNOWN, 1, LINK, 0, 0, "YYY-", 0, SAFE, "", "not shown"},
	{"the store answers errors", SHARED, 2, FCNTL, 0, 0, "YYF-", 0, BUSY, NULL, NULL},
	{"nothing was tried", SHARED, 2, FCNTL, 0, 0, "YY--", 0, BUSY, NULL, NULL},
	{"no space", LOCAL, 0, FCNTL, 0, 0, "----", BUSY, BUSY, NULL, NULL},
	{"read-only", LOCAL, 0, FCNTL, 0, 0, "----", BARRED, BARRED, NULL, NULL},
	{"a node dies before anything was lost", SHARED, 2, FCNTL, 0, 0, "Y---", BUSY, BUSY, NULL,
		NULL},
	{"a node dies after locks have failed", SHARED, 2, FCNTL, 0, 0, "N---", BUSY, BAD, NULL,
		NULL},
};

static struct doctor_side sides[2];

static enum doctor_answer answer_of(char letter)
{
	return letter == 'Y' ? YES : letter == 'N' ? NO : letter == 'F' ? FAILED : SKIP;
}

static void fill_load(struct doctor_mode *mode, enum doctor_answer answer)
{
	mode->load = answer;
	if (answer == YES || answer == NO) {
		mode->acknowledged = 400;
		mode->present = answer == YES ? 400 : 212;
		mode->claims = 100;
		mode->contested = 80;
	}
}

static struct doctor_findings findings_of(const struct example *example)
{
	struct doctor_findings findings = {
		.form = example->clients > 1 ? DOCTOR_TWO : DOCTOR_ONE,
		.directory = "/shared",
		.store = example->exists ? "/shared/run.db" : NULL,
		.sides = sides,
		.count = example->clients ? 2 : 0,
		.clients = example->clients,
		.exists = example->exists,
		.mode = example->mode,
		.mode_from = "the default there",
		.modes = {[FCNTL] = {.lock = answer_of(example->answers[0])},
			[LINK] = {.lock = answer_of(example->answers[1])}},
		.noticed = -1,
		.trouble = example->trouble,
	};
	struct doctor_mode *mode = &findings.modes[example->mode];
	if (example->trouble)
		strcpy(findings.trouble_why, "it went wrong");
	fill_load(mode, answer_of(example->answers[2]));
	fill_load(
		&findings.modes[doctor_other_mode(example->mode)], answer_of(example->answers[3]));
	if (example->refused) {
		mode->load_status = STATUS_USAGE;
		strcpy(mode->load_why, "two could both win");
	}
	for (size_t i = 0; i < 2; i++) {
		sides[i] = (struct doctor_side){.host = "here",
			.boot = "one",
			.path = "/shared",
			.device = example->clients > 1 ? i : 0};
		findings.traits[i] = (struct filesystem_traits){
			.reach = example->reach, .name = "testfs", .why = "it is so"};
	}
	return findings;
}

static bool says(const char *text, const char *wanted)
{
	return !wanted || (*wanted ? strstr(text, wanted) != NULL : !*text);
}

static void check_example(const struct example *example)
{
	struct doctor_verdict verdict;
	struct doctor_findings findings = findings_of(example);
	char both[700];
	doctor_conclude(&findings, &verdict);
	snprintf(both, sizeof(both), "%s%s", verdict.change[0], verdict.change[1]);
	CHECK(verdict.status == example->wanted && says(both, example->change) &&
			says(verdict.scope, example->scope) && *verdict.reason,
		"%s: %s", example->name, doctor_word(verdict.status));
	if (verdict.status != example->wanted || !says(both, example->change) ||
		!says(verdict.scope, example->scope))
		printf("# %d %s: %s\n# change: %s\n# scope: %s\n", verdict.status,
			doctor_word(verdict.status), verdict.reason, both, verdict.scope);
}

/* Side 1 has won some claims, and sees so many rows and claims, or could not look. */
static struct doctor_mode sum(uint64_t present, uint64_t taken, int result)
{
	struct doctor_mode mode = {0};
	struct doctor_findings findings = {.sides = sides, .count = 2};
	sides[0] = (struct doctor_side){
		.rows = 10, .won = 3, .lost = 1, .longest = 7, .present = 30, .taken = 5};
	sides[1] = (struct doctor_side){.rows = 20,
		.won = 2,
		.lost = 3,
		.longest = 9,
		.present = present,
		.taken = taken,
		.result = result};
	doctor_sum_load(&findings, &mode);
	return mode;
}

int main(void)
{
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		check_example(&examples[i]);

	TEST("mounts of their own are clients, two processes on one mount are not")
	{
		struct doctor_side some[] = {{.boot = "a", .device = 1}, {.boot = "a", .device = 1},
			{.boot = "a", .device = 2}, {.boot = "b", .device = 1},
			{.boot = "b", .device = 1}};
		CHECK_EQ(doctor_count_clients(some, 1), 1);
		CHECK_EQ(doctor_count_clients(some, 2), 1);
		CHECK_EQ(doctor_count_clients(some, 3), 2);
		CHECK_EQ(doctor_count_clients(some, 5), 3);
	}
	TEST("a lost row and a claim with two winners are found, by the side that sees least")
	{
		struct doctor_mode mode = sum(30, 5, STATUS_OK);
		CHECK_EQ(mode.load, SKIP);
		CHECK(mode.acknowledged == 30 && mode.present == 30 && mode.doubled == 0);
		CHECK(mode.claims == 5 && mode.contested == 4 && mode.longest == 9);
		mode = sum(29, 5, STATUS_OK);
		CHECK(mode.load == NO && mode.present == 29);
		mode = sum(30, 4, STATUS_OK);
		CHECK(mode.load == NO && mode.doubled == 1);
		/* One that could not look counts nothing. */
		mode = sum(0, 0, STATUS_TEMPORARY);
		CHECK(mode.load == SKIP && mode.present == 30);
	}
	TEST("only who asks about several machines is told about them")
	{
		static const struct {
			size_t example;
			enum doctor_form form;
			bool shared;
			enum status status;
			const char *says;
		} cases[] = {
			{0, DOCTOR_ONE, false, STATUS_OK, "the processes of this machine"},
			{0, DOCTOR_ONE, true, STATUS_NO, "this machine only"},
			{3, DOCTOR_ONE, false, STATUS_OK, "the processes of this machine"},
			{3, DOCTOR_ONE, true, STATUS_OK, "for several machines"},
			{4, DOCTOR_TWO, false, STATUS_OK, "lock=fcntl"},
			{4, DOCTOR_NODES, false, STATUS_OK, "for several machines"},
		};
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			struct doctor_verdict verdict;
			struct doctor_findings findings = findings_of(&examples[cases[i].example]);
			bool several = strstr(cases[i].says, "several");
			findings.form = cases[i].form;
			findings.shared = cases[i].shared;
			doctor_conclude(&findings, &verdict);
			CHECK_EQ(verdict.status, cases[i].status);
			CHECK(strstr(verdict.reason, cases[i].says));
			CHECK(!strstr(verdict.reason, "for several") == !several);
		}
	}
	TEST("a filesystem that is not mounted is unsafe, whatever else was seen")
	{
		struct doctor_verdict verdict;
		struct doctor_findings findings = findings_of(&examples[0]);
		strcpy(findings.unmounted, "/shared is not mounted");
		doctor_conclude(&findings, &verdict);
		CHECK_EQ(verdict.status, STATUS_NO);
		CHECK(strstr(verdict.reason, "not mounted"));
	}
	TEST("as text and JSON: a warning; no control characters of outside; one object on a line")
	{
		struct text text = {0}, json = {0};
		struct doctor_verdict verdict;
		struct doctor_findings findings = findings_of(&examples[4]);
		strcpy(sides[0].path, "/sh\033[31mared");
		findings.traits[1].warning = "it is mounted soft";
		doctor_conclude(&findings, &verdict);
		doctor_show_text(&findings, &verdict, &text);
		doctor_show_json(&findings, &verdict, &json);
		CHECK(!strchr(text_string(&text), '\033'));
		CHECK(strstr(text_string(&text), ": it is mounted soft\n"));
		CHECK(strstr(text_string(&text), "\nverdict         safe: lock=fcntl\n"));
		CHECK_EQ(strchr(text_string(&json), '\n') - text_string(&json),
			(long)json.length - 1);
		struct json_object *object = json_parse(json.data, json.length - 1);
		const char *word = "";
		CHECK(object && json_get_text(object, "verdict", &word));
		CHECK_TEXT(word, "safe");
		json_object_put(object);
		text_release(&text);
		text_release(&json);
	}
	return unit_end();
}
