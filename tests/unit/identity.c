/* SPDX-License-Identifier: MIT */
/* Who am I: the environments of identity.txt, and what must come of them; and the default store. */
#include "run/identity.h"

#include <stdlib.h>
#include <string.h>

#include "store/url.h"
#include "unit.h"

#define LINE 1500

/* ---- The words of identity.txt ---- */

/* Its macros: "@NAME TEXT", where $1 to $9 stand for what @NAME(...) has between its commas. */
static struct macro {
	char name[16], text[400];
} macros[8];
static size_t macro_count;

static const struct macro *find_macro(const char *word)
{
	for (size_t i = 0; i < macro_count; i++) {
		size_t length = strlen(macros[i].name);
		if (!strncmp(word, macros[i].name, length) && strchr("( ", word[length]))
			return &macros[i];
	}
	printf("Bail out! no macro %s\n", word);
	exit(1);
}

static void expand(const char *words, char to[LINE])
{
	while (*words) {
		if (*words != '@') {
			*to++ = *words++;
			continue;
		}
		const char *text = find_macro(words)->text, *arguments[11] = {NULL};
		words += strcspn(words, "( ");
		for (int i = 1; i <= 9 && (*words == '(' || *words == ','); i++) {
			arguments[i] = ++words;
			words += strcspn(words, ",)");
		}
		words += *words == ')';
		for (; *text; text++)
			if (*text == '$') {
				const char *argument = arguments[*++text - '0'];
				size_t length = argument ? strcspn(argument, ",)") : 0;
				to += sprintf(to, "%.*s", (int)length, argument);
			} else {
				*to++ = *text;
			}
	}
	*to = '\0';
}

/* An environment is "NAME=value NAME=value". */
static const char *lookup(void *context, const char *name)
{
	static char values[8][256];
	static unsigned next;
	size_t length = strlen(name);
	for (const char *s = context; *s; s += strcspn(s, " "), s += *s == ' ')
		if (!strncmp(s, name, length) && s[length] == '=') {
			char *value = values[next++ % 8];
			snprintf(value, sizeof(values[0]), "%.*s",
				(int)strcspn(s + length + 1, " "), s + length + 1);
			return value;
		}
	return NULL;
}

/* Cut the next word off, which ends at any of ends; returns what is behind it. */
static char *cut(char *words, const char *ends)
{
	words += strcspn(words, ends);
	while (*words && strchr(ends, *words))
		*words++ = '\0';
	return words;
}

/* Read the options at the head of words; returns the environment behind them. */
static char *read_options(char *words, struct identity_request *request, char step[64])
{
	while (*words == '-') {
		char *option = words, *value = cut(option, " ");
		words = cut(value, " ");
		if (!strcmp(option, "--run"))
			request->run = value;
		else if (!strcmp(option, "--step"))
			snprintf(step, 64, "%s", value);
		else if (!strcmp(option, "--needs"))
			request->need = !strcmp(value, "run") ? IDENTITY_RUN : IDENTITY_TASK;
		else if (!strcmp(option, "--task"))
			request->task_given = true, request->task = strtoull(value, NULL, 10);
		else if (!strcmp(option, "--tasks"))
			request->tasks_given = true, request->tasks = strtoull(value, NULL, 10);
		else
			request->local = strtoull(value, NULL, 10);
	}
	return words;
}

/* What is found, as in the file. */
static const char *text_of(const struct identity *identity)
{
	static char text[1200];
	char task[80] = "no task", count[24] = "";
	if (identity->count != 1)
		snprintf(count, sizeof(count), "+%ju", (uintmax_t)identity->count);
	if (identity->is_task)
		snprintf(task, sizeof(task), "task %ju%s/%ju", (uintmax_t)identity->task, count,
			(uintmax_t)identity->tasks);
	snprintf(text, sizeof(text), "; run %s; %s; by %s; launch %s; %s%swarns %s; ",
		identity->run, task, identity->task_source ? identity->task_source : "-",
		*identity->launch ? identity->launch : "-",
		identity->several_machines ? "several; " : "",
		identity->run_is_ours ? "ours; " : "",
		*identity->warning ? identity->warning : "-");
	return text;
}

/* Whether text has every field of wanted, "A; B; C": whole ones, but for words of a warning. */
static bool has_all(const char *text, const char *wanted, bool whole)
{
	char field[300];
	for (; *wanted; wanted += strcspn(wanted, ";"), wanted += strspn(wanted, "; ")) {
		int length = (int)strcspn(wanted, ";");
		bool words = !whole || (length > 7 && !strncmp(wanted, "warns ", 6));
		int skip = whole && words ? 6 : 0;
		snprintf(field, sizeof(field), words ? "%.*s" : "; %.*s; ", length - skip,
			wanted + skip);
		if (!strstr(text, field))
			return false;
	}
	return true;
}

static bool is_found(const struct identity *identity, const char *wanted)
{
	const char *text = text_of(identity);
	return has_all(text, wanted, true) &&
	       identity->several_machines == (strstr(wanted, "; several") != NULL) &&
	       identity->run_is_ours == (strstr(wanted, "; ours") != NULL);
}

/* words: "OPTIONS ENVIRONMENT = WHAT COMES OF IT". */
static void check_row(const char *title, char *words)
{
	char environment_of_it[LINE], *wanted = strstr(words, "= refused: ");
	bool refused = wanted != NULL;
	if (!refused)
		wanted = strstr(words, "= run ");
	if (!wanted) {
		CHECK(!"this row says what comes of it", "%s", title);
		return;
	}
	*wanted = '\0';
	wanted += strlen(refused ? "= refused: " : "= ");
	struct identity_request request = {.need = IDENTITY_START, .nonce = "n0nce"};
	struct signs signs = {lookup, environment_of_it, "", {""}};
	struct identity identity;
	struct error err = {0};
	memset(&identity, 0x5a, sizeof(identity));
	expand(read_options(words, &request, signs.slurm_step), environment_of_it);
	enum status status = identity_find(&signs, &request, &identity, &err);
	bool fine = refused ? status == STATUS_USAGE && err.status == STATUS_USAGE &&
				      has_all(err.text, wanted, false) &&
				      (unsigned char)identity.run[0] == 0x5a
			    : status == STATUS_OK && is_found(&identity, wanted);
	if (!CHECK(fine, "%s%s", title, refused ? ": refused" : ""))
		printf("# %d: %s\n", status, status == STATUS_OK ? text_of(&identity) : err.text);
}

static void check_rows(void)
{
	char path[300], line[LINE], title[LINE] = "", words[LINE] = "";
	snprintf(path, sizeof(path), "%.*stxt", (int)strlen(__FILE__) - 1, __FILE__);
	FILE *file = fopen(path, "r");
	if (!CHECK(file != NULL, "%s is there", path))
		return;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '\t') {
			snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s",
				*words ? " " : "", line + 1);
			continue;
		}
		if (*title)
			check_row(title, words);
		*title = *words = '\0';
		if (line[0] == '@' && macro_count < 8)
			sscanf(line, "%15s %399[^\n]", macros[macro_count].name,
				macros[macro_count].text),
				macro_count++;
		else if (line[0] != '#')
			snprintf(title, sizeof(title), "%s", line);
	}
	check_row(title, words);
	fclose(file);
}

/* All tasks of a launch have one launch id; another launch has another. */
static void check_alike(void)
{
	static const char *const launches[][3] = {
		{"@JOB(9,2) @STEP(0,0,2,0,2)", "@JOB(9,2) @STEP(0,1,2,1,2)",
			"@JOB(9,2) @STEP(1,1,2,1,2)"},
		{"@JOB(9,2) @STEP(0,0,2,0,2)", "@JOB(9,2) @STEP(0,1,2,1,2)",
			"@JOB(9,2) @STEP(0,1,2,1,2) SLURM_RESTART_COUNT=1"},
		{"@TORCH(j,0,8,0,2,4,1)", "@TORCH(j,5,8,1,2,4,0)", "@TORCH(k,5,8,1,2,4,0)"},
		{"@TORCH(j,0,4,0,1,4,1)", "@TORCH(j,3,4,0,1,4,1)", "@TORCH(j,3,4,0,1,4,2)"},
	};
	for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]); i++) {
		struct identity found[3];
		struct identity_request request = {.need = IDENTITY_START, .run = "r"};
		bool fine = true;
		for (int k = 0; k < 3; k++) {
			char words[LINE];
			struct signs signs = {.lookup = lookup, .context = words};
			expand(launches[i][k], words);
			fine = fine &&
			       identity_find(&signs, &request, &found[k], NULL) == STATUS_OK;
		}
		CHECK(fine && !strcmp(found[0].launch, found[1].launch) &&
				strcmp(found[0].launch, found[2].launch) != 0,
			"launch ids: two tasks of one launch and one of another, %zu", i);
	}
}

static void check_store(void)
{
	static const struct {
		const char *run, *state, *home, *path, *refusal;
	} stores[] = {
		{"r", NULL, "/home/u", "/home/u/.local/state/preempt/r.db", NULL},
		{"r", "/s", "/home/u", "/s/preempt/r.db", NULL},
		{"r", "s", "/home/u", "/home/u/.local/state/preempt/r.db", NULL},
		{"r", "/s", NULL, "/s/preempt/r.db", NULL},
		{"r", NULL, "", NULL, "HOME is not set"},
		{"r", NULL, "/a?b", NULL, "--store"},
		{"r", "/a?b", "/home/u", NULL, "--store"},
		{"a/b", NULL, "/home/u", NULL, "run"},
	};
	struct error err;
	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		struct text path = {0};
		enum status status = store_default_path(
			stores[i].run, stores[i].state, stores[i].home, &path, &err);
		CHECK(stores[i].path
				? status == STATUS_OK && !strcmp(text_string(&path), stores[i].path)
				: status == STATUS_USAGE && strstr(err.text, stores[i].refusal),
			"default store: %zu", i);
		text_release(&path);
	}
	struct identity wide = {.tasks = 8, .machines = 4, .several_machines = true};
	struct identity narrow = {.tasks = 8};
	CHECK(identity_check_store(&wide, "/tmp/r.db", true, &err) == STATUS_USAGE &&
			strstr(err.text, "/tmp/r.db") && strstr(err.text, "4 machines") &&
			strstr(err.text, "--store"),
		"a local store is refused for several machines");
	CHECK(identity_check_store(&wide, "/shared/r.db", false, &err) == STATUS_OK,
		"a shared store is right for several machines");
	CHECK(identity_check_store(&narrow, "/tmp/r.db", true, &err) == STATUS_OK,
		"a local store is right for one machine");
}

int main(void)
{
	check_rows();
	check_alike();
	check_store();
	return unit_end();
}
