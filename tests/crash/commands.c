/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "inject.h"
#include "tree.h"

#define HANGS	  100000 /* ms */
#define MANY	  16	 /* exit codes */
#define WORDS_MAX 64

static char base[64], work[80], answer[80], errors[80], said[80];
static struct plan *plan;
static unsigned long wrong;

/* ---- Rows ---- */

static _Noreturn void refuse(const char *path, unsigned number, const char *why)
{
	fprintf(stderr, "crash: %s, line %u: %s\n", path, number, why);
	exit(2);
}

static struct row *begin_row(struct rows *rows, char *line, const char *functions)
{
	char *words = strstr(line, ": ");
	struct row row = {.functions = strdup(functions)};
	if (!words)
		return NULL;
	*words = '\0';
	row.name = strdup(line);
	for (char *word = strtok(words + 2, " "); word; word = strtok(NULL, " ")) {
		unsigned fault = fault_named(word);
		if (!fault)
			return NULL;
		row.faults |= fault;
	}
	rows->list = realloc(rows->list, (rows->count + 1) * sizeof(row));
	rows->list[rows->count] = row;
	return &rows->list[rows->count++];
}

static char **text_of(struct row *row, const char *key)
{
	const struct {
		const char *key;
		char **text;
	} texts[] = {{"setup", &row->setup}, {"run", &row->run}, {"exits", &row->exits},
		{"holds", &row->holds}, {"after", &row->after}, {"says", &row->says}};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!strcmp(texts[i].key, key))
			return texts[i].text;
	return NULL;
}

static void append(char **text, const char *line)
{
	char *longer = NULL;
	if (asprintf(&longer, "%s%s%s", *text ? *text : "", *text ? "\n" : "", line) < 0)
		exit(99);
	free(*text);
	*text = longer;
}

/* "KEY TEXT"; false: this is none. */
static bool read_key(struct row *row, char *line, char ***text)
{
	char *rest = line + strcspn(line, " ");
	if (*rest)
		*rest++ = '\0';
	rest += strspn(rest, " ");
	*text = NULL;
	if (!strcmp(line, "least")) {
		row->least = strtoul(rest, NULL, 10);
		return true;
	}
	*text = text_of(row, line);
	if (*text && *rest)
		append(*text, rest);
	return *text != NULL;
}

void rows_read(struct rows *rows, const char *path)
{
	struct text file = {0};
	struct error err;
	struct row *row = NULL;
	char *functions = NULL, **text = NULL, *line, *next;
	unsigned number = 0;
	if (file_read_whole(path, TEXT_LIMIT, &file, &err) != STATUS_OK || !file.length)
		refuse(path, 0, "cannot be read");
	for (next = file.data; (line = strsep(&next, "\n"));) {
		number++;
		if (!strncmp(line, "== ", 3)) {
			row = begin_row(rows, line + 3, functions ? functions : "");
			if (!row)
				refuse(path, number, "not \"== NAME: FAULT...\"");
			text = NULL;
		} else if (!row) {
			append(&functions, line);
		} else if (*line == '\t' && text) {
			append(text, line + 1);
		} else if (*line && *line != '#' && !read_key(row, line, &text)) {
			refuse(path, number, "what is this?");
		}
	}
	for (size_t i = 0; i < rows->count; i++)
		if (!rows->list[i].run || !rows->list[i].holds || !rows->list[i].faults)
			refuse(path, number, "a row needs faults, \"run\" and \"holds\"");
	free(functions);
	text_release(&file);
}

void rows_release(struct rows *rows)
{
	for (size_t i = 0; i < rows->count; i++) {
		struct row *row = &rows->list[i];
		char *all[] = {row->name, row->functions, row->setup, row->run, row->exits,
			row->holds, row->after, row->says};
		for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++)
			free(all[k]);
	}
	free(rows->list);
}

/* ---- Running ---- */

static void open_as(int as, const char *path, int flags)
{
	int descriptor = open(path, flags, 0600);
	if (descriptor < 0 || dup2(descriptor, as) < 0)
		_exit(126);
	close(descriptor);
}

/* In the child: where its input and output are. argument: a script, or NULL for the command. */
static void prepare(void *argument)
{
	const int writes = O_WRONLY | O_CREAT | O_TRUNC;
	signal(SIGPIPE, SIG_DFL);
	open_as(0, !argument && access("stdin", F_OK) == 0 ? "stdin" : "/dev/null", O_RDONLY);
	open_as(1, argument ? said : answer, writes);
	if (argument)
		dup2(1, 2);
	else
		open_as(2, errors, writes);
}

/* What a program leaves becomes our child: what clears up after it ends by itself. */
static void end_children(void)
{
	char path[64];
	int pid, looks = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	for (FILE *file; (file = fopen(path, "r"));) {
		bool some = fscanf(file, "%d", &pid) == 1;
		fclose(file);
		if (!some)
			return;
		if (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
		if (looks++ > HANGS / 5) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		clock_sleep_until(clock_after(1));
	}
}

/* Until it ends: its exit code; -1: it hangs. */
static int await(pid_t pid)
{
	int status = 0, descriptor = pidfd_open(pid, 0), result;
	struct pollfd poller = {.fd = descriptor, .events = POLLIN};
	do
		result = poll(&poller, 1, HANGS);
	while (result < 0 && errno == EINTR);
	if (result == 0)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(descriptor);
	end_children();
	return result == 0 ? -1 : inject_code(status);
}

/* Shell text of a row: its exit code. */
static int script(const struct row *row, const char *text)
{
	char *whole = NULL;
	if (!text)
		return 0;
	if (asprintf(&whole, "%s\n%s", row->functions, text) < 0)
		exit(99);
	char shell[] = "sh", how[] = "-euc", *argv[] = {shell, how, whole, NULL};
	int code = await(inject_start(NULL, argv, prepare, whole));
	free(whole);
	return code;
}

static int command(const struct row *row, bool with_plan)
{
	char *words = strdup(row->run), *argv[WORDS_MAX] = {NULL}, code[16];
	size_t count = 0;
	for (char *word = strtok(words, " "); word && count + 1 < WORDS_MAX;
		word = strtok(NULL, " "))
		argv[count++] = *word == '$' ? getenv(word + 1) : word;
	int result = await(inject_start(with_plan ? plan : NULL, argv, prepare, NULL));
	free(words);
	snprintf(code, sizeof(code), "%d", result);
	setenv("CODE", code, 1);
	return result;
}

/* The place in shared memory that belongs to the store, once that has a lock file. */
static void find_page(void)
{
	struct stat st;
	char path[160];
	snprintf(path, sizeof(path), "%s/s.db.lock", work);
	*plan->page = '\0';
	if (stat(path, &st) == 0)
		snprintf(plan->page, sizeof(plan->page), "/dev/shm/preempt-%u/%llx-%llx-lock1",
			(unsigned)geteuid(), (unsigned long long)st.st_dev,
			(unsigned long long)st.st_ino);
}

static int command_at(const struct row *row, const struct point *point)
{
	plan->act = point->act;
	plan->at = point->at;
	plan->number = point->number;
	plan->count = plan->hits = 0;
	plan->armed = true;
	find_page();
	return command(row, true);
}

/* ---- Judging ---- */

static bool is_one_of(const char *codes, int code)
{
	char *copy = strdup(codes ? codes : "0");
	bool found = false;
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		found |= atoi(word) == code;
	free(copy);
	return found;
}

static int usual(const struct row *row)
{
	return row->exits ? atoi(row->exits) : 0;
}

/* The first lines of what a file holds, as comments. */
static void show(const char *path)
{
	char line[300];
	FILE *file = fopen(path, "r");
	for (int i = 0; file && i < 8 && fgets(line, sizeof(line), file); i++)
		printf("#    %.*s\n", (int)strcspn(line, "\n"), line);
	if (file)
		fclose(file);
}

__attribute__((format(printf, 3, 4))) static void complain(
	const struct row *row, const char *shown, const char *format, ...)
{
	va_list arguments;
	printf("# %s, %s (exit code %s): ", row->name, fault_told(plan), getenv("CODE"));
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	show(shown);
	wrong++;
}

static bool has(const char *path, const char *words)
{
	struct text text = {0};
	struct error err;
	bool found = file_read_whole(path, TEXT_LIMIT, &text, &err) == STATUS_OK &&
		     strstr(text_string(&text), words) != NULL;
	text_release(&text);
	return found;
}

static void judge_code(const struct row *row, int code)
{
	bool killed = plan->act >= ACT_BEFORE && code == 128 + plan->number;
	if (code == usual(row) || killed)
		return;
	if (code == -1)
		complain(row, errors, "hangs");
	else if (code != 75 && code != 77)
		complain(row, errors, "should be %d, 75 or 77", usual(row));
	else if (plan->act < ACT_LATE_GONE && !has(errors, strerror(plan->number)))
		complain(row, errors, "does not say what it was");
}

static bool inject(const struct row *row, const struct point *point)
{
	int code = command_at(row, point);
	bool told = row->says && has(errors, row->says);
	/* This time it has made fewer calls. */
	if (!plan->hits)
		return told;
	judge_code(row, code);
	if (script(row, row->holds) != 0)
		complain(row, said, "does not hold");
	char *first = strdup(getenv("CODE"));
	code = command(row, false);
	if (!is_one_of(row->exits, code))
		complain(row, errors, "repeated after %s", first);
	else if (script(row, row->after ? row->after : row->holds) != 0)
		complain(row, said, "repeated after %s, this does not hold", first);
	free(first);
	return told;
}

/* Without a fault, twice: from where the row begins, and repeated. */
static bool learn(const struct row *row, const struct tree *tree)
{
	static const struct point none = {0, ACT_COUNT, 0};
	tree_restore(tree);
	if (command_at(row, &none) == usual(row) && script(row, row->holds) == 0) {
		if (!is_one_of(row->exits, command(row, false)))
			complain(row, errors, "repeated");
		else if (script(row, row->after ? row->after : row->holds) == 0)
			return true;
		else
			complain(row, said, "repeated, this does not hold");
	} else {
		complain(row, has(errors, "\n") ? errors : said, "this is not right");
	}
	return false;
}

/* ---- All of them ---- */

void commands_begin(void)
{
	const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	char text[32], self[400];
	plan = inject_plan();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	snprintf(base, sizeof(base), "%s/crash-XXXXXX", parent);
	if (!mkdtemp(base)) {
		printf("Bail out! no directory\n");
		exit(99);
	}
	snprintf(work, sizeof(work), "%s/w", base);
	snprintf(answer, sizeof(answer), "%s/answer", base);
	snprintf(errors, sizeof(errors), "%s/errors", base);
	snprintf(said, sizeof(said), "%s/said", base);
	snprintf(plan->directory, sizeof(plan->directory), "%s", work);
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[length < 0 ? 0 : length] = '\0';
	setenv("CRASH", self, 1);
	setenv("ANSWER", answer, 1);
	setenv("ERRORS", errors, 1);
	snprintf(text, sizeof(text), "%d", (int)getpid());
	setenv("PID", text, 1);
	snprintf(self, sizeof(self), "%s/s.db", work);
	setenv("PREEMPT_STORE", self, 1);
	snprintf(self, sizeof(self), "%s/run", work);
	setenv("XDG_RUNTIME_DIR", self, 1);
}

static void forget_page(void)
{
	find_page();
	if (*plan->page)
		unlink(plan->page);
}

struct result commands_run(const struct row *row, unsigned faults, size_t most, uint64_t *seed)
{
	struct tree tree;
	struct points points = {0};
	struct result result = {0};
	unsigned long wrong_before = wrong;
	bool told = !row->says;
	if (mkdir(work, 0700) < 0 || chdir(work) < 0 || mkdir("run", 0700) < 0) {
		printf("Bail out! cannot make %s\n", work);
		exit(99);
	}
	setenv("CODE", "0", 1);
	bool ready = script(row, row->setup) == 0;
	tree_keep(&tree, work);
	if (!ready)
		complain(row, said, "its setup fails");
	if (ready && learn(row, &tree)) {
		/* Once more: what only the first of all does is done. */
		tree_restore(&tree);
		command_at(row, &(struct point){0, ACT_COUNT, 0});
		unsigned calls = plan->count < CALLS_LOGGED ? plan->count : CALLS_LOGGED;
		points_of(row->faults & faults, true, plan->log, calls, &points);
		result.possible = points.count;
		points_thin(&points, most, seed);
		result.made = points.count;
		for (size_t i = 0; i < points.count; i++) {
			tree_restore(&tree);
			told |= inject(row, &points.list[i]);
		}
		if (row->faults == (row->faults & faults) && result.possible < row->least)
			complain(row, said, "only %zu points", result.possible);
		if (!told && result.made == result.possible)
			complain(row, errors, "never says \"%s\"", row->says);
	}
	forget_page();
	if (chdir("/") == 0)
		(void)file_remove_tree(work, NULL);
	tree_release(&tree);
	points_release(&points);
	result.wrong = wrong - wrong_before;
	return result;
}

void commands_end(void)
{
	(void)file_remove_tree(base, NULL);
}
