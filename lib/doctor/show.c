/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "doctor/findings.h"

#define VALUES_AT 16 /* column */

static const char *const answers[] = {
	[DOCTOR_SKIPPED] = "skipped",
	[DOCTOR_YES] = "yes",
	[DOCTOR_NO] = "no",
	[DOCTOR_FAILED] = "failed",
};
static const char *const forms[] = {
	[DOCTOR_ONE] = "one",
	[DOCTOR_TWO] = "two",
	[DOCTOR_NODES] = "nodes",
};

/* ---- Human-readable ---- */

void doctor_show_row(struct text *text, const char *name, const char *format, ...)
{
	char raw[2560], value[2560];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(raw, sizeof(raw), format, arguments);
	va_end(arguments);
	text_escape(value, sizeof(value), raw, strlen(raw));
	text_addf(text, "%-*s%s\n", VALUES_AT, name, value);
}

static void show_sides(const struct doctor_findings *findings, struct text *text)
{
	for (size_t k = 0; k < findings->count; k++) {
		const struct doctor_side *side = &findings->sides[k];
		int64_t ahead = findings->clock_ahead[k];
		/* True if k is the first side of its client. */
		if (doctor_count_clients(findings->sides, k + 1) >
			doctor_count_clients(findings->sides, k)) {
			doctor_show_row(text, "directory", "%s on %s", side->path, side->host);
			doctor_show_row(text, "filesystem", "%s%s%s%s%s", findings->traits[k].name,
				*side->filesystem.type ? ", " : "", side->filesystem.type,
				*side->filesystem.options ? ", " : "", side->filesystem.options);
		}
		if (strcmp(findings->sides[0].boot, side->boot))
			doctor_show_row(text, "clock",
				"%s is %" PRId64 " ms %s (to within %" PRId64 " ms)", side->host,
				ahead < 0 ? -ahead : ahead, ahead < 0 ? "behind" : "ahead",
				findings->clock_error[k]);
	}
	if (findings->form != DOCTOR_ONE && findings->count)
		doctor_show_row(text, "clients", "%zu processes, %zu mounts of their own",
			findings->count, findings->clients);
}

static void show_lock(
	const char *name, const char *what, const struct doctor_mode *mode, struct text *text)
{
	if (mode->lock == DOCTOR_YES)
		doctor_show_row(text, name, "%s exclude", what);
	else if (mode->lock == DOCTOR_NO)
		doctor_show_row(text, name, "%s DO NOT EXCLUDE: %s", what, mode->lock_why);
	else if (mode->lock == DOCTOR_FAILED)
		doctor_show_row(text, name, "%s do not work here: %s", what, mode->lock_why);
}

static void show_load(enum lock_mode which, const struct doctor_mode *mode, struct text *text)
{
	char name[32];
	snprintf(name, sizeof(name), "lock=%s", lock_mode_name(which));
	if (mode->load == DOCTOR_FAILED)
		doctor_show_row(text, name, "does not work: %s", mode->load_why);
	if (mode->load != DOCTOR_YES && mode->load != DOCTOR_NO)
		return;
	doctor_show_row(text, name,
		"%" PRIu64 " of %" PRIu64 " acknowledged rows are there; %" PRIu64
		" claims, %" PRIu64 " times another had it, %" PRIu64 " with several winners",
		mode->present, mode->acknowledged, mode->claims, mode->contested, mode->doubled);
	doctor_show_row(text, "transactions",
		"%.0f a second alone, %.0f contended, the slowest took %" PRId64 " ms", mode->alone,
		mode->contended, mode->longest);
}

const char *doctor_word(enum status verdict)
{
	return verdict == STATUS_OK ? "safe" : verdict == STATUS_NO ? "unsafe" : "could not tell";
}

void doctor_show_verdict(const struct doctor_verdict *verdict, struct text *text)
{
	doctor_show_row(text, "verdict", "%s: %s", doctor_word(verdict->status), verdict->reason);
	if (*verdict->scope)
		doctor_show_row(text, "", "%s", verdict->scope);
	for (int i = 0; i < 2; i++)
		if (*verdict->change[i])
			doctor_show_row(text, i == 0 ? "change" : "", "%s", verdict->change[i]);
}

void doctor_show_text(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text)
{
	if (findings->store && findings->mode_from)
		doctor_show_row(text, "store", "%s, lock=%s (%s)", findings->store,
			lock_mode_name(findings->mode), findings->mode_from);
	else if (findings->store)
		doctor_show_row(text, "store", "%s", findings->store);
	show_sides(findings, text);
	show_lock("locks", "of open files", &findings->modes[LOCK_FCNTL], text);
	show_lock("", "by names", &findings->modes[LOCK_LINK], text);
	for (enum lock_mode mode = LOCK_FCNTL; mode <= LOCK_LINK; mode++)
		/* Do not show that the other mode is refused here. */
		if (mode == findings->mode || findings->modes[mode].load_status != STATUS_USAGE)
			show_load(mode, &findings->modes[mode], text);
	if (findings->noticed >= 0)
		doctor_show_row(text, "noticed after", "%" PRId64 " ms, at most %" PRId64 " ms",
			findings->noticed, findings->noticed_longest);
	if (findings->quick)
		doctor_show_row(
			text, "left out", "contention for longer, waiting for changes (--quick)");
	for (size_t i = 0; i < verdict->warning_count; i++)
		doctor_show_row(text, "warning", "%s", verdict->warnings[i]);
	if (*findings->fixed)
		doctor_show_row(text, "fixed", "%s", findings->fixed);
	doctor_show_verdict(verdict, text);
}

/* ---- JSON ---- */

static struct json_object *put_object(struct json_object *parent, const char *name)
{
	struct json_object *object = json_object_new_object();
	json_object_object_add(parent, name, object);
	return object;
}

/* Add a number; null: not known. */
static void put_known(struct json_object *object, const char *name, int64_t value)
{
	json_object_object_add(object, name, value < 0 ? NULL : json_object_new_int64(value));
}

static void put_list(
	struct json_object *parent, const char *name, const char *texts, size_t count, size_t size)
{
	struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < count; i++)
		if (texts[i * size])
			json_object_array_add(list, json_object_new_string(texts + i * size));
	json_object_object_add(parent, name, list);
}

static struct json_object *side_object(const struct doctor_findings *findings, size_t k)
{
	static const char *const reaches[] = {
		[FILESYSTEM_LOCAL] = "local",
		[FILESYSTEM_SHARED] = "shared",
		[FILESYSTEM_NODE] = "node",
		[FILESYSTEM_UNKNOWN] = "unknown",
	};
	const struct doctor_side *side = &findings->sides[k];
	struct json_object *object = json_object_new_object();
	json_put_text(object, "host", side->host);
	json_put_text(object, "path", side->path);
	json_put_text(object, "filesystem", findings->traits[k].name);
	json_put_text(object, "type", side->filesystem.type);
	json_put_text(object, "options", side->filesystem.options);
	json_put_text(object, "locks_reach", reaches[findings->traits[k].reach]);
	json_put_bool(object, "trusted", !*side->distrust);
	json_put_signed(object, "clock_ahead_ms", findings->clock_ahead[k]);
	json_put_signed(object, "clock_error_ms", findings->clock_error[k]);
	return object;
}

static void put_mode(
	struct json_object *parent, enum lock_mode which, const struct doctor_mode *mode)
{
	struct json_object *object = put_object(parent, lock_mode_name(which));
	json_put_text(object, "excludes", answers[mode->lock]);
	json_put_text(object, "excludes_why", mode->lock_why);
	json_put_text(object, "keeps", answers[mode->load]);
	json_put_text(object, "keeps_why", mode->load_why);
	json_put_unsigned(object, "acknowledged", mode->acknowledged);
	json_put_unsigned(object, "present", mode->present);
	json_put_unsigned(object, "claims", mode->claims);
	json_put_unsigned(object, "contested", mode->contested);
	json_put_unsigned(object, "several", mode->doubled);
	put_known(object, "alone_per_second", mode->alone > 0 ? (int64_t)mode->alone : -1);
	put_known(object, "contended_per_second",
		mode->contended > 0 ? (int64_t)mode->contended : -1);
	json_put_signed(object, "longest_ms", mode->longest);
}

void doctor_put_verdict(struct json_object *object, const struct doctor_verdict *verdict)
{
	json_put_text(object, "verdict", doctor_word(verdict->status));
	json_put_signed(object, "exit", verdict->status);
	json_put_text(object, "reason", verdict->reason);
	json_put_text(object, "scope", verdict->scope);
	put_list(object, "change", verdict->change[0], 2, sizeof(verdict->change[0]));
	put_list(object, "warnings", verdict->warnings[0], verdict->warning_count,
		sizeof(verdict->warnings[0]));
}

void doctor_show_json(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text)
{
	struct json_object *object = json_object_new_object(), *sides = json_object_new_array();
	doctor_put_verdict(object, verdict);
	json_put_text(object, "fixed", findings->fixed);
	json_put_text(object, "form", forms[findings->form]);
	json_put_bool(object, "quick", findings->quick);
	json_put_text(object, "directory", findings->directory);
	json_object_object_add(
		object, "store", findings->store ? json_object_new_string(findings->store) : NULL);
	json_put_bool(object, "exists", findings->exists);
	json_put_text(object, "lock", lock_mode_name(findings->mode));
	json_put_text(object, "lock_from", findings->mode_from ? findings->mode_from : "");
	for (size_t k = 0; k < findings->count; k++)
		json_object_array_add(sides, side_object(findings, k));
	json_object_object_add(object, "sides", sides);
	json_put_unsigned(object, "clients", findings->clients);
	struct json_object *modes = put_object(object, "modes");
	for (enum lock_mode mode = LOCK_FCNTL; mode <= LOCK_LINK; mode++)
		put_mode(modes, mode, &findings->modes[mode]);
	put_known(object, "noticed_ms", findings->noticed);
	put_known(object, "noticed_longest_ms", findings->noticed_longest);
	json_add_line(object, text);
	text_add(text, "\n");
	json_object_put(object);
}
