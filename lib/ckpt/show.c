/* SPDX-License-Identifier: MIT */
#include "ckpt/show.h"

#include <inttypes.h>

#include "base/clock.h"

void show_size(struct text *text, uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double size = (double)bytes;
	size_t unit = 0;
	for (; size >= 1023.95; unit++)
		size /= 1024;
	text_addf(text, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
}

void show_line(struct text *text, const struct checkpoint *checkpoint, int64_t now_utc,
	const char *what, const char *why)
{
	struct text tasks = {0}, size = {0}, age = {0};
	if (checkpoint->tasks)
		text_addf(&tasks, "%" PRIu64, checkpoint->tasks);
	if (checkpoint->utc) {
		show_size(&size, checkpoint->bytes);
		text_add_age(&age, now_utc - checkpoint->utc);
	}
	text_addf(text, "%10" PRIu64 " %7" PRIu64 " %5s %10s %7s  %s%s%s\n", checkpoint->step,
		checkpoint->attempt, tasks.data ? tasks.data : "-", size.data ? size.data : "-",
		age.data ? age.data : "-", what, *why ? ": " : "", why);
	text_release(&tasks);
	text_release(&size);
	text_release(&age);
}

void show_json(struct text *text, const char *directory, const struct checkpoint *checkpoint,
	const struct keep_decision *decision, const char *action)
{
	char utc[32];
	struct text path = {0};
	text_addf(text, "{\"step\": %" PRIu64 ", \"attempt\": %" PRIu64 ", \"state\": \"%s\"",
		checkpoint->step, checkpoint->attempt, checkpoint_state_name(checkpoint->state));
	if (decision) {
		text_addf(text, ", \"keep\": %s, \"done\": \"%s\", \"reason\": ",
			decision->keep ? "true" : "false", action);
		text_add_json_string(text, decision->why);
		text_add(text, ", \"rules\": [");
		for (unsigned rule = 1, shown = 0; rule <= decision->rules; rule <<= 1)
			if (decision->rules & rule)
				text_addf(text, "%s\"%s\"", shown++ ? ", " : "",
					keep_rule_name(rule));
		text_add(text, "]");
	}
	if (*checkpoint->life)
		text_addf(text, ", \"life\": \"%s\"", checkpoint->life);
	if (checkpoint->tasks)
		text_addf(text, ", \"tasks\": %" PRIu64, checkpoint->tasks);
	if (checkpoint->utc) {
		clock_format_utc(checkpoint->utc, utc);
		text_addf(text, ", \"files\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"utc\": \"%s\"",
			checkpoint->files, checkpoint->bytes, utc);
	}
	if (checkpoint->pinned)
		text_add(text, ", \"pinned\": true");
	if (checkpoint->metrics.count) {
		text_add(text, ", \"metrics\": ");
		metrics_write(&checkpoint->metrics, text);
	}
	if (*checkpoint->why) {
		text_add(text, ", \"why\": ");
		text_add_json_string(text, checkpoint->why);
	}
	text_addf(&path, "%s/%s", directory, checkpoint->name);
	text_add(text, ", \"path\": ");
	text_add_json_string(text, text_string(&path));
	text_add(text, "}");
	text_release(&path);
}

void show_element(struct text *text, size_t index, const char *directory,
	const struct checkpoint *checkpoint, const struct keep_decision *decision,
	const char *action)
{
	text_add(text, index ? ",\n " : "[\n ");
	show_json(text, directory, checkpoint, decision, action);
}

void show_state(struct text *text, const struct checkpoint *checkpoint)
{
	text_add(text, checkpoint_state_name(checkpoint->state));
	text_add(text, checkpoint->pinned ? ", pinned" : "");
}

void show_metrics(struct text *text, const struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->count; i++) {
		double value;
		text_addf(text, "%s%s=", i ? " " : "", metrics->items[i].name);
		if (metrics_get(metrics, metrics->items[i].name, &value))
			text_addf(text, "%.6g", value);
		else
			text_add(text, "-");
	}
}

void show_end(struct text *text, size_t count)
{
	text_add(text, count ? "\n]\n" : "[\n]\n");
}

void show_head(struct text *text, size_t count, const char *what)
{
	if (count)
		text_addf(text, "%10s %7s %5s %10s %7s  %s\n", "STEP", "ATTEMPT", "TASKS", "SIZE",
			"AGE", what);
}
