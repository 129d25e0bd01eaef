/* SPDX-License-Identifier: MIT */
#include "platform/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/parse.h"

/* ---- The signs of a platform ---- */

static const char *const dmi_words[DMI_FIELDS] = {"", "vendor", "product", "asset tag"};

static const char *look_up(void *context, const char *name)
{
	(void)context;
	return getenv(name);
}

const struct signs signs_environment = {.lookup = look_up};

const char *signs_value(const struct signs *signs, const char *name)
{
	const char *value = signs->lookup(signs->context, name);
	return value && *value ? value : NULL;
}

enum status signs_number(const struct signs *signs, const char *name, uint64_t min, uint64_t max,
	uint64_t *value, struct error *err)
{
	const char *text = signs_value(signs, name);
	char what[64];
	if (!text)
		return STATUS_NO;
	snprintf(what, sizeof(what), "$%s", name);
	return parse_unsigned(text, min, max, value, what, err);
}

static bool is_here(const struct platform *platform, const struct signs *signs)
{
	if (platform->dmi)
		return !strncmp(
			signs->dmi[platform->dmi], platform->dmi_text, strlen(platform->dmi_text));
	return platform->variable && signs_value(signs, platform->variable) &&
	       (!platform->also || signs_value(signs, platform->also));
}

/* ---- Who am I ---- */

static enum status read_numbers(
	const struct signs *signs, struct launched *launched, struct error *err)
{
	const struct launcher *launcher = launched->launcher;
	const char *missing = !signs_value(signs, launcher->task) ? launcher->task
			      : launcher->tasks && !signs_value(signs, launcher->tasks)
				      ? launcher->tasks
				      : NULL;
	if (missing)
		return error_set(err, STATUS_USAGE,
			"%s: %s is not set, so this task's number cannot be determined; %s",
			launcher->name, missing, launcher->cure);
	enum status status =
		signs_number(signs, launcher->task, 0, TASKS_MAX - 1, &launched->task, err);
	if (status == STATUS_OK && launcher->tasks)
		status = signs_number(signs, launcher->tasks, 1, TASKS_MAX, &launched->tasks, err);
	return status;
}

enum status platform_launched(
	const struct signs *signs, struct launched *launched, struct error *err)
{
	*launched = (struct launched){0};
	for (const struct platform *platform = platforms; platform < platforms_end; platform++) {
		const struct launcher *l = &platform->launcher;
		enum status status = STATUS_NO;
		if (l->read)
			status = l->read(signs, launched, err);
		/* If only one of a launcher's two variables is set, report that instead of trying
		 * the next launcher. */
		else if (l->name &&
			 (signs_value(signs, l->marker ? l->marker : l->task) ||
				 (!l->marker && l->tasks && signs_value(signs, l->tasks))))
			status = !l->present || l->present(signs) ? STATUS_OK : STATUS_NO;
		if (status == STATUS_NO)
			continue;
		launched->launcher = status == STATUS_OK ? l : NULL;
		return status == STATUS_OK && !l->read ? read_numbers(signs, launched, err)
						       : status;
	}
	return STATUS_OK;
}

/* Write an id as part of a name: itself if it is short and valid in a name, else its hash. */
static void put_id(char *to, size_t size, const char *id)
{
	size_t length = strlen(id);
	char prefixed[64];
	snprintf(prefixed, sizeof(prefixed), "_%s", id);
	if (length <= 60 && parse_name(prefixed, "", NULL) == STATUS_OK)
		snprintf(to, size, "%s", id);
	else
		snprintf(to, size, "%016llx", (unsigned long long)XXH64(id, length, 0));
}

enum status platform_launch(const struct launcher *launcher, const struct signs *signs, char *to,
	size_t size, struct error *err)
{
	char id[64];
	uint64_t machines = 1, number = 0;
	const char *value =
		launcher->launch_variable ? signs_value(signs, launcher->launch_variable) : NULL;
	*to = '\0';
	if (!value)
		return STATUS_OK;
	put_id(id, sizeof(id), value);
	snprintf(to, size, "%s:%s", launcher->launch_prefix, id);
	if (!launcher->restarts)
		return STATUS_OK;
	enum status status = signs_number(signs, launcher->machines, 1, TASKS_MAX, &machines, err);
	if (!status_is_error(status) && machines > 1)
		status = signs_number(signs, launcher->port, 1, 65535, &number, err);
	else if (!status_is_error(status))
		status = signs_number(signs, launcher->restarts, 0, UINT32_MAX, &number, err);
	if (status_is_error(status))
		return status;
	snprintf(to, size, "%s:%s:%s%llu", launcher->launch_prefix, id, machines > 1 ? "port" : "",
		(unsigned long long)number);
	return STATUS_OK;
}

enum status platform_job(const struct signs *signs, char *job, size_t size, const char **scheduler,
	struct error *err)
{
	for (const struct platform *s = platforms; s < platforms_end; s++) {
		const char *from = s->host ? s->host : s->variable;
		const char *id = s->prefix ? signs_value(signs, from) : NULL;
		if (!id || (s->also && !signs_value(signs, s->also)))
			continue;
		const char *index = s->index ? signs_value(signs, s->index) : NULL;
		if (index && s->no_index && !strcmp(index, s->no_index))
			index = NULL;
		size_t length = strlen(id);
		if (s->host) {
			size_t tail = index ? strlen(index) + 1 : length;
			if (length <= tail || id[length - tail] != '-' ||
				strcmp(id + length - tail + 1, index) != 0)
				continue;
			length -= tail;
			index = NULL;
		}
		const char *array = index && s->array_job ? signs_value(signs, s->array_job) : NULL;
		int written = snprintf(job, size, "%s-%.*s%s%s", s->prefix,
			array ? (int)strlen(array) : (int)length, array ? array : id,
			index ? "_" : "", index ? index : "");
		/* replace characters that a name must not have: "123[4].server" of PBS */
		for (char *c = job; *c; c++)
			if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789._:@+-",
				    *c))
				*c = '_';
		if (written < 0 || (size_t)written >= size)
			return error_set(err, STATUS_USAGE,
				"$%s: \"%.40s...\" is too long for a job's id", from, id);
		*scheduler = s->title;
		return STATUS_OK;
	}
	return STATUS_NO;
}

/* ---- What is watched, and who runs a job again ---- */

/* Return true if list, words with commas between them, contains word. */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == length && !strncmp(at, word, length))
			return true;
	return false;
}

static void add_word(char *list, size_t size, const char *word)
{
	size_t used = strlen(list);
	if (!has_word(list, word))
		snprintf(list + used, size - used, "%s%s", used ? "," : "", word);
}

/* STATUS_USAGE: a word of names is no platform. auto is none here: it must be the only word. */
static enum status check_names(const char *names, struct error *err)
{
	char known[128] = "", word[32];
	for (const struct platform *platform = platforms; platform < platforms_end; platform++)
		if (platform->name)
			add_word(known, sizeof(known), platform->name);
	for (const char *at = names;; at++) {
		size_t length = strcspn(at, ",");
		snprintf(word, sizeof(word), "%.*s", (int)length, at);
		if (!has_word(known, word))
			return error_set(err, STATUS_USAGE,
				"--platform: \"%s\" is not one or more of auto,%s", names, known);
		at += length;
		if (!*at)
			return STATUS_OK;
	}
}

enum status platform_choose(const char *names, const struct signs *signs,
	struct platform_choice *choice, struct error *err)
{
	bool found = !strcmp(names, "auto");
	char signals[64] = NOTICE_SIGNALS;
	const char *catcher = "signal";
	struct platform_choice made = {.certain = !found, .grace = -1};
	if (!found && check_names(names, err) != STATUS_OK)
		return STATUS_USAGE;
	/* sources[0] is kept for the signals of all chosen platforms. */
	for (const struct platform *platform = platforms; platform < platforms_end; platform++) {
		if (!platform->name ||
			(found ? !is_here(platform, signs) : !has_word(names, platform->name)))
			continue;
		add_word(made.names, sizeof(made.names), platform->name);
		if (platform->signal)
			add_word(signals, sizeof(signals), platform->signal);
		if (platform->source && !strcmp(platform->source, "slurm"))
			catcher = "slurm";
		else if (platform->source)
			snprintf(made.sources[++made.count], sizeof(made.sources[0]), "%s",
				platform->source);
		if (found)
			continue;
		if (platform->exit_code && platform->exit_code != 42)
			made.exit_code = platform->exit_code;
		if (platform->grace && platform->grace > made.grace)
			made.grace = platform->grace;
		if (platform->exit_code && platform->note)
			made.note = platform->note;
	}
	if (!*made.names)
		strcpy(made.names, "generic");
	snprintf(made.sources[0], sizeof(made.sources[0]), "%s:%s", catcher, signals);
	made.count++;
	*choice = made;
	return STATUS_OK;
}

/* "SLURM_JOB_ID is set" */
static void describe_signs(const struct platform *platform, char *text, size_t size)
{
	if (platform->dmi)
		snprintf(text, size, "DMI %s \"%s\"", dmi_words[platform->dmi], platform->dmi_text);
	else if (platform->variable)
		snprintf(text, size, "%s%s%s set", platform->variable,
			platform->also ? " and " : " is", platform->also ? platform->also : "");
	else
		snprintf(text, size, "only when named");
}

void platform_show(const struct signs *signs, struct text *text)
{
	struct platform_choice choice;
	text_addf(text, "%-8s  %-4s  %-48s  %-10s  %-8s  %-9s  %s\n", "PLATFORM", "HERE",
		"RECOGNISED BY", "ITS SIGNAL", "SOURCE", "EXIT CODE", "GRACE");
	for (const struct platform *platform = platforms; platform < platforms_end; platform++) {
		char grace[32] = "unknown", sign[64];
		if (!platform->name)
			continue;
		if (platform->grace)
			snprintf(grace, sizeof(grace), "%llds", (long long)platform->grace / 1000);
		describe_signs(platform, sign, sizeof(sign));
		text_addf(text, "%-8s  %-4s  %-48s  %-10s  %-8s  %-9d  %s\n", platform->name,
			is_here(platform, signs) ? "yes" : "no", sign,
			platform->signal ? platform->signal : "-",
			platform->source ? platform->source : "-",
			platform->exit_code ? platform->exit_code : 42, grace);
	}
	text_add(text, "\nDMI:");
	for (enum platform_dmi field = DMI_VENDOR; field < DMI_FIELDS; field++)
		text_addf(text, "%s %s \"%s\"", field == DMI_VENDOR ? "" : ",", dmi_words[field],
			signs->dmi[field]);
	if (platform_choose("auto", signs, &choice, NULL) != STATUS_OK)
		return;
	text_addf(text, "\nauto is %s, and watches:", choice.names);
	for (size_t i = 0; i < choice.count; i++)
		text_addf(text, " %s", choice.sources[i]);
	text_add(text, "\n");
}

const struct platform *platform_scheduler(
	const char *name, const struct signs *signs, struct error *err)
{
	static const struct platform none = {.name = "none"};
	const struct platform *found = !name || !strcmp(name, none.name) ? &none : NULL;
	struct text known = {0};
	for (const struct platform *p = platforms; p < platforms_end; p++) {
		if (!p->variable || !(p->exit_code || p->scontrol || p->rerun))
			continue;
		if ((!found || found == &none) &&
			(name ? !strcmp(p->name, name) : is_here(p, signs)))
			found = p;
		text_addf(&known, "%s, ", p->name);
	}
	if (!found)
		error_set(err, STATUS_USAGE, "--platform: \"%s\" is none of %snone", name,
			text_string(&known));
	text_release(&known);
	return found;
}
