/* SPDX-License-Identifier: MIT */
#include "live/progress.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define LONGEST_TICK  2500 /* ms: count at most this between two calls: the rest was a pause */
#define WARM_UP_STEPS 2	   /* steps in "warm-up": they may be slow (compilation) */

static const struct progress_section *find(const struct progress_rules *rules, const char *name)
{
	for (size_t i = 0; i < rules->count; i++)
		if (!strcmp(rules->sections[i].name, name))
			return &rules->sections[i];
	return NULL;
}

struct progress_section *progress_section(struct progress_rules *rules, const char *name)
{
	const struct progress_section *found = find(rules, name);
	if (found)
		return &rules->sections[found - rules->sections];
	if (rules->count == PROGRESS_SECTIONS)
		return NULL;
	struct progress_section *section = &rules->sections[rules->count++];
	*section = (struct progress_section){0};
	snprintf(section->name, sizeof(section->name), "%s", name);
	return section;
}

enum status progress_add_section(struct progress_rules *rules, const char *text, struct error *err)
{
	char name[PROGRESS_NAME];
	int64_t limit;
	const char *equals = strchr(text, '=');
	if (!equals || equals == text || (size_t)(equals - text) >= sizeof(name))
		return error_set(err, STATUS_USAGE,
			"--section: \"%s\" is not NAME=D, with a name of at most %d characters",
			text, PROGRESS_NAME - 1);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
	enum status status = parse_name(name, "--section", err);
	if (status == STATUS_OK)
		status = parse_duration(equals + 1, &limit, "--section", err);
	if (status != STATUS_OK)
		return status;
	struct progress_section *section = progress_section(rules, name);
	if (!section)
		return error_set(err, STATUS_USAGE, "--section: at most %d", PROGRESS_SECTIONS);
	section->limit = limit;
	return STATUS_OK;
}

bool progress_is_wanted(const struct progress_rules *rules)
{
	return rules->limit > 0 || rules->learn || rules->count > 0;
}

int64_t progress_limit(const struct progress *p, const struct progress_rules *rules)
{
	const struct progress_section *section = find(rules, p->section);
	const struct progress_section *training = find(rules, PROGRESS_TRAINING);
	if (section && section->limit)
		return section->limit;
	if (!strcmp(p->section, PROGRESS_WARM_UP) && training && training->limit)
		return training->limit;
	if (!rules->learn)
		return strcmp(p->section, PROGRESS_SETUP) ? rules->limit : 0;
	if (!section || !section->longest)
		return 0; /* nothing was learned of this section yet */
	int64_t least = rules->limit ? rules->limit : PROGRESS_LEAST;
	int64_t learned = PROGRESS_FACTOR * section->longest;
	return learned > least ? learned : least;
}

/* Note in rules that the training has moved after standing still for p->standing ms. */
static void learn(const struct progress *p, struct progress_rules *rules)
{
	if (!rules->learn)
		return;
	struct progress_section *section = progress_section(rules, p->section);
	if (section && p->standing > section->longest)
		section->longest = p->standing;
}

bool progress_observe(
	struct progress *p, struct progress_rules *rules, const struct progress_reading *look)
{
	bool advanced = p->any && p->started && look->started && p->step != look->step;
	uint64_t advances = p->advances + advanced;
	const char *section = *look->section		 ? look->section
			      : !look->started		 ? PROGRESS_SETUP
			      : advances < WARM_UP_STEPS ? PROGRESS_WARM_UP
							 : PROGRESS_TRAINING;
	bool same = p->any && p->started == look->started && p->step == look->step &&
		    p->written == look->written && !strcmp(p->section, section);
	int64_t passed = p->any ? look->now - p->looked_at : 0;
	if (passed > LONGEST_TICK)
		passed = LONGEST_TICK;
	/* The time before this reading belongs to the section that was read before. */
	if (look->counts)
		p->standing += passed;
	p->looked_at = look->now;
	if (!same) {
		if (p->any && look->counts)
			learn(p, rules);
		p->advances = advances;
		p->standing = 0;
		p->any = true;
		p->started = look->started;
		p->step = look->step;
		p->written = look->written;
		snprintf(p->section, sizeof(p->section), "%s", section);
	}
	int64_t limit = progress_limit(p, rules);
	return limit > 0 && p->standing >= limit;
}

bool progress_merge(struct progress_rules *rules, const struct progress_rules *learned)
{
	bool more = false;
	for (size_t i = 0; i < learned->count; i++) {
		const struct progress_section *theirs = &learned->sections[i];
		struct progress_section *section =
			theirs->longest ? progress_section(rules, theirs->name) : NULL;
		if (!section || theirs->longest <= section->longest)
			continue;
		section->longest = theirs->longest;
		more = true;
	}
	return more;
}
