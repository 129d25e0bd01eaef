/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json_fields.h"
#include "doctor/findings.h"

#define VALUES_AT 16 /* column */

const char *doctor_word(enum status verdict)
{
	return verdict == STATUS_OK ? "safe" : verdict == STATUS_NO ? "unsafe" : "could not tell";
}

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

void doctor_show_verdict(const struct doctor_verdict *verdict, struct text *text)
{
	for (size_t i = 0; i < verdict->warning_count; i++)
		doctor_show_row(text, "warning", "%s", verdict->warnings[i]);
	doctor_show_row(text, "verdict", "%s: %s", doctor_word(verdict->status), verdict->reason);
	if (*verdict->scope)
		doctor_show_row(text, "", "%s", verdict->scope);
	if (*verdict->change)
		doctor_show_row(text, "change", "%s", verdict->change);
}

void doctor_show_text(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text)
{
	const struct doctor_request *request = findings->request;
	const struct doctor_side *sides = findings->sides;
	if (request->url)
		doctor_show_row(text, "store", "%s", request->url);
	for (size_t k = 0; k < findings->count; k++) {
		/* The first side of its client. */
		if (doctor_count_clients(sides, k + 1) == doctor_count_clients(sides, k))
			continue;
		doctor_show_row(text, "directory", "%s on %s", sides[k].path, sides[k].host);
		doctor_show_row(text, "filesystem", "%s%s%s%s%s", sides[k].filesystem,
			*sides[k].type ? ", " : "", sides[k].type, *sides[k].options ? ", " : "",
			sides[k].options);
	}
	if (findings->count)
		doctor_show_row(text, "clients", "%zu processes, %" PRIu64 " mount%s",
			findings->count, findings->clients, findings->clients == 1 ? "" : "s");
	if (findings->tried) {
		doctor_show_row(text, sides[0].lock,
			"%" PRIu64 " of %" PRIu64 " acknowledged rows are there; %" PRIu64
			" claims, %" PRIu64 " times another had it, %" PRIu64
			" with several winners",
			findings->present, findings->acknowledged, findings->claims,
			findings->contested, findings->several);
		doctor_show_row(text, "transactions",
			"%" PRIu64 " a second, the slowest took %" PRId64 " ms",
			findings->per_second, findings->longest);
	}
	if (sides[0].pinged)
		doctor_show_row(text, "noticed after", "%" PRId64 " ms, at most %" PRId64 " ms",
			sides[0].noticed, sides[0].noticed_longest);
	doctor_show_verdict(verdict, text);
}

/* ---- JSON ---- */

struct json_object *doctor_begin_json(const struct doctor_verdict *verdict)
{
	struct json_object *object = json_object_new_object(), *list = json_object_new_array();
	json_put_text(object, "verdict", doctor_word(verdict->status));
	json_put_signed(object, "exit", verdict->status);
	json_put_text(object, "reason", verdict->reason);
	json_put_text(object, "scope", verdict->scope);
	json_put_text(object, "change", verdict->change);
	for (size_t i = 0; i < verdict->warning_count; i++)
		json_object_array_add(list, json_object_new_string(verdict->warnings[i]));
	json_object_object_add(object, "warnings", list);
	return object;
}

void doctor_end_json(struct json_object *object, struct text *text)
{
	json_add_line(object, text);
	text_add(text, "\n");
	json_object_put(object);
}

#define SIDE(member) JSON_MEMBER(struct doctor_side, member)
static const struct json_field side_fields[] = {
	{"host", JSON_TEXT, JSON_SHOWN, SIDE(host)},
	{"path", JSON_TEXT, JSON_SHOWN, SIDE(path)},
	{"filesystem", JSON_TEXT, JSON_SHOWN, SIDE(filesystem)},
	{"type", JSON_TEXT, JSON_SHOWN, SIDE(type)},
	{"options", JSON_TEXT, JSON_SHOWN, SIDE(options)},
	{"local", JSON_BOOL, JSON_SHOWN, SIDE(local)},
	{"acknowledged", JSON_UNSIGNED, JSON_SHOWN, SIDE(rows)},
	{"present", JSON_UNSIGNED, JSON_SHOWN, SIDE(present)},
	{0},
};
#define FOUND(member) JSON_MEMBER(struct doctor_findings, member)
#define TRIED	      JSON_PRESENT(struct doctor_findings, tried)
#define PINGED	      JSON_PRESENT(struct doctor_findings, sides[0].pinged)
static const struct json_field trial_fields[] = {
	{"clients", JSON_UNSIGNED, JSON_SHOWN, FOUND(clients)},
	{"acknowledged", JSON_UNSIGNED, 0, FOUND(acknowledged), TRIED},
	{"present", JSON_UNSIGNED, 0, FOUND(present), TRIED},
	{"claims", JSON_UNSIGNED, 0, FOUND(claims), TRIED},
	{"contested", JSON_UNSIGNED, 0, FOUND(contested), TRIED},
	{"several", JSON_UNSIGNED, 0, FOUND(several), TRIED},
	{"per_second", JSON_UNSIGNED, 0, FOUND(per_second), TRIED},
	{"longest", JSON_TIME, JSON_SECONDS, FOUND(longest), TRIED},
	{"lock", JSON_TEXT, 0, FOUND(sides[0].lock)},
	{"noticed", JSON_TIME, JSON_SECONDS, FOUND(sides[0].noticed), PINGED},
	{"noticed_longest", JSON_TIME, JSON_SECONDS, FOUND(sides[0].noticed_longest), PINGED},
	{0},
};

void doctor_show_json(const struct doctor_findings *findings, const struct doctor_verdict *verdict,
	struct text *text)
{
	struct json_object *object = doctor_begin_json(verdict), *sides = json_object_new_array();
	const struct doctor_request *request = findings->request;
	json_put_text(object, "directory", findings->directory);
	if (request->url)
		json_put_text(object, "store", request->url);
	if (request->url && findings->count && findings->sides[0].store <= STATUS_NO)
		json_put_bool(object, "exists", findings->sides[0].store == STATUS_OK);
	json_put_bool(object, "quick", request->quick);
	for (size_t k = 0; k < findings->count; k++) {
		struct json_object *side = json_object_new_object();
		json_show_fields(side_fields, &findings->sides[k], side);
		json_object_array_add(sides, side);
	}
	json_object_object_add(object, "sides", sides);
	json_show_fields(trial_fields, findings, object);
	doctor_end_json(object, text);
}
