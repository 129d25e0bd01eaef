/* SPDX-License-Identifier: MIT */
#include "ckpt/metrics.h"

#include <ctype.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

static struct metric *find(const struct metrics *metrics, const char *name)
{
	for (size_t i = 0; i < metrics->count; i++)
		if (strcmp(metrics->items[i].name, name) == 0)
			return (struct metric *)&metrics->items[i];
	return NULL;
}

/* Add a metric, up to this number. STATUS_USAGE: that is not possible. */
static enum status add(
	struct metrics *metrics, size_t room, const char *name, double value, struct error *err)
{
	size_t length = strlen(name);
	bool fits = length > 0 && length < METRIC_NAME_SIZE && text_is_utf8(name, length);
	for (const char *at = name; *at; at++)
		fits = fits && (unsigned char)*at >= ' ' && *at != 0x7f && *at != '=';
	if (!fits)
		return error_set(err, STATUS_USAGE,
			"--metric: \"%s\" cannot name a metric: 1 to %d bytes of UTF-8 without '=' "
			"and control characters",
			name, METRIC_NAME_SIZE - 1);
	if (find(metrics, name))
		return error_set(err, STATUS_USAGE, "--metric %s: given twice", name);
	if (metrics->count >= room)
		return error_set(err, STATUS_USAGE, "--metric: more than %zu given", room);
	struct metric *metric = &metrics->items[metrics->count++];
	memcpy(metric->name, name, length + 1);
	metric->value = isfinite(value) ? value : NAN;
	return STATUS_OK;
}

enum status metrics_read(const char *text, struct metrics *metrics, struct error *err)
{
	const char *equals = strrchr(text, '=');
	char *end;
	if (!equals)
		return error_set(err, STATUS_USAGE,
			"--metric: \"%s\" is not NAME=VALUE, as in loss=0.25", text);
	/* A number too close to 0 for a double becomes 0; one too large becomes infinite. */
	double value = strtod(equals + 1, &end);
	if (!equals[1] || *end || isspace((unsigned char)equals[1]) || strpbrk(equals, "xX("))
		return error_set(err, STATUS_USAGE,
			"--metric: the value in \"%s\" is not a number; write 0.25, -3e-5 or nan",
			text);
	char *name = xprintf("%.*s", (int)(equals - text), text);
	enum status status = add(metrics, METRICS_MAX, name, value, err);
	free(name);
	return status;
}

void metrics_add(struct metrics *metrics, const char *name, double value)
{
	if (strcmp(name, "step") != 0 && strcmp(name, "epoch") != 0)
		(void)add(metrics, METRICS_ROOM, name, value, NULL);
}

static bool is_number(struct json_object *value)
{
	return json_object_is_type(value, json_type_double) ||
	       json_object_is_type(value, json_type_int);
}

void metrics_collect(struct json_object *object, struct metrics *metrics)
{
	if (!json_object_is_type(object, json_type_object))
		return;
	json_object_object_foreach(object, name, value)
	{
		if (is_number(value) || !value)
			metrics_add(metrics, name, value ? json_object_get_double(value) : NAN);
	}
}

bool metrics_get(const struct metrics *metrics, const char *name, double *value)
{
	const struct metric *metric = find(metrics, name);
	if (!metric || !isfinite(metric->value))
		return false;
	*value = metric->value;
	return true;
}

void metrics_merge(struct metrics *metrics, const struct metrics *from)
{
	for (size_t i = 0; i < from->count; i++)
		(void)add(metrics, METRICS_MAX, from->items[i].name, from->items[i].value, NULL);
}

void metrics_write(const struct metrics *metrics, struct text *text)
{
	text_add(text, "{");
	for (size_t i = 0; i < metrics->count; i++) {
		const struct metric *metric = &metrics->items[i];
		char number[40] = "null";
		for (int digits = 15; isfinite(metric->value) && digits <= 17; digits++) {
			snprintf(number, sizeof(number), "%.*g", digits, metric->value);
			if (strtod(number, NULL) == metric->value)
				break;
		}
		text_add(text, i ? ", " : "");
		text_add_json_string(text, metric->name);
		text_addf(text, ": %s", number);
	}
	text_add(text, "}");
}

bool metrics_parse(struct json_object *object, struct metrics *metrics)
{
	struct metrics read = {0};
	if (object && !json_object_is_type(object, json_type_object))
		return false;
	struct lh_entry *entry = object ? json_object_get_object(object)->head : NULL;
	for (; entry; entry = entry->next) {
		struct json_object *value = (struct json_object *)lh_entry_v(entry);
		double number = value ? json_object_get_double(value) : NAN;
		if ((value && !is_number(value)) ||
			add(&read, METRICS_MAX, lh_entry_k(entry), number, NULL) != STATUS_OK)
			return false;
	}
	*metrics = read;
	return true;
}
