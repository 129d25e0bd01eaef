/* SPDX-License-Identifier: MIT */
/* What follows from what the doctor found: the table of cases. Any directory will do. */
#include "store/doctor_findings.h"

#include <stdlib.h>

#include "base/json.h"
#include "scratch.h"
#include "store/doctor_worker.h"
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

/* One store that is looked for on one or two clients. */
struct example {
	const char *name;
	enum filesystem_reach reach;
	size_t clients;
	enum lock_mode mode;
	bool exists, refused; /* refused: the store itself says no to this mode there */
	enum doctor_answer ofd, link, take, load, other;
	enum status trouble;
	enum status wanted;
	const char *change; /* is in what is to be done; "": nothing is; NULL: whatever */
	const char *scope;  /* is in what was not shown; likewise */
};

static const struct example examples[] = {
	/* name, reach, clients, mode, exists, refused, ofd, link, take, load, other, trouble, ...
	 */
	{"local disk", LOCAL, 1, FCNTL, 0, 0, YES, YES, YES, YES, SKIP, 0, STATUS_OK, "", ""},
	{"local disk, mode link", LOCAL, 1, LINK, 1, 0, YES, YES, YES, YES, SKIP, 0, STATUS_OK, "",
		""},
	{"local disk without hard links", LOCAL, 1, FCNTL, 0, 0, YES, FAILED, YES, YES, SKIP, 0,
		STATUS_OK, "", ""},
	{"known to reach, one machine", SHARED, 1, FCNTL, 0, 0, YES, YES, YES, YES, SKIP, 0,
		STATUS_OK, "", "not measured"},
	{"known to reach, shown on two", SHARED, 2, FCNTL, 0, 0, YES, YES, YES, YES, SKIP, 0,
		STATUS_OK, "", "mounts of one machine"},
	{"thought to reach, and does not", SHARED, 2, FCNTL, 0, 0, NO, YES, YES, SKIP, YES, 0,
		STATUS_NO, "?lock=link", NULL},
	{"the same with a store", SHARED, 2, FCNTL, 1, 0, NO, YES, YES, SKIP, YES, 0, STATUS_NO,
		"doctor --fix --store", NULL},
	{"neither locks nor names", SHARED, 2, FCNTL, 0, 0, NO, NO, YES, SKIP, SKIP, 0, STATUS_NO,
		"NFSv4", NULL},
	{"neither locks nor links", SHARED, 2, FCNTL, 0, 0, NO, FAILED, YES, SKIP, SKIP, 0,
		STATUS_NO, "NFSv4", NULL},
	{"link works but was not tried through the store", SHARED, 2, FCNTL, 0, 0, NO, YES, YES,
		SKIP, SKIP, 0, STATUS_NO, "NFSv4", NULL},
	{"no lock service", SHARED, 1, FCNTL, 0, 0, FAILED, YES, YES, SKIP, YES, 0, STATUS_NO,
		"?lock=link", NULL},
	{"locks of one machine, fcntl asked for", NODE, 1, FCNTL, 0, 1, YES, YES, YES, SKIP, YES, 0,
		STATUS_NO, "?lock=link", NULL},
	{"a store of fcntl on such a mount", NODE, 1, FCNTL, 1, 1, YES, YES, YES, SKIP, YES, 0,
		STATUS_NO, "doctor --fix", NULL},
	{"locks of one machine, link", NODE, 1, LINK, 0, 0, YES, YES, YES, YES, SKIP, 0, STATUS_OK,
		"", "not shown"},
	{"locks of one machine, link, on two", NODE, 2, LINK, 0, 0, NO, YES, YES, YES, SKIP, 0,
		STATUS_OK, "", "mounts of one machine"},
	{"link, but two win", NODE, 2, LINK, 0, 0, NO, YES, NO, SKIP, SKIP, 0, STATUS_NO, "NFSv4",
		NULL},
	{"link, but no hard links", NODE, 1, LINK, 0, 0, YES, FAILED, YES, SKIP, SKIP, 0, STATUS_NO,
		"NFSv4", NULL},
	{"link loses rows", NODE, 2, LINK, 0, 0, NO, YES, YES, NO, SKIP, 0, STATUS_NO, "NFSv4",
		NULL},
	{"fcntl loses rows although its locks exclude", SHARED, 2, FCNTL, 0, 0, YES, YES, YES, NO,
		YES, 0, STATUS_NO, "?lock=link", NULL},
	{"unknown, fcntl, one machine", UNKNOWN, 1, FCNTL, 0, 1, YES, YES, YES, SKIP, YES, 0,
		STATUS_TEMPORARY, "--nodes 2", NULL},
	{"unknown, fcntl, one machine, no links", UNKNOWN, 1, FCNTL, 0, 1, YES, FAILED, YES, SKIP,
		SKIP, 0, STATUS_TEMPORARY, "--other", NULL},
	{"unknown, fcntl, two exclude", UNKNOWN, 2, FCNTL, 0, 1, YES, YES, YES, YES, SKIP, 0,
		STATUS_NO, "?assume=shared", NULL},
	{"unknown, fcntl, two do not exclude", UNKNOWN, 2, FCNTL, 0, 1, NO, YES, YES, SKIP, YES, 0,
		STATUS_NO, "?lock=link", NULL},
	{"unknown, link", UNKNOWN, 1, LINK, 0, 0, YES, YES, YES, YES, SKIP, 0, STATUS_OK, "",
		"not shown"},
	{"the store answers errors", SHARED, 2, FCNTL, 0, 0, YES, YES, YES, FAILED, SKIP, 0,
		STATUS_TEMPORARY, NULL, NULL},
	{"nothing was tried", SHARED, 2, FCNTL, 0, 0, YES, YES, YES, SKIP, SKIP, 0,
		STATUS_TEMPORARY, NULL, NULL},
	{"no space", LOCAL, 0, FCNTL, 0, 0, SKIP, SKIP, SKIP, SKIP, SKIP, STATUS_TEMPORARY,
		STATUS_TEMPORARY, NULL, NULL},
	{"read-only", LOCAL, 0, FCNTL, 0, 0, SKIP, SKIP, SKIP, SKIP, SKIP, STATUS_PERMISSION,
		STATUS_PERMISSION, NULL, NULL},
	{"a node dies before anything was lost", SHARED, 2, FCNTL, 0, 0, YES, SKIP, SKIP, SKIP,
		SKIP, STATUS_TEMPORARY, STATUS_TEMPORARY, NULL, NULL},
	{"a node dies after locks have failed", SHARED, 2, FCNTL, 0, 0, NO, SKIP, SKIP, SKIP, SKIP,
		STATUS_TEMPORARY, STATUS_NO, NULL, NULL},
};

static struct doctor_side sides[2];

static void fill_load(struct doctor_load *load, enum lock_mode mode, enum doctor_answer answer)
{
	*load = (struct doctor_load){.mode = mode, .answer = answer};
	if (answer == YES || answer == NO) {
		load->acknowledged = 400;
		load->present = answer == YES ? 400 : 212;
		load->claims = 100;
		load->contested = 80;
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
		.mode_status = example->refused ? STATUS_USAGE : STATUS_OK,
		.ofd.answer = example->ofd,
		.posix.answer = example->ofd,
		.link.answer = example->link,
		.create.answer = YES,
		.rename.answer = YES,
		.take.answer = example->take,
		.noticed = -1,
		.trouble = example->trouble,
	};
	if (example->refused)
		strcpy(findings.mode_why, "two could both win");
	if (example->trouble)
		strcpy(findings.trouble_why, "it went wrong");
	fill_load(&findings.load, example->mode, example->load);
	fill_load(&findings.other, example->mode == FCNTL ? LINK : FCNTL, example->other);
	for (size_t i = 0; i < 2; i++)
		sides[i] = (struct doctor_side){.host = "here",
			.boot = "one",
			.path = "/shared",
			.device = example->clients > 1 ? i : 0,
			.trusted = true,
			.traits = {example->reach, "testfs", "it is so", NULL},
			.free_bytes = (int64_t)1 << 40,
			.free_inodes = -1,
			.quota_bytes = -1,
			.quota_inodes = -1,
			.queue = true};
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
	doctor_judge(&findings, &verdict);
	snprintf(both, sizeof(both), "%s%s", verdict.change[0], verdict.change[1]);
	CHECK(verdict.status == example->wanted && says(both, example->change) &&
			says(verdict.scope, example->scope) && *verdict.reason,
		"%s: %s", example->name, verdict.word);
	if (verdict.status != example->wanted || !says(both, example->change) ||
		!says(verdict.scope, example->scope))
		printf("# %d %s: %s\n# change: %s\n# scope: %s\n", verdict.status, verdict.word,
			verdict.reason, both, verdict.scope);
}

static size_t warnings_with(void (*spoil)(struct doctor_side *side))
{
	struct doctor_verdict verdict;
	struct doctor_findings findings = findings_of(&examples[4]);
	spoil(&sides[1]);
	doctor_judge(&findings, &verdict);
	CHECK_EQ(verdict.status, STATUS_OK);
	return verdict.warning_count;
}

static void nothing(struct doctor_side *side)
{
	(void)side;
}
static void soft(struct doctor_side *side)
{
	side->traits.warning = "it is mounted soft";
}
static void clock_off(struct doctor_side *side)
{
	side->clock_ahead = -1500;
	side->clock_error = 20;
}
static void clock_unsure(struct doctor_side *side)
{
	side->clock_ahead = 1500;
	side->clock_error = 600;
}
static void full(struct doctor_side *side)
{
	side->free_bytes = 4096;
}
static void quota(struct doctor_side *side)
{
	side->quota_bytes = 4096;
}
static void inodes(struct doctor_side *side)
{
	side->free_inodes = 3;
}
static void no_queue(struct doctor_side *side)
{
	side->queue = false;
}
static void untrusted(struct doctor_side *side)
{
	side->trusted = false;
}

static void count_wins(
	struct doctor_check *check, const char *first, const char *second, const char *third)
{
	char *wins[] = {(char *)first, (char *)second, (char *)third};
	*check = (struct doctor_check){0};
	doctor_count_wins(wins, third ? 3 : 2, check);
}

static struct doctor_load count_claims(const char *first, const char *second, const char *seen)
{
	char *promised[] = {(char *)first, (char *)second};
	struct doctor_load load = {0};
	doctor_count_claims(promised, 2, seen, &load);
	return load;
}

/* What one who is alone wins in no time. */
static void race_in_no_time(const char *kind, struct doctor_check *check)
{
	struct error err;
	const char *wins = "";
	struct json_object *request = json_object_new_object(), *answer = json_object_new_object();
	struct doctor_worker worker;
	doctor_worker_init(&worker, scratch);
	worker.scratch = strdup(scratch);
	worker.count = 1;
	json_put_text(request, "kind", kind);
	json_put_unsigned(request, "rounds", 5);
	json_put_signed(request, "ms", 0);
	CHECK_EQ(doctor_race(&worker, request, answer, &err), STATUS_OK);
	CHECK(json_get_text(answer, "wins", &wins));
	count_wins(check, wins, wins, NULL);
	json_object_put(request);
	json_object_put(answer);
	doctor_worker_release(&worker);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++)
		check_example(&examples[i]);

	TEST("what should be changed although it is no danger is warned of")
	{
		CHECK_EQ(warnings_with(nothing), 0);
		CHECK_EQ(warnings_with(soft), 1);
		CHECK_EQ(warnings_with(clock_off), 1);
		CHECK_EQ(warnings_with(clock_unsure), 0);
		CHECK_EQ(warnings_with(full), 1);
		CHECK_EQ(warnings_with(quota), 1);
		CHECK_EQ(warnings_with(inodes), 1);
		CHECK_EQ(warnings_with(no_queue), 1);
		CHECK_EQ(warnings_with(untrusted), 1);
	}
	TEST("a store that did not answer, and claims that nobody else wanted, are warned of")
	{
		struct doctor_verdict verdict;
		struct doctor_findings findings = findings_of(&examples[4]);
		strcpy(findings.store_busy, "process 7 holds it");
		findings.load.contested = 0;
		doctor_judge(&findings, &verdict);
		CHECK_EQ(verdict.status, STATUS_OK);
		CHECK_EQ(verdict.warning_count, 2);
		CHECK(strstr(verdict.warnings[0], "process 7 holds it"));
	}
	TEST("where a machine that died keeps its lock, the figure and what to do are said")
	{
		static const struct {
			int outlived;
			bool by_name, exists;
			enum lock_mode mode;
			const char *said; /* NULL: nothing */
		} rows[] = {
			{FILESYSTEM_FOR_EVER, true, true, FCNTL, "until that machine boots again"},
			{FILESYSTEM_FOR_EVER, true, true, FCNTL,
				"doctor --fix --store '/x/run.db?lock=link'"},
			{90, true, false, FCNTL, "for about 90 s"},
			{90, true, false, FCNTL, "with lock=link, the default here"},
			{42, false, true, FCNTL, "a shorter time is set at the server"},
			{FILESYSTEM_FOR_EVER, true, true, LINK, NULL},
			{0, true, true, FCNTL, NULL},
		};
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct doctor_verdict verdict;
			struct doctor_findings findings = findings_of(&examples[4]);
			findings.sides[0].traits.outlived = rows[i].outlived;
			findings.sides[0].traits.by_name = rows[i].by_name;
			findings.mode = findings.load.mode = rows[i].mode;
			findings.exists = rows[i].exists;
			findings.store = "/x/run.db";
			doctor_judge(&findings, &verdict);
			CHECK_EQ(verdict.status, STATUS_OK);
			CHECK_EQ(verdict.warning_count, rows[i].said != NULL);
			if (rows[i].said && !strstr(verdict.warnings[0], rows[i].said))
				printf("# %s\n", verdict.warnings[0]);
			CHECK(!rows[i].said || strstr(verdict.warnings[0], rows[i].said));
		}
	}
	TEST("renames with several winners refute mode link, and it is not advised")
	{
		struct doctor_verdict verdict;
		struct doctor_findings findings = findings_of(&examples[1]);
		doctor_judge(&findings, &verdict);
		CHECK(verdict.status == STATUS_OK && verdict.link_is_safe);
		findings.rename.answer = NO;
		doctor_judge(&findings, &verdict);
		CHECK(verdict.status == STATUS_NO && !verdict.link_is_safe);
	}
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
	TEST("two winners of one round are found; rounds that not all played do not count")
	{
		struct doctor_check check;
		count_wins(&check, "1010", "0101", NULL);
		CHECK_EQ(check.answer, YES);
		CHECK_EQ(check.rounds, 4);
		count_wins(&check, "1010", "0111", NULL);
		CHECK_EQ(check.answer, NO);
		CHECK_EQ(check.several, 1);
		count_wins(&check, "100", "010", "001111");
		CHECK_EQ(check.answer, YES);
		CHECK_EQ(check.rounds, 3);
		count_wins(&check, "1000", "0111", "0001");
		CHECK_EQ(check.answer, NO);
		count_wins(&check, "", "0111", NULL);
		CHECK_EQ(check.answer, FAILED);
		count_wins(&check, "1101", "0000", NULL);
		CHECK_EQ(check.answer, YES);
		CHECK_EQ(check.none, 1);
		count_wins(&check, "1000", "0000", NULL);
		CHECK_EQ(check.answer, NO);
	}
	TEST("a claim has the one winner that the store names")
	{
		struct doctor_load load = count_claims("10-1", "01-0", "01-0");
		CHECK_EQ(load.claims, 3);
		CHECK_EQ(load.contested, 3);
		CHECK_EQ(load.several + load.none, 0);
		load = count_claims("1", "1", "0");
		CHECK_EQ(load.several, 1);
		load = count_claims("1", "0", "1");
		CHECK_EQ(load.none, 1);
		load = count_claims("1", "-", "");
		CHECK_EQ(load.none, 1);
		CHECK_EQ(load.contested, 0);
		load = count_claims("0", "0", "-");
		CHECK_EQ(load.none, 1);
	}
	TEST("where a busy machine takes all the time for a race one round is played: no wrong \"no\"")
	{
		static const char *const kinds[] = {"link", "create", "rename", "take"};
		scratch_make();
		for (size_t i = 0; i < 4; i++) {
			struct doctor_check check = {0};
			race_in_no_time(kinds[i], &check);
			CHECK_EQ(check.rounds, 1);
		}
		scratch_remove();
	}
	TEST("a claim whose answer was lost is judged by nobody")
	{
		struct doctor_load load = count_claims("?", "0", "0");
		CHECK_EQ(load.claims, 0);
		CHECK_EQ(load.several + load.none, 0);
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
			doctor_judge(&findings, &verdict);
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
		doctor_judge(&findings, &verdict);
		CHECK_EQ(verdict.status, STATUS_NO);
		CHECK(strstr(verdict.reason, "not mounted"));
	}
	TEST("control characters of outside do not reach the terminal; JSON is one object on a line")
	{
		struct text text = {0}, json = {0};
		struct doctor_verdict verdict;
		struct doctor_findings findings = findings_of(&examples[4]);
		strcpy(sides[0].path, "/sh\033[31mared");
		doctor_judge(&findings, &verdict);
		doctor_show_text(&findings, &verdict, &text);
		doctor_show_json(&findings, &verdict, &json);
		CHECK(!strchr(text_string(&text), '\033'));
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
