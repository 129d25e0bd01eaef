/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "store/doctor_findings.h"

#define VALUES_AT 16 /* column */

static const char *const answers[] = {
	[DOCTOR_SKIPPED] = "skipped",
	[DOCTOR_YES] = "yes",
	[DOCTOR_NO] = "no",
	[DOCTOR_FAILED] = "failed",
};

static const char *form_name(enum doctor_form form)
{
	return form == DOCTOR_ONE ? "one" : form == DOCTOR_TWO ? "two" : "nodes";
}

/* ---- For people ---- */

/* What people see of the outside has its control characters escaped. */
__attribute__((format(printf, 3, 4))) static void row(
	struct text *text, const char *name, const char *format, ...)
{
	char raw[2560], value[2560];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(raw, sizeof(raw), format, arguments);
	va_end(arguments);
	text_escape(value, sizeof(value), raw, strlen(raw));
	text_addf(text, "%-*s%s\n", VALUES_AT, name, value);
}

static void add_bytes(struct text *text, int64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
	double value = (double)bytes / 1024;
	size_t unit = 0;
	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	text_addf(text, "%.1f %s", value, units[unit]);
}

static void show_side(const struct doctor_side *side, bool new_host, struct text *text)
{
	struct text space = {0};
	row(text, "directory", "%s on %s", side->path, side->host);
	row(text, "filesystem", "%s%s%s%s%s", side->traits.name ? side->traits.name : "unknown",
		*side->filesystem.type ? ", " : "", side->filesystem.type,
		*side->filesystem.options ? ", " : "", side->filesystem.options);
	if (new_host)
		row(text, "versions", "%s, SQLite %s, preempt-tools %s", side->kernel, side->sqlite,
			side->version);
	if (side->free_bytes >= 0) {
		add_bytes(&space, side->free_bytes);
		text_add(&space, " free");
		if (side->free_inodes >= 0)
			text_addf(&space, ", %" PRId64 " files", side->free_inodes);
	}
	if (side->quota_bytes >= 0) {
		text_add(&space, space.length ? "; of the quota " : "of the quota ");
		add_bytes(&space, side->quota_bytes);
		text_add(&space, " left");
	} else {
		text_addf(&space, "%squota %s", space.length ? "; " : "",
			*side->quota ? side->quota : "none");
	}
	row(text, "space", "%s", text_string(&space));
	text_release(&space);
}

static void show_sides(const struct doctor_findings *findings, struct text *text)
{
	const struct doctor_side *first = findings->sides;
	for (size_t i = 0; i < findings->count; i++) {
		const struct doctor_side *side = &findings->sides[i];
		bool again = false, new_host = true;
		for (size_t k = 0; k < i; k++) {
			bool same = !strcmp(side->boot, findings->sides[k].boot);
			new_host &= !same;
			again |= same && side->device == findings->sides[k].device;
		}
		if (!again)
			show_side(side, new_host, text);
		if (i && strcmp(first->boot, side->boot))
			row(text, "clock", "%s is %" PRId64 " ms %s (to within %" PRId64 " ms)",
				side->host,
				side->clock_ahead < 0 ? -side->clock_ahead : side->clock_ahead,
				side->clock_ahead < 0 ? "behind" : "ahead", side->clock_error);
	}
	if (findings->form != DOCTOR_ONE && findings->count)
		row(text, "clients", "%zu processes, %zu mounts of their own", findings->count,
			findings->clients);
}

static void show_check(const char *name, const char *what, const char *holds, const char *broken,
	const struct doctor_check *check, struct text *text)
{
	switch (check->answer) {
	case DOCTOR_SKIPPED: return;
	case DOCTOR_YES:
		if (check->none)
			row(text, name, "%s %s (%" PRIu64 " rounds, %" PRIu64 " without any)", what,
				holds, check->rounds, check->none);
		else if (check->rounds > 1)
			row(text, name, "%s %s (%" PRIu64 " rounds)", what, holds, check->rounds);
		else
			row(text, name, "%s %s", what, holds);
		break;
	case DOCTOR_NO:
		row(text, name, "%s %s%s%s", what, broken, *check->why ? ": " : "", check->why);
		break;
	case DOCTOR_FAILED: row(text, name, "%s cannot be had: %s", what, check->why); break;
	}
}

static void add_stale(struct text *text, const char *what, int64_t stale, int64_t looked)
{
	if (stale >= looked)
		text_addf(text, "%s never (in %" PRId64 " ms)", what, looked);
	else
		text_addf(text, "%s %" PRId64 " ms", what, stale);
}

static void show_stale(const struct doctor_stale *stale, struct text *text)
{
	struct text line = {0};
	if (!stale->measured)
		return;
	add_stale(&line, "file kept open", stale->held, stale->looked);
	add_stale(&line, "; reopened", stale->reopened, stale->looked);
	add_stale(&line, "; reopened, pages dropped", stale->dropped, stale->looked);
	row(text, "writes seen in", "%s", text_string(&line));
	text_release(&line);
}

static void show_load(const struct doctor_load *load, struct text *text)
{
	char name[32];
	struct text speed = {0};
	if (load->answer == DOCTOR_SKIPPED)
		return;
	snprintf(name, sizeof(name), "lock=%s", lock_mode_name(load->mode));
	if (load->answer == DOCTOR_FAILED) {
		row(text, name, "does not work: %s", load->why);
		return;
	}
	row(text, name,
		"%" PRIu64 " of %" PRIu64 " acknowledged rows are there; %" PRIu64
		" claims, %" PRIu64 " contested, %" PRIu64 " with several winners%s%s",
		load->present, load->acknowledged, load->claims, load->contested, load->several,
		*load->why ? "; " : "", load->why);
	if (load->alone > 0)
		text_addf(&speed, "%.0f a second alone", load->alone);
	if (load->contended > 0)
		text_addf(&speed, "%s%.0f contended, the slowest took %" PRId64 " ms",
			speed.length ? ", " : "", load->contended, load->longest);
	if (speed.length)
		row(text, "transactions", "%s", text_string(&speed));
	text_release(&speed);
}

void doctor_show_verdict(const struct doctor_verdict *verdict, struct text *text)
{
	row(text, "verdict", "%s: %s", verdict->word, verdict->reason);
	if (*verdict->scope)
		row(text, "", "%s", verdict->scope);
	for (int i = 0; i < 2; i++)
		if (*verdict->change[i])
			row(text, i == 0 ? "change" : "", "%s", verdict->change[i]);
}

void doctor_show_text(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text)
{
	if (findings->store && findings->mode_from)
		row(text, "store", "%s, lock=%s (%s)", findings->store,
			lock_mode_name(findings->mode), findings->mode_from);
	else if (findings->store)
		row(text, "store", "%s", findings->store);
	show_sides(findings, text);
	show_check("locks", "of open files", "exclude", "DO NOT EXCLUDE", &findings->ofd, text);
	show_check("", "POSIX", "exclude", "DO NOT EXCLUDE", &findings->posix, text);
	show_check("names", "link", "has one winner", "FAILS", &findings->link, text);
	show_check("", "O_EXCL", "has one winner", "FAILS", &findings->create, text);
	show_check("", "rename", "has one winner", "FAILS", &findings->rename, text);
	show_check("", "rename of directories", "has one winner", "FAILS", &findings->take, text);
	show_stale(&findings->stale, text);
	show_load(&findings->load, text);
	show_load(&findings->other, text);
	if (findings->noticed >= 0)
		row(text, "noticed after", "%" PRId64 " ms, at most %" PRId64 " ms",
			findings->noticed, findings->noticed_longest);
	if (findings->quick)
		row(text, "left out",
			"staleness, contention for longer, waiting for changes (--quick)");
	for (size_t i = 0; i < verdict->warning_count; i++)
		row(text, "warning", "%s", verdict->warnings[i]);
	if (*findings->fixed)
		row(text, "fixed", "%s", findings->fixed);
	doctor_show_verdict(verdict, text);
}

/* ---- For programs ---- */

static struct json_object *put_object(struct json_object *parent, const char *name)
{
	struct json_object *object = json_object_new_object();
	json_object_object_add(parent, name, object);
	return object;
}

/* A number, or null where it is not known. */
static void put_known(struct json_object *object, const char *name, int64_t value)
{
	json_object_object_add(object, name, value < 0 ? NULL : json_object_new_int64(value));
}

static void put_double(struct json_object *object, const char *name, double value)
{
	char digits[32];
	snprintf(digits, sizeof(digits), "%.1f", value);
	json_object_object_add(
		object, name, value > 0 ? json_object_new_double_s(value, digits) : NULL);
}

static struct json_object *side_object(const struct doctor_side *side)
{
	static const char *const reaches[] = {
		[FILESYSTEM_LOCAL] = "local",
		[FILESYSTEM_SHARED] = "shared",
		[FILESYSTEM_NODE] = "node",
		[FILESYSTEM_UNKNOWN] = "unknown",
	};
	char magic[32], device[32];
	struct json_object *object = json_object_new_object();
	snprintf(magic, sizeof(magic), "%" PRIx64, side->filesystem.magic);
	snprintf(device, sizeof(device), "%" PRIx64, side->device);
	json_put_text(object, "host", side->host);
	json_put_text(object, "path", side->path);
	json_put_text(object, "device", device);
	json_put_text(object, "filesystem", side->traits.name ? side->traits.name : "");
	json_put_text(object, "magic", magic);
	json_put_text(object, "type", side->filesystem.type);
	json_put_text(object, "options", side->filesystem.options);
	json_put_text(object, "locks_reach", reaches[side->traits.reach]);
	json_put_bool(object, "trusted", side->trusted);
	put_known(object, "free_bytes", side->free_bytes);
	put_known(object, "free_files", side->free_inodes);
	put_known(object, "quota_bytes", side->quota_bytes);
	put_known(object, "quota_files", side->quota_inodes);
	json_put_bool(object, "local_queue", side->queue);
	json_put_text(object, "kernel", side->kernel);
	json_put_text(object, "sqlite", side->sqlite);
	json_put_text(object, "version", side->version);
	json_put_signed(object, "clock_ahead_ms", side->clock_ahead);
	json_put_signed(object, "clock_error_ms", side->clock_error);
	return object;
}

static void put_check(
	struct json_object *parent, const char *name, const struct doctor_check *check)
{
	struct json_object *object = put_object(parent, name);
	json_put_text(object, "answer", answers[check->answer]);
	json_put_unsigned(object, "rounds", check->rounds);
	json_put_unsigned(object, "several", check->several);
	json_put_unsigned(object, "none", check->none);
	json_put_text(object, "why", check->why);
}

static void put_load(struct json_object *parent, const char *name, const struct doctor_load *load)
{
	if (load->answer == DOCTOR_SKIPPED) {
		json_object_object_add(parent, name, NULL);
		return;
	}
	struct json_object *object = put_object(parent, name);
	json_put_text(object, "lock", lock_mode_name(load->mode));
	json_put_text(object, "answer", answers[load->answer]);
	json_put_unsigned(object, "acknowledged", load->acknowledged);
	json_put_unsigned(object, "present", load->present);
	json_put_unsigned(object, "claims", load->claims);
	json_put_unsigned(object, "contested", load->contested);
	json_put_unsigned(object, "several", load->several);
	json_put_unsigned(object, "none", load->none);
	put_double(object, "alone_per_second", load->alone);
	put_double(object, "contended_per_second", load->contended);
	json_put_signed(object, "longest_ms", load->longest);
	json_put_text(object, "why", load->why);
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

static void put_store(struct json_object *object, const struct doctor_findings *findings)
{
	json_object_object_add(
		object, "store", findings->store ? json_object_new_string(findings->store) : NULL);
	json_put_bool(object, "exists", findings->exists);
	json_put_text(object, "lock", lock_mode_name(findings->mode));
	json_put_text(object, "lock_from", findings->mode_from ? findings->mode_from : "");
}

void doctor_show_json(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text)
{
	const struct doctor_stale *stale = &findings->stale;
	struct json_object *object = json_object_new_object();
	json_put_text(object, "verdict", verdict->word);
	json_put_signed(object, "exit", verdict->status);
	json_put_text(object, "reason", verdict->reason);
	json_put_text(object, "scope", verdict->scope);
	put_list(object, "change", verdict->change[0], 2, sizeof(verdict->change[0]));
	put_list(object, "warnings", verdict->warnings[0], verdict->warning_count,
		sizeof(verdict->warnings[0]));
	json_put_text(object, "fixed", findings->fixed);
	json_put_text(object, "form", form_name(findings->form));
	json_put_bool(object, "quick", findings->quick);
	json_put_text(object, "directory", findings->directory);
	put_store(object, findings);
	struct json_object *sides = json_object_new_array();
	for (size_t i = 0; i < findings->count; i++)
		json_object_array_add(sides, side_object(&findings->sides[i]));
	json_object_object_add(object, "sides", sides);
	json_put_unsigned(object, "clients", findings->clients);
	struct json_object *checks = put_object(object, "checks");
	put_check(checks, "locks_ofd", &findings->ofd);
	put_check(checks, "locks_posix", &findings->posix);
	put_check(checks, "link", &findings->link);
	put_check(checks, "create", &findings->create);
	put_check(checks, "rename", &findings->rename);
	put_check(checks, "take", &findings->take);
	if (stale->measured) {
		struct json_object *seen = put_object(object, "stale_ms");
		put_known(seen, "open", stale->held >= stale->looked ? -1 : stale->held);
		put_known(
			seen, "reopened", stale->reopened >= stale->looked ? -1 : stale->reopened);
		put_known(seen, "dropped", stale->dropped >= stale->looked ? -1 : stale->dropped);
		json_put_signed(seen, "looked", stale->looked);
	} else {
		json_object_object_add(object, "stale_ms", NULL);
	}
	put_load(object, "load", &findings->load);
	put_load(object, "other_load", &findings->other);
	put_known(object, "noticed_ms", findings->noticed);
	put_known(object, "noticed_longest_ms", findings->noticed_longest);
	text_addf(text, "%s\n", json_line(object));
	json_object_put(object);
}
