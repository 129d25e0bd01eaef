/* SPDX-License-Identifier: MIT */
/*
 * Schedules as text, which scenarios.txt is written in, and --seed prints:
 *
 *	group: tasks 4, together, beat period 5000
 *	each: save 3000
 *	task 1: stride 4
 *	clock of machine 1: 86400000
 *	1000 ms after start: notice of task 0, 7000 ms
 *	at claim: kill agent of task 0
 *	100 ms after saving of task 1: restart of task 1, 500 ms
 *
 * What is not said is as usual. Times are in milliseconds, but those that end with "us".
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum kind { WHOLE, TIME, COUNT, FLAG };

struct field {
	const char *name;
	enum kind kind;
	size_t offset;
	int64_t usual;
};

#define GROUP(member) offsetof(struct schedule, member)
#define TASK(member)  offsetof(struct trainee, member)

static const struct field group_fields[] = {
	{"tasks", WHOLE, GROUP(tasks), 0},
	{"seed", COUNT, GROUP(seed), 1},
	{"tasks of an agent", WHOLE, GROUP(per_agent), 1},
	{"agents of a machine", WHOLE, GROUP(agents_per_machine), 1},
	{"launched", FLAG, GROUP(launched), 0},
	{"together", FLAG, GROUP(synchronous), 0},
	{"latency", TIME, GROUP(latency), 5},
	{"news after", TIME, GROUP(notify), 5},
	{"gives up after", TIME, GROUP(give_up), 2000},
	{"lost requests per thousand", WHOLE, GROUP(lost_before), 0},
	{"lost answers per thousand", WHOLE, GROUP(lost_after), 0},
	{"late commits per thousand", WHOLE, GROUP(late_commit), 0},
	{"saves have taken", TIME, GROUP(remembered_save), 0},
	{"the launcher kills", FLAG, GROUP(launcher_kills), 0},
	{"deaths are seen", FLAG, GROUP(watches_peers), 0},
	{"report timeout", TIME, GROUP(report_timeout), 10000},
	{"save timeout", TIME, GROUP(save_timeout), 60000},
	{"startup", TIME, GROUP(startup), 600000},
	{"kill after", TIME, GROUP(kill_after), 5000},
	{"savers chief", FLAG, GROUP(savers_chief), 0},
	{"complete chief", FLAG, GROUP(complete_chief), 0},
	{"per task", FLAG, GROUP(per_task), 0},
	{"store loss ends", FLAG, GROUP(store_loss_ends), 0},
	{"acts while they join", FLAG, GROUP(early), 0},
	{"beat period", TIME, GROUP(beat_period), 0},
	{"hangs after", TIME, GROUP(progress_timeout), 0},
};

/* The usual first call of task i comes i ms later. */
static const struct field task_fields[] = {
	{"first call", TIME, TASK(startup), 50},
	{"start", COUNT, TASK(start), 0},
	{"total", COUNT, TASK(total), -1},
	{"stride", COUNT, TASK(stride), 1},
	{"offset", COUNT, TASK(offset), 0},
	{"uneven by", COUNT, TASK(uneven), 0},
	{"without NEXT", FLAG, TASK(silent), 0},
	{"step us", TIME, TASK(step_us), 100 * MS},
	{"uneven us", TIME, TASK(uneven_us), 10 * MS},
	{"look us", TIME, TASK(look_us), 50},
	{"react", TIME, TASK(react), 5},
	{"save", TIME, TASK(save), 500},
	{"saves by itself every", COUNT, TASK(periodic), 0},
	{"fails", WHOLE, TASK(failing), FAIL_NEVER},
	{"fails at", COUNT, TASK(fails_at), 0},
	{"ignores TERM", FLAG, TASK(ignores_term), 0},
	{"ignores leave", FLAG, TASK(ignores_leave), 0},
};

enum {
	GROUP_FIELDS = sizeof(group_fields) / sizeof(group_fields[0]),
	TASK_FIELDS = sizeof(task_fields) / sizeof(task_fields[0])
};

static const char *const triggers[TRIGGERS] = {
	"start", "wait", "claim", "report", "decision", "order", "saving", "saved", "leave"};
static const char *const deeds[DEEDS] = {"nothing", "notice", "claim from outside", "on demand",
	"move deadline", "kill agent", "pause agent", "kill training", "pause training", "cut off",
	"restart", "declare dead", "lose board", "garbage", "garbage claim", "garbage report",
	"garbage names", "full store", "set clock"};

const char *deed_name(enum deed deed)
{
	return deeds[deed];
}

static int64_t get(const void *of, const struct field *field)
{
	const char *at = (const char *)of + field->offset;
	switch (field->kind) {
	case WHOLE: return *(const int *)at;
	case TIME: return *(const int64_t *)at;
	case COUNT: return (int64_t) * (const uint64_t *)at;
	case FLAG: return *(const bool *)at;
	}
	return 0;
}

static void put(void *of, const struct field *field, int64_t value)
{
	char *at = (char *)of + field->offset;
	switch (field->kind) {
	case WHOLE: *(int *)at = (int)value; break;
	case TIME: *(int64_t *)at = value; break;
	case COUNT: *(uint64_t *)at = (uint64_t)value; break;
	case FLAG: *(bool *)at = value; break;
	}
}

static int64_t usual(const struct field *field, int task)
{
	return field->usual + (field == &task_fields[0] ? task : 0);
}

static int64_t usual_amount(enum deed deed)
{
	return deed == NOTICE ? -1 : 0;
}

void schedule_usual(struct schedule *s)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < GROUP_FIELDS; i++)
		put(s, &group_fields[i], group_fields[i].usual);
	for (int task = 0; task < MOST_TASKS; task++)
		for (int i = 0; i < TASK_FIELDS; i++)
			put(&s->trainee[task], &task_fields[i], usual(&task_fields[i], task));
}

bool schedule_simplify(struct schedule *s, int at)
{
	const int first = 2; /* those before are tried in another way */
	if (at < GROUP_FIELDS - first) {
		put(s, &group_fields[first + at], group_fields[first + at].usual);
		return true;
	}
	at -= GROUP_FIELDS - first;
	int task = at / TASK_FIELDS - 1, last = task < 0 ? s->tasks - 1 : task;
	for (int i = task < 0 ? 0 : task; i <= last; i++)
		put(&s->trainee[i], &task_fields[at % TASK_FIELDS],
			usual(&task_fields[at % TASK_FIELDS], i));
	return task < s->tasks;
}

/* ---- Printing ---- */

static void print_field(
	FILE *out, bool *begun, const char *subject, const struct field *field, int64_t value)
{
	fprintf(out, "%s%s%s", *begun ? ", " : "  ", *begun ? "" : subject, field->name);
	if (field->kind != FLAG)
		fprintf(out, " %" PRId64, value);
	*begun = true;
}

/* Whether all tasks have the same value, which is not the usual one. */
static bool is_of_each(const struct schedule *s, const struct field *field)
{
	int64_t first = get(&s->trainee[0], field);
	bool same = s->tasks > 1, differs = false;
	for (int i = 0; i < s->tasks; i++) {
		same &= get(&s->trainee[i], field) == first;
		differs |= first != usual(field, i);
	}
	return same && differs;
}

static void print_act(const struct act *act, FILE *out)
{
	if (act->delay)
		fprintf(out, "  %" PRId64 " ms after %s", act->delay, triggers[act->trigger]);
	else
		fprintf(out, "  at %s", triggers[act->trigger]);
	if (act->subject >= 0)
		fprintf(out, " of task %d", act->subject);
	fprintf(out, ": %s", deeds[act->deed]);
	if (act->who >= 0)
		fprintf(out, " of task %d", act->who);
	else if (act->who == EVERYBODY)
		fprintf(out, " of every task");
	if (act->amount != usual_amount(act->deed))
		fprintf(out, ", %" PRId64 " ms", act->amount);
	fprintf(out, "%s\n", act->then == THEN_STOP ? ", then stop" : "");
}

void schedule_print(const struct schedule *s, FILE *out)
{
	bool begun = false;
	for (int i = 0; i < GROUP_FIELDS; i++)
		if (get(s, &group_fields[i]) != group_fields[i].usual)
			print_field(
				out, &begun, "group: ", &group_fields[i], get(s, &group_fields[i]));
	fputs(begun ? "\n" : "", out);
	begun = false;
	for (int i = 0; i < TASK_FIELDS; i++)
		if (is_of_each(s, &task_fields[i]))
			print_field(out, &begun, "each: ", &task_fields[i],
				get(&s->trainee[0], &task_fields[i]));
	fputs(begun ? "\n" : "", out);
	for (int task = 0; task < s->tasks; task++) {
		char subject[24];
		snprintf(subject, sizeof(subject), "task %d: ", task);
		begun = false;
		for (int i = 0; i < TASK_FIELDS; i++) {
			const struct field *field = &task_fields[i];
			int64_t value = get(&s->trainee[task], field);
			if (value != usual(field, task) && !is_of_each(s, field))
				print_field(out, &begun, subject, field, value);
		}
		fputs(begun ? "\n" : "", out);
	}
	for (int i = 0; i < MOST_TASKS; i++)
		if (s->clock[i])
			fprintf(out, "  clock of machine %d: %" PRId64 "\n", i, s->clock[i]);
	for (int i = 0; i < s->acts; i++)
		print_act(&s->act[i], out);
}

/* ---- Reading ---- */

bool line_fits(const char *line, const char *form, int64_t *number, const char **rest)
{
	for (; *form; form++) {
		char *end;
		if (*form == '*') {
			*rest = line;
			return *line;
		}
		if (*form != '#') {
			if (*form != *line++)
				return false;
			continue;
		}
		*number++ = strtoll(line, &end, 10);
		if (end == line)
			return false;
		line = end;
	}
	return !*line;
}

/* The next of the parts of a line, which ", " separates; NULL: there is none. */
char *next_part(char **line)
{
	char *part = *line, *end = part ? strstr(part, ", ") : NULL;
	*line = end ? end + 2 : NULL;
	if (end)
		*end = '\0';
	return part;
}

static bool set_fields(void *of, const struct field *fields, int count, const char *settings)
{
	char copy[1024], *line = copy;
	snprintf(copy, sizeof(copy), "%s", settings);
	for (const char *part; (part = next_part(&line));) {
		int64_t value = 1;
		int i = 0;
		for (; i < count; i++) {
			size_t length = strlen(fields[i].name);
			if (strncmp(part, fields[i].name, length) != 0)
				continue;
			if (fields[i].kind == FLAG ? !part[length]
						   : line_fits(part + length, " #", &value, NULL))
				break;
		}
		if (i == count)
			return false;
		put(of, &fields[i], value);
	}
	return true;
}

/* The word in words that the text begins with and that ends there, or before " of" or ",". */
static int word_of(const char **text, const char *const *words, int count)
{
	for (int i = 0; i < count; i++) {
		size_t length = strlen(words[i]);
		const char *end = *text + length;
		if (strncmp(*text, words[i], length) != 0 ||
			(*end && *end != ',' && *end != ':' && strncmp(end, " of ", 4) != 0))
			continue;
		*text = end;
		return i;
	}
	return -1;
}

/* " of task N", " of every task", or nothing. */
static int whose(const char **text)
{
	static const char every[] = " of every task", task[] = " of task ";
	if (!strncmp(*text, every, strlen(every))) {
		*text += strlen(every);
		return EVERYBODY;
	}
	return strncmp(*text, task, strlen(task)) != 0
		       ? NOBODY
		       : (int)strtol(*text + strlen(task), (char **)text, 10);
}

static bool read_act(struct schedule *s, int64_t delay, const char *text)
{
	struct act act = {.delay = delay};
	int trigger = word_of(&text, triggers, TRIGGERS);
	act.subject = whose(&text);
	if (trigger < 0 || strncmp(text, ": ", 2) != 0 || s->acts == MOST_ACTS)
		return false;
	text += 2;
	int deed = word_of(&text, deeds, DEEDS);
	if (deed < 0)
		return false;
	act.trigger = (enum trigger)trigger;
	act.deed = (enum deed)deed;
	act.who = whose(&text);
	act.amount = usual_amount(act.deed);
	if (!strncmp(text, ", ", 2) && strncmp(text, ", then", 6) != 0) {
		act.amount = strtoll(text + 2, (char **)&text, 10);
		if (strncmp(text, " ms", 3) != 0)
			return false;
		text += 3;
	}
	if (!strcmp(text, ", then stop"))
		act.then = THEN_STOP;
	else if (*text)
		return false;
	s->act[s->acts++] = act;
	return true;
}

bool schedule_read(struct schedule *s, const char *line)
{
	int64_t number[2];
	const char *rest;
	if (line_fits(line, "group: *", number, &rest))
		return set_fields(s, group_fields, GROUP_FIELDS, rest) && s->tasks >= 1 &&
		       s->tasks <= MOST_TASKS;
	if (line_fits(line, "each: *", number, &rest)) {
		bool read = true;
		for (int i = 0; i < s->tasks; i++)
			read &= set_fields(&s->trainee[i], task_fields, TASK_FIELDS, rest);
		return read;
	}
	if (line_fits(line, "task #: *", number, &rest))
		return number[0] >= 0 && number[0] < s->tasks &&
		       set_fields(&s->trainee[number[0]], task_fields, TASK_FIELDS, rest);
	if (line_fits(line, "clock of machine #: #", number, &rest) && number[0] >= 0 &&
		number[0] < MOST_TASKS) {
		s->clock[number[0]] = number[1];
		return true;
	}
	if (line_fits(line, "at *", number, &rest))
		return read_act(s, 0, rest);
	return line_fits(line, "# ms after *", number, &rest) && read_act(s, number[0], rest);
}
