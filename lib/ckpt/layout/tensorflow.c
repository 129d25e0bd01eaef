/* SPDX-License-Identifier: MIT */
/*
 * TensorFlow: ckpt-12.index, ckpt-12.data-00000-of-00002 and ckpt-12.data-00001-of-00002 (in old
 * versions also ckpt-12.meta) are one checkpoint; the word before the number may be any. The index
 * is written after the data. The text file "checkpoint" names the checkpoint to restore, and others
 * that the framework itself will delete.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

#define DATA	".data-"
#define TRACKER "checkpoint"

/* Read the numbers in ".data-00000-of-00002". False: end is not of this form. */
static bool read_shard(const char *end, uint64_t *shard, uint64_t *shards)
{
	uint64_t numbers[LAYOUT_NUMBERS];
	if (!layout_matches(DATA "{0}-of-{1}", end, numbers) || strlen(end) != 20 || end[11] != '-')
		return false;
	*shard = numbers[0];
	*shards = numbers[1];
	return *shard < *shards;
}

static bool read_name(const char *entry, struct layout_name *name)
{
	uint64_t shard, shards;
	/* Find the first dot with a known ending. */
	for (const char *end = strchr(entry, '.'); end; end = strchr(end + 1, '.')) {
		if (strcmp(end, ".index") != 0 && strcmp(end, ".meta") != 0 &&
			!read_shard(end, &shard, &shards))
			continue;
		const char *digits = end;
		while (digits > entry && digits[-1] >= '0' && digits[-1] <= '9')
			digits--;
		*name = (struct layout_name){.length = (size_t)(end - entry)};
		return digits > entry + 1 && digits[-1] == '-' && *entry != '.' &&
		       layout_number(digits, &name->step) == (size_t)(end - digits) && digits < end;
	}
	return false;
}

static enum status check(
	const struct layout_item *item, struct layout_found *found, struct error *why)
{
	struct shard_set *filled = &found->shards.sets[0];
	uint64_t seen = 0, all = 0;
	bool index = false;
	for (size_t i = 0; i < item->files->count; i++) {
		const char *end = item->files->files[i].name + strlen(item->name);
		uint64_t shard, shards;
		index |= strcmp(end, ".index") == 0;
		if (!read_shard(end, &shard, &shards))
			continue;
		if (all && shards != all)
			return error_set(why, STATUS_NO,
				"it holds data files of %" PRIu64 " and of %" PRIu64, all, shards);
		all = shards;
		seen++;
		if (item->files->files[i].bytes)
			shards_count(filled, item->files->files[i].bytes, filled->seen, 0, 0);
	}
	if (!index)
		return error_set(why, STATUS_NO, "%s.index is missing", item->name);
	if (seen == 0 || seen != all)
		return error_set(why, STATUS_NO,
			"%" PRIu64 " of %" PRIu64 " data files are missing", all ? all - seen : 1,
			all ? all : 1);
	if (filled->seen == 0)
		return error_set(why, STATUS_NO, "its data files are empty");
	/* A shard can be empty and complete, if its tensors have no elements: compare with
	 * siblings. */
	if (filled->seen < all)
		filled->what = "data files that are not empty";
	return structure_check_all(item->root, item->files, "", why);
}

/*
 * Read the string after "model_checkpoint_path:" at the beginning of a line. False: there is none.
 */
static bool find_path(const char *text, char path[LAYOUT_NAME_SIZE])
{
	static const char key[] = "model_checkpoint_path:";
	for (const char *line = text; line;
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		line += strlen(key);
		line += strspn(line, " \t");
		size_t length = strlen(line) > 0 ? strcspn(line + 1, "\"\\\n") : 0;
		/* Quotes and backslashes in such a name are not supported. */
		if (line[0] != '"' || length == 0 || line[1 + length] != '"')
			return false;
		char *copy = xstrndup(line + 1, length);
		snprintf(path, LAYOUT_NAME_SIZE, "%.255s", structure_base(copy));
		free(copy);
		return *path != '\0';
	}
	return false;
}

static enum status track(int directory, struct layout_tracker *tracker, struct error *err)
{
	struct text text = {0};
	struct layout_name name;
	struct error why;
	char entry[LAYOUT_NAME_SIZE + 8];
	enum status status = structure_read(directory, TRACKER, (size_t)64 << 20, &text, &why);
	tracker->found = status != STATUS_NO;
	if (status == STATUS_OK) {
		bool read = strlen(text_string(&text)) == text.length &&
			    find_path(text_string(&text), tracker->name);
		snprintf(entry, sizeof(entry), "%s.index", tracker->name);
		tracker->named =
			read && read_name(entry, &name) && name.length == strlen(tracker->name);
		if (tracker->named)
			tracker->step = name.step;
		else
			snprintf(tracker->broken, sizeof(tracker->broken), "%s",
				text.length ? "it names no checkpoint with a number"
					    : "it is empty");
	} else if (status != STATUS_NO) {
		error_set(err, status, "%s", why.text);
	}
	text_release(&text);
	return status == STATUS_NO ? STATUS_OK : status;
}

const struct layout layout_tensorflow = {
	.name = "tensorflow",
	.title = "TensorFlow",
	.shape = LAYOUT_FILE,
	.read = read_name,
	.sign = DATA,
	.check = check,
	.tracker = TRACKER,
	.track = track,
	.tracker_commits = true,
};
