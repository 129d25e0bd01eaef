/* SPDX-License-Identifier: MIT */
/* What follows from what the doctor found: the table of cases. */
#include "doctor/findings.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "unit.h"

#define ASKED  "/shared/run.db?assume=shared"
#define ABSENT STATUS_NO

/* What two sides have found, on one client or two. */
struct example {
	const char *name;
	struct doctor_request request;
	uint64_t clients; /* 0: the sides have not met */
	bool local;
	enum status store; /* of asking the store of the request */
	enum status trial; /* of the calls to the trial store */
	int present;	   /* of 30 acknowledged rows; -1: not counted */
	uint64_t several;
	enum status trouble;
	enum status wanted;
	const char *reason; /* is in the reason */
	const char *change; /* is in what is to be done; "": nothing is; NULL: whatever */
	const char *scope;  /* is in what was not shown; likewise */
};

static const struct example examples[] = {
	{"a local disk", {0}, 1, 1, ABSENT, 0, 30, 0, 0, 0, "the processes of this machine", "",
		""},
	{"a local disk where a shared one should be", {.shared = true}, 1, 1, ABSENT, 0, 30, 0, 0,
		STATUS_NO, "this machine only", "mount it", ""},
	{"one machine of several", {0}, 1, 0, ABSENT, 0, 30, 0, 0, 0,
		"the processes of this machine", "", "one machine only"},
	{"one machine, to be used by several", {.shared = true}, 1, 0, 0, 0, 30, 0, 0, 0,
		"for several machines", "", "one machine only"},
	{"two mounts", {.other = "/b"}, 2, 0, ABSENT, 0, 30, 0, 0, 0, "lock=", "",
		"2 mounts of one machine"},
	{"two nodes", {.nodes = 2}, 2, 0, ABSENT, 0, 30, 0, 0, 0, "for several machines", "",
		"mounts of one machine"},
	{"rows are lost", {.nodes = 2}, 2, 0, ABSENT, 0, 29, 0, 0, STATUS_NO,
		"of 30 acknowledged rows 29", "NFSv4", ""},
	{"rows are lost, as the user said that locks reach", {.url = ASKED}, 2, 0, 0, 0, 29, 0, 0,
		STATUS_NO, "data is lost", "leave \"?assume=shared\" out", ""},
	{"a claim with two winners", {0}, 2, 0, ABSENT, 0, 30, 1, 0, STATUS_NO,
		"1 were given to two sides", "NFSv4", ""},
	{"damaged while it was tried", {0}, 2, 0, ABSENT, STATUS_DAMAGED, -1, 0, 0, STATUS_NO,
		"the database was damaged: so it went", "NFSv4", ""},
	{"rows are lost, then the store does not answer", {0}, 2, 0, ABSENT, STATUS_TEMPORARY, 3, 0,
		0, STATUS_NO, "data is lost", NULL, ""},
	{"rows are lost, then a node dies", {0}, 2, 0, ABSENT, 0, 3, 0, STATUS_TEMPORARY, STATUS_NO,
		"data is lost", NULL, ""},
	{"a store is refused here", {0}, 2, 0, ABSENT, STATUS_USAGE, -1, 0, 0, STATUS_NO,
		"refused here: so it went", "", ""},
	{"the store is refused here, another would not be", {.url = "/shared/run.db"}, 2, 0,
		STATUS_USAGE, 0, 30, 0, 0, STATUS_NO, "refused on here: it says so", "", ""},
	{"the store is damaged", {.url = "/shared/run.db"}, 2, 0, STATUS_DAMAGED, 0, 30, 0, 0,
		STATUS_DAMAGED, "it says so", "", ""},
	{"the store does not answer", {.url = "/shared/run.db"}, 1, 1, STATUS_TEMPORARY, 0, 30, 0,
		0, 0, "the processes", "", ""},
	{"the calls fail", {0}, 2, 0, ABSENT, STATUS_TEMPORARY, 30, 0, 0, STATUS_TEMPORARY,
		"does not work there: so it went", "", ""},
	{"read-only", {0}, 0, 0, ABSENT, 0, -1, 0, STATUS_PERMISSION, STATUS_PERMISSION,
		"it went wrong", "", ""},
	{"not mounted", {0}, 0, 0, ABSENT, 0, -1, 0, STATUS_NO, STATUS_NO,
		"refused here: it went wrong", "", ""},
	{"a node dies before anything was lost", {.nodes = 2}, 2, 0, ABSENT, 0, -1, 0,
		STATUS_TEMPORARY, STATUS_TEMPORARY, "it went wrong", "", ""},
	{"nothing was tried", {0}, 2, 0, ABSENT, 0, -1, 0, 0, STATUS_TEMPORARY, "nothing", "", ""},
};

static struct doctor_findings findings;

static void find(const struct example *example)
{
	findings = (struct doctor_findings){
		.request = &example->request,
		.directory = "/shared",
		.count = example->clients ? 2 : 0,
		.clients = example->clients,
		.tried = example->present >= 0,
		.acknowledged = 30,
		.present = example->present < 0 ? 0 : (uint64_t)example->present,
		.claims = 9,
		.contested = 8,
		.several = example->several,
		.trial = example->trial,
		.trial_why = "so it went",
		.trouble = example->trouble,
		.trouble_why = "it went wrong",
	};
	for (size_t k = 0; k < 2; k++)
		findings.sides[k] = (struct doctor_side){.host = "here",
			.boot = "one",
			.path = "/shared",
			.filesystem = "testfs",
			.lock = "lock=some",
			.store = k ? (int)STATUS_OK : (int)example->store,
			.store_why = "it says so",
			.local = example->local};
}

static bool says(const char *text, const char *wanted)
{
	return !wanted || (*wanted ? strstr(text, wanted) != NULL : !*text);
}

static void check_example(const struct example *example)
{
	struct doctor_verdict verdict;
	find(example);
	doctor_conclude(&findings, &verdict);
	bool well = verdict.status == example->wanted && says(verdict.reason, example->reason) &&
		    says(verdict.change, example->change) && says(verdict.scope, example->scope);
	CHECK(well, "%s: %s", example->name, doctor_word(verdict.status));
	if (!well)
		printf("# %d: %s\n# change: %s\n# scope: %s\n", verdict.status, verdict.reason,
			verdict.change, verdict.scope);
}

/* Side 1 has won some claims, and sees so many rows and claims, or could not look. */
static void sum(uint64_t present, uint64_t taken, enum status status)
{
	findings = (struct doctor_findings){.count = 2};
	findings.sides[0] = (struct doctor_side){.rows = 10,
		.fast = 6,
		.won = 3,
		.lost = 1,
		.longest = 7,
		.present = 30,
		.taken = 5};
	findings.sides[1] = (struct doctor_side){.rows = 20,
		.fast = 9,
		.won = 2,
		.lost = 3,
		.longest = 9,
		.present = present,
		.taken = taken,
		.status = (int)status};
	doctor_sum(&findings, 100);
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
		sum(30, 5, STATUS_OK);
		CHECK(findings.tried && findings.acknowledged == 30 && findings.present == 30);
		CHECK(findings.claims == 5 && findings.contested == 4 && findings.several == 0);
		CHECK(findings.longest == 9 && findings.per_second == 300);
		sum(29, 5, STATUS_OK);
		CHECK_EQ(findings.present, 29);
		sum(31, 6, STATUS_OK);
		CHECK(findings.present == 30 && findings.several == 0);
		sum(30, 4, STATUS_OK);
		CHECK_EQ(findings.several, 1);
		/* One that could not look counts nothing. */
		sum(0, 0, STATUS_TEMPORARY);
		CHECK(findings.tried && findings.present == 30 && findings.several == 0);
	}
	TEST("a store that does not answer, and sides that never met in a claim, are warnings")
	{
		struct doctor_verdict verdict;
		find(&examples[15]);
		findings.contested = 0;
		doctor_conclude(&findings, &verdict);
		CHECK_EQ(verdict.warning_count, 2);
		CHECK(strstr(verdict.warnings[0], "did not answer"));
		CHECK(strstr(verdict.warnings[1], "so little was tested"));
	}
	TEST("as text and JSON: a warning; no control characters of outside; seconds; one line")
	{
		struct text text = {0}, json = {0};
		struct doctor_verdict verdict;
		find(&examples[4]);
		findings.longest = 1500;
		strcpy(findings.sides[0].path, "/sh\033[31mared");
		strcpy(findings.sides[1].warning, "it is mounted soft");
		doctor_conclude(&findings, &verdict);
		doctor_show_text(&findings, &verdict, &text);
		doctor_show_json(&findings, &verdict, &json);
		CHECK(!strchr(text_string(&text), '\033'));
		CHECK(strstr(text_string(&text), ": it is mounted soft\n"));
		CHECK(strstr(text_string(&text), "\nverdict         safe: lock=some\n"));
		CHECK_EQ(strchr(text_string(&json), '\n') - text_string(&json),
			(long)json.length - 1);
		CHECK(strstr(text_string(&json), "\"longest\":1.500,"));
		CHECK(!strstr(text_string(&json), "noticed"));
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
