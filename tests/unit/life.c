/* SPDX-License-Identifier: MIT */
/* Which life a process saves for: the environments that tell it, and those that do not. */
#include "run/life.h"

#include "unit.h"

#define DRAWN "0123456789ab00000000000a"
#define JOB(NUMBER, RESTART)                                                                       \
	"SLURM_CLUSTER_NAME=c SLURM_JOB_ID=" NUMBER " SLURM_RESTART_COUNT=" RESTART " "
#define STEP(ID) "SLURM_PROCID=0 SLURM_STEP_ID=" ID " "
#define TORCH(ID, MACHINES, RESTART, PORT)                                                         \
	"TORCHELASTIC_RUN_ID=" ID " GROUP_WORLD_SIZE=" MACHINES                                    \
	" TORCHELASTIC_RESTART_COUNT=" RESTART " MASTER_PORT=" PORT " "
#define NEVER	  "TORCHELASTIC_MAX_RESTARTS=0 "
#define INHERITED "PREEMPT_LIFE=" DRAWN " "
#define ERROR_FILE(DIRECTORY, RESTART, RANK)                                                       \
	"TORCHELASTIC_ERROR_FILE=" DIRECTORY "/attempt_" RESTART "/" RANK "/error.json "

/* An environment is "NAME=value NAME=value". */
static const char *lookup(void *context, const char *name)
{
	static char values[16][256];
	static unsigned next;
	size_t length = strlen(name);
	for (const char *s = context; *s; s += strcspn(s, " "), s += *s == ' ')
		if (!strncmp(s, name, length) && s[length] == '=') {
			char *value = values[next++ % 16];
			snprintf(value, sizeof(values[0]), "%.*s",
				(int)strcspn(s + length + 1, " "), s + length + 1);
			return value;
		}
	return NULL;
}

static enum status find(
	const char *variables, const char *word, char life[LIFE_SIZE], struct error *err)
{
	struct identity_environment environment = {
		.lookup = lookup, .context = (void *)(uintptr_t)variables};
	if (!word)
		word = lookup(environment.context, "PREEMPT_LIFE");
	return life_find(&environment, word, life, err);
}

static void check_refused(void)
{
	static const struct {
		const char *environment, *word, *says;
	} rows[] = {
		{"", NULL, "PREEMPT_LIFE=$(uuidgen)"},
		{"", "", "PREEMPT_LIFE=$(uuidgen)"},
		/* The batch shell: its loop may start the training many times. */
		{JOB("71", "0") "SLURM_PROCID=0 ", NULL, "preempt-run"},
		/* Of several machines nothing tells two starts with one id. */
		{TORCH("none", "2", "0", "29500") ERROR_FILE("/tmp/t/none_a", "0", "3"), NULL,
			"preempt-run"},
		{TORCH("none", "1", "0", "29500"), NULL, "preempt-run"},
		/* Its workers may be started again, and only one machine counts that. */
		{INHERITED TORCH("none", "2", "0", "29500"), NULL, "--max-restarts 0"},
		{INHERITED TORCH("none", "2", "0", "29500") "TORCHELASTIC_MAX_RESTARTS=3 ", NULL,
			"--life WORD"},
		{JOB("71", "0") STEP("0") TORCH("none", "2", "0", "29500"), NULL, "--life WORD"},
		{TORCH("none", "1", "0", "29500") "TORCHELASTIC_ERROR_FILE=/attempt_0/0/e ", NULL,
			"preempt-run"},
		/* A job that was submitted by a task of another job. */
		{JOB("72", "0") STEP("0") "PREEMPT_LAUNCH=slurm:71:0+step:0 ", DRAWN,
			"left over from Slurm job 71"},
		{"SLURM_JOB_ID=x", "word", "SLURM_JOB_ID"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char life[LIFE_SIZE] = "";
		struct error err = {0};
		CHECK(find(rows[i].environment, rows[i].word, life, &err) == STATUS_USAGE &&
				strstr(err.text, rows[i].says),
			"refused, row %zu: %s", i, err.text);
	}
	char life[LIFE_SIZE], word[130];
	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	CHECK(find("", word, life, NULL) == STATUS_USAGE, "a word that is too long");
}

/* Of each row the first two are tasks of one life, and the third is of another. */
static void check_alike(void)
{
	static const struct {
		const char *environment[3], *word[3];
		bool same_line;
	} rows[] = {
		/* Two jobs, each the first attempt of its own run. */
		{{"", "", ""}, {DRAWN, DRAWN, "0123456789ac00000000000a"}, false},
		{{"", "", ""}, {DRAWN, DRAWN, "0123456789ab00000000000b"}, true},
		{{JOB("71", "0") STEP("0") "PREEMPT_LAUNCH=slurm:71:0+step:0 ", "",
			 JOB("71", "1") STEP("0")},
			{DRAWN, DRAWN, DRAWN}, true},
		/* Exported before sbatch: another one in each restart, and in each job. */
		{{JOB("71", "0"), JOB("71", "0") STEP("0"), JOB("71", "1")}, {"w", "w", "w"}, true},
		{{JOB("71", "0"), JOB("71", "0") STEP("0"), JOB("72", "0")}, {"w", "w", "w"}, true},
		{{"", "", ""}, {"word", "word", "other"}, false},
		/* Steps. */
		{{JOB("71", "0") STEP("0"), JOB("71", "0") STEP("0"), JOB("71", "0") STEP("1")},
			{NULL, "", NULL}, true},
		{{JOB("71", "0") STEP("0"), JOB("71", "0") STEP("0"), JOB("71", "1") STEP("0")},
			{NULL, NULL, NULL}, true},
		{{JOB("71", "0") STEP("0"), JOB("71", "0") STEP("0"), JOB("72", "0") STEP("0")},
			{NULL, NULL, NULL}, false},
		{{JOB("71", "0") STEP("0") "SLURM_JOB_START_TIME=5 ",
			 JOB("71", "0") STEP("0") "SLURM_JOB_START_TIME=5 ",
			 JOB("71", "0") STEP("0") "SLURM_JOB_START_TIME=6 "},
			{NULL, NULL, NULL}, true},
		{{JOB("71", "0") STEP("0"), JOB("71", "0") STEP("0"),
			 "SLURM_CLUSTER_NAME=d SLURM_JOB_ID=71 SLURM_RESTART_COUNT=0 " STEP("0")},
			{NULL, NULL, NULL}, false},
		/* torchrun starts its workers again within a life. */
		{{INHERITED TORCH("none", "1", "0", "5"), INHERITED TORCH("none", "1", "0", "5"),
			 INHERITED TORCH("none", "1", "1", "5")},
			{NULL, NULL, NULL}, true},
		{{INHERITED TORCH("none", "1", "0", "5"), INHERITED TORCH("none", "1", "0", "5"),
			 INHERITED},
			{NULL, NULL, NULL}, true},
		{{INHERITED NEVER TORCH("none", "2", "0", "5"),
			 INHERITED NEVER TORCH("none", "2", "1", "5"),
			 INHERITED NEVER TORCH("none", "2", "1", "6")},
			{NULL, NULL, NULL}, true},
		{{JOB("71", "0") STEP("0") NEVER TORCH("j", "2", "0", "5"),
			 JOB("71", "0") STEP("0") NEVER TORCH("j", "2", "1", "5"),
			 JOB("71", "0") STEP("0") NEVER TORCH("j", "2", "1", "6")},
			{NULL, NULL, NULL}, true},
		/* A word that the program draws itself, and gives to all workers. */
		{{INHERITED TORCH("none", "2", "0", "5"), INHERITED TORCH("none", "2", "1", "5"),
			 INHERITED TORCH("none", "2", "1", "5")},
			{"drawn", "drawn", "again"}, false},
		/* torchrun alone, twice in one directory of logs; and its restarts. */
		{{TORCH("none", "1", "0", "5") ERROR_FILE("/l/none_a", "0", "0"),
			 TORCH("none", "1", "0", "5") ERROR_FILE("/l/none_a", "0", "1"),
			 TORCH("none", "1", "0", "5") ERROR_FILE("/l/none_b", "0", "1")},
			{NULL, NULL, NULL}, false},
		{{TORCH("none", "1", "0", "5") ERROR_FILE("/attempt_9/none_a", "0", "0"),
			 TORCH("none", "1", "0", "5") ERROR_FILE("/attempt_9/none_a", "0", "1"),
			 TORCH("none", "1", "1", "5") ERROR_FILE("/attempt_9/none_a", "1", "1")},
			{NULL, NULL, NULL}, true},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char life[3][LIFE_SIZE];
		bool fine = true;
		for (int k = 0; k < 3; k++)
			fine = fine &&
			       find(rows[i].environment[k], rows[i].word[k], life[k], NULL) ==
				       STATUS_OK &&
			       life_is_valid(life[k]);
		CHECK(fine && !strcmp(life[0], life[1]) && strcmp(life[0], life[2]) != 0,
			"two tasks of one life and one of another, row %zu", i);
		CHECK(fine && life_same_line(life[0], life[2]) == rows[i].same_line,
			"whether they are of one line, row %zu", i);
	}
	char life[LIFE_SIZE];
	CHECK(find("", DRAWN, life, NULL) == STATUS_OK && !strcmp(life, DRAWN),
		"an agent's life is taken as it is");
}

int main(void)
{
	char a[LIFE_SIZE], b[LIFE_SIZE], c[LIFE_SIZE];
	CHECK(life_draw("", a) && life_draw("", b) && life_is_valid(a) && strcmp(a, b) != 0 &&
			!life_same_line(a, b),
		"two that are drawn differ, and in their lines, too");
	CHECK(life_draw(a, c) && life_same_line(a, c) && strcmp(a, c) != 0,
		"the next of a line differs, in its line");
	CHECK(life_same_line("", "") && !life_same_line("", a) && !life_same_line(a, ""),
		"no life is of no other's line");
	CHECK(!life_is_valid("") && !life_is_valid("0123456789ab0123456789a") &&
			!life_is_valid("0123456789ab0123456789abc") &&
			!life_is_valid("0123456789ab0123456789aB"),
		"what is no life");
	check_refused();
	check_alike();
	return unit_end();
}
