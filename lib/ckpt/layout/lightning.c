/* SPDX-License-Identifier: MIT */
/*
 * PyTorch Lightning: epoch=1-step=500.ckpt, with words and an order that the user chooses, and with
 * -v1 at the end if the name was taken. It is a file, or with some strategies a directory: of
 * DeepSpeed, with its files in checkpoint/, or in PyTorch's distributed format. last.ckpt is a copy
 * of the last checkpoint, or a link to it, that the trainer makes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/layout/layout.h"
#include "ckpt/layout/structure.h"

#define LAST "last.ckpt"
#define END  ".ckpt"

static bool read_name(const char *entry, struct layout_name *name)
{
	static const char key[] = "step=";
	bool found = false;
	uint64_t version;
	/* last.ckpt is version 0: of two checkpoints of a step, the other one is preferred. */
	*name = (struct layout_name){.length = strlen(entry), .version = 1};
	if (*entry == '.' || !structure_ends(entry, END))
		return false;
	/* The parts are separated by '-'; exactly one is the step. */
	const char *stop = entry + name->length - strlen(END);
	for (const char *part = entry; part < stop;) {
		size_t length = strcspn(part, "-");
		if (part + length > stop)
			length = (size_t)(stop - part);
		if (strncmp(part, key, strlen(key)) == 0) {
			size_t digits = layout_number(part + strlen(key), &name->step);
			if (found || digits == 0 || digits != length - strlen(key))
				return false;
			found = true;
		} else if (*part == 'v' && part + length == stop && length > 1 &&
			   layout_number(part + 1, &version) == length - 1) {
			name->version = version + 1;
		}
		part += length + 1;
	}
	return found;
}

/* The length of a decimal number at text; 0: none. */
static size_t number_length(const char *text)
{
	static const char digits[] = "0123456789";
	size_t length = strspn(text, "+-") == 1, begin = length;
	length += strspn(text + length, digits);
	size_t fraction = text[length] == '.' ? strspn(text + length + 1, digits) : 0;
	length += fraction ? 1 + fraction : 0;
	if (length == begin)
		return 0;
	if (text[length] == 'e' || text[length] == 'E') {
		size_t sign = strspn(text + length + 1, "+-") == 1;
		size_t exponent = strspn(text + length + 1 + sign, digits);
		length += exponent ? 1 + sign + exponent : 0;
	}
	return length;
}

/* Read NAME=NUMBER from a name. '-' separates its parts, and is also the sign of a number. */
static void read_metrics(const char *entry, struct metrics *metrics)
{
	char name[METRIC_NAME_SIZE];
	for (const char *equals = strchr(entry, '='); equals; equals = strchr(equals + 1, '=')) {
		const char *part = equals;
		while (part > entry && part[-1] != '-')
			part--;
		size_t length = number_length(equals + 1);
		const char *end = equals + 1 + length;
		int written = snprintf(name, sizeof(name), "%.*s", (int)(equals - part), part);
		if (length == 0 || written >= (int)sizeof(name) || strcmp(name, "step") == 0 ||
			strcmp(name, "epoch") == 0 || (*end != '-' && strcmp(end, END) != 0))
			continue;
		metrics_add(metrics, name, strtod(equals + 1, NULL));
	}
}

/* Lightning's DeepSpeedStrategy saves with the tag "checkpoint". */
#define DEEPSPEED "checkpoint/"

static bool has_deepspeed(const struct layout_item *item)
{
	for (size_t i = 0; i < item->files->count && item->directory; i++)
		if (strncmp(item->files->files[i].name, DEEPSPEED, strlen(DEEPSPEED)) == 0 &&
			structure_ends(item->files->files[i].name, "_states.pt"))
			return true;
	return false;
}

static enum status check(
	const struct layout_item *item, struct layout_found *found, struct error *why)
{
	enum status status = structure_check_all(item->root, item->files, "", why);
	read_metrics(item->name, &found->metrics);
	if (status == STATUS_OK && item->directory && manifest_bytes(item->files) == 0)
		status = error_set(why, STATUS_NO, "it is empty");
	if (status == STATUS_OK && item->directory)
		status = structure_check_shards(item->root, item->files, why);
	if (status == STATUS_OK && has_deepspeed(item))
		status = layout_deepspeed_check(item, DEEPSPEED,
			structure_find(item->files, "latest"), &found->shards, why);
	return status;
}

static enum status track(int directory, struct layout_tracker *tracker, struct error *err)
{
	struct stat st;
	struct layout_name name;
	struct error why;
	if (fstatat(directory, LAST, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? STATUS_OK : error_errno(err, errno, "look at " LAST);
	tracker->found = true;
	if (S_ISLNK(st.st_mode)) {
		char target[PATH_MAX];
		ssize_t length = readlinkat(directory, LAST, target, sizeof(target) - 1);
		if (length < 0)
			return error_errno(err, errno, "read " LAST);
		target[length] = '\0';
		tracker->named = read_name(structure_base(target), &name);
		if (tracker->named) {
			tracker->step = name.step;
			snprintf(tracker->name, sizeof(tracker->name), "%.255s",
				structure_base(target));
		} else {
			snprintf(tracker->broken, sizeof(tracker->broken),
				"it is a link to something else");
		}
		return STATUS_OK;
	}
	enum status status = structure_read_number(directory,
		S_ISDIR(st.st_mode) ? LAST "/meta.pt" : LAST, "global_step", &tracker->step, &why);
	tracker->named = status == STATUS_OK;
	if (status == STATUS_NO)
		snprintf(tracker->broken, sizeof(tracker->broken), "%.255s", why.text);
	return status == STATUS_OK || status == STATUS_NO ? STATUS_OK
							  : error_set(err, status, "%s", why.text);
}

const struct layout layout_lightning = {
	.name = "lightning",
	.title = "PyTorch Lightning",
	.shape = LAYOUT_EITHER,
	.read = read_name,
	.check = check,
	.tracker = LAST,
	.track = track,
	.tracker_is_checkpoint = true,
};
