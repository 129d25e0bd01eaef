/* SPDX-License-Identifier: MIT */
#include "ckpt/metrics.h"

#include <errno.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct metric *find(const struct metrics *metrics, const char *name)
{
	for (size_t i = 0; i < metrics->count; i++)
		if (strcmp(metrics->items[i].name, name) == 0)
			return (struct metric *)&metrics->items[i];
	return NULL;
}

/* Whether name is valid for a metric; if not, err says why. */
static enum status check_name(const char *name, const char *what, struct error *err)
{
	size_t length = strlen(name);
	bool fits = length > 0 && length < METRIC_NAME_SIZE && text_is_utf8(name, length);
	for (const char *at = name; *at; at++)
		fits = fits && (unsigned char)*at >= ' ' && *at != 0x7f && *at != '=';
	if (!fits)
		return error_set(err, STATUS_USAGE,
			"%s: \"%s\" cannot name a metric: 1 to %d bytes of UTF-8 without '=' and "
			"control characters",
			what, name, METRIC_NAME_SIZE - 1);
	return STATUS_OK;
}

/* Read a decimal number, or one of these words (any case), with nothing before or after it. */
static bool read_value(const char *text, double *value)
{
	static const char *const words[] = {"nan", "inf", "-inf", "+inf", "infinity", "-infinity"};
	char *end;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(text, words[i]) == 0) {
			*value = NAN;
			return true;
		}
	if (!*text || strspn(text, "+-.0123456789eE") != strlen(text))
		return false;
	errno = 0;
	*value = strtod(text, &end);
	/* A number too close to 0 for a double becomes 0; one too large becomes infinite. */
	if (!isfinite(*value))
		*value = NAN;
	return *end == '\0';
}

enum status metrics_read(const char *text, struct metrics *metrics, struct error *err)
{
	struct metric metric = {0};
	const char *equals = strrchr(text, '=');
	if (!equals)
		return error_set(err, STATUS_USAGE,
			"--metric: \"%s\" is not NAME=VALUE, as in loss=0.25", text);
	size_t length = (size_t)(equals - text);
	snprintf(metric.name, sizeof(metric.name), "%.*s",
		(int)(length < sizeof(metric.name) ? length : sizeof(metric.name) - 1), text);
	if (length >= sizeof(metric.name))
		return error_set(err, STATUS_USAGE,
			"--metric: the name in \"%s\" is longer than %d bytes", text,
			METRIC_NAME_SIZE - 1);
	enum status status = check_name(metric.name, "--metric", err);
	if (status != STATUS_OK)
		return status;
	if (!read_value(equals + 1, &metric.value))
		return error_set(err, STATUS_USAGE,
			"--metric %s: \"%s\" is not a number; write 0.25, -3e-5 or nan",
			metric.name, equals + 1);
	if (find(metrics, metric.name))
		return error_set(err, STATUS_USAGE, "--metric %s: given twice", metric.name);
	if (metrics->count == METRICS_MAX)
		return error_set(err, STATUS_USAGE, "--metric: more than %d given", METRICS_MAX);
	metrics->items[metrics->count++] = metric;
	return STATUS_OK;
}

void metrics_add(struct metrics *metrics, const char *name, double value)
{
	if (metrics->count == METRICS_ROOM || find(metrics, name) ||
		check_name(name, "", NULL) != STATUS_OK)
		return;
	struct metric *metric = &metrics->items[metrics->count++];
	snprintf(metric->name, sizeof(metric->name), "%s", name);
	metric->value = isfinite(value) ? value : NAN;
}

static bool is_in(const char *name, const char *const *names)
{
	for (; names && *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

void metrics_collect(struct json_object *object, const char *const *except, struct metrics *metrics)
{
	if (!json_object_is_type(object, json_type_object))
		return;
	json_object_object_foreach(object, name, value)
	{
		if (!is_in(name, except) && (json_object_is_type(value, json_type_double) ||
						    json_object_is_type(value, json_type_int)))
			metrics_add(metrics, name, json_object_get_double(value));
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
	for (size_t i = 0; i < from->count && metrics->count < METRICS_MAX; i++)
		if (!find(metrics, from->items[i].name))
			metrics->items[metrics->count++] = from->items[i];
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
	if (object) {
		json_object_object_foreach(object, name, value)
		{
			struct metric *metric = &read.items[read.count];
			bool number = json_object_is_type(value, json_type_double) ||
				      json_object_is_type(value, json_type_int);
			if (read.count == METRICS_MAX || (value && !number) ||
				check_name(name, "", NULL) != STATUS_OK)
				return false;
			snprintf(metric->name, sizeof(metric->name), "%s", name);
			metric->value = number ? json_object_get_double(value) : NAN;
			read.count++;
		}
	}
	*metrics = read;
	return true;
}
