/* SPDX-License-Identifier: MIT */
#include "ckpt/measured.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "ckpt/formats.h"

/*
 * "log_history" has an entry for each time the Trainer logged. Begin with the last one of this
 * step, usually of an evaluation: an evaluation may be repeated, and the first of equal names
 * counts.
 */
static void read_trainer(int root, uint64_t step, struct list_item *item)
{
	struct json_object *state = NULL;
	const char *best;
	uint64_t logged;
	if (format_read_json(root, "trainer_state.json", &state, NULL) != STATUS_OK)
		return;
	struct json_object *history = json_member(state, "log_history", json_type_array);
	for (size_t i = history ? json_object_array_length(history) : 0; i-- > 0;) {
		struct json_object *entry = json_object_array_get_idx(history, i);
		if (json_object_is_type(entry, json_type_object) &&
			json_get_unsigned(entry, "step", &logged) && logged == step)
			metrics_collect(entry, &item->checkpoint.metrics);
	}
	if (json_get_text(state, "best_model_checkpoint", &best)) {
		size_t length = strlen(best);
		while (length > 1 && best[length - 1] == '/')
			length--;
		size_t start = length;
		while (start > 0 && best[start - 1] != '/')
			start--;
		snprintf(item->best, sizeof(item->best), "%.*s", (int)(length - start),
			best + start);
	}
	json_object_put(state);
}

static void read_orbax(int root, struct list_item *item)
{
	struct json_object *object = NULL;
	if (format_read_json(root, "metrics/metrics", &object, NULL) == STATUS_OK &&
		json_object_is_type(object, json_type_object))
		metrics_collect(object, &item->checkpoint.metrics);
	json_object_put(object);
}

/* Read NAME=NUMBER from a name. '-' separates its parts, and is also the sign of a number. */
static void read_name(const char *entry, struct list_item *item)
{
	char name[METRIC_NAME_SIZE];
	for (const char *equals = strchr(entry, '='); equals; equals = strchr(equals + 1, '=')) {
		const char *part = equals;
		char *end;
		while (part > entry && part[-1] != '-')
			part--;
		double value = strtod(equals + 1, &end);
		/* strtod also reads "inf", and the dot before the ending. */
		if (end > equals + 2 && end[-1] == '.')
			end--;
		int written = snprintf(name, sizeof(name), "%.*s", (int)(equals - part), part);
		if (end == equals + 1 || written >= (int)sizeof(name) ||
			strcmp(name, "step") == 0 || strcmp(name, "epoch") == 0 ||
			(*end && *end != '-' && *end != '.'))
			continue;
		metrics_add(&item->checkpoint.metrics, name, value);
	}
}

void measured_read(const struct layout *layout, int root, const char *entry, uint64_t step,
	struct list_item *item)
{
	if (strcmp(layout->name, "hf") == 0)
		read_trainer(root, step, item);
	else if (strcmp(layout->name, "orbax") == 0)
		read_orbax(root, item);
	else if (strcmp(layout->name, "lightning") == 0 || strcmp(layout->name, "nemo") == 0 ||
		 strcmp(layout->name, "keras") == 0)
		read_name(entry, item);
}
