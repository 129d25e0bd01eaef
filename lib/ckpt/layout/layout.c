/* SPDX-License-Identifier: MIT */
#include "ckpt/layout/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/parse.h"
#include "ckpt/directory.h"
#include "ckpt/layout/structure.h"
#include "ckpt/names.h"

/* In the order in which messages list them. */
static const struct layout *const layouts[] = {&layout_native, &layout_hf, &layout_lightning,
	&layout_deepspeed, &layout_megatron, &layout_tensorflow, &layout_orbax, &layout_dcp};
#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

const struct layout_choice layout_ours = {.layout = &layout_native};

bool layout_is_native(const struct layout_choice *choice)
{
	return choice->layout == &layout_native;
}

const char *layout_name(const struct layout_choice *choice)
{
	return choice->layout->name;
}

/* The layout with the most similar name; NULL: none is similar. */
static const char *nearest(const char *name)
{
	const char *words[LAYOUTS + 1] = {"auto"};
	for (size_t i = 0; i < LAYOUTS; i++)
		words[i + 1] = layouts[i]->name;
	return parse_nearest(words, LAYOUTS + 1, name);
}

enum status layout_named(const char *name, struct layout_choice *choice, struct error *err)
{
	*choice = layout_ours;
	for (size_t i = 0; i < LAYOUTS; i++)
		if (strcmp(name, layouts[i]->name) == 0) {
			choice->layout = layouts[i];
			return STATUS_OK;
		}
	const char *meant = nearest(name);
	return error_set(err, STATUS_USAGE,
		"there is no layout \"%s\"%s%s%s; there are auto, native, hf, lightning, deepspeed, "
		"megatron, tensorflow, orbax and dcp, and --pattern for the rest",
		name, meant ? "; did you mean \"" : "", meant ? meant : "", meant ? "\"?" : "");
}

bool layout_reads(const struct layout_choice *choice, const char *entry, struct layout_name *name)
{
	for (const char *at = entry; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			return false;
	const char *const own[] = {choice->pattern, NULL};
	const char *const *names = choice->layout->names;
	if (choice->layout == &layout_pattern)
		names = own;
	if (!names)
		return choice->layout->read(entry, name);
	for (; *names; names++) {
		uint64_t numbers[LAYOUT_NUMBERS];
		/* As in a shell, a name with a dot at its beginning is hidden. */
		if ((*entry == '.' && **names != '.') || !layout_matches(*names, entry, numbers))
			continue;
		*name = (struct layout_name){.step = numbers[LAYOUT_STEP], .length = strlen(entry)};
		return true;
	}
	return false;
}

size_t layout_number(const char *text, uint64_t *number)
{
	size_t length = strspn(text, "0123456789");
	if (length == 0 || length > 18)
		return 0;
	*number = strtoull(text, NULL, 10);
	return length;
}

enum status layout_tracker_line(int directory, const char *file, const char *pattern,
	struct layout_tracker *tracker, struct error *err)
{
	struct error why;
	uint64_t numbers[LAYOUT_NUMBERS] = {0};
	enum status status = structure_read_line(directory, file, tracker->name, &why);
	tracker->found = status != STATUS_NO;
	tracker->named = status == STATUS_OK && layout_matches(pattern, tracker->name, numbers);
	tracker->step = numbers[LAYOUT_STEP];
	if (status == STATUS_OK && !tracker->named)
		snprintf(tracker->broken, sizeof(tracker->broken),
			"\"%.100s\" is not of the form \"%s\"", tracker->name, pattern);
	else if (status == STATUS_DAMAGED)
		snprintf(tracker->broken, sizeof(tracker->broken), "%.255s", why.text);
	else if (status != STATUS_OK && status != STATUS_NO)
		return error_set(err, status, "%s", why.text);
	return STATUS_OK;
}

/* Whether an entry, by one of the layout's marks, shows that DIR has this layout. */
static enum status is_shown(int directory, const char *entry, const struct layout *layout,
	bool *shown, struct error *err)
{
	struct stat st;
	*shown = false;
	if (fstatat(directory, entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? STATUS_OK : error_errno(err, errno, "look at %s", entry);
	if (!(S_ISDIR(st.st_mode)	  ? layout->shape & LAYOUT_DIRECTORY
		    : S_ISREG(st.st_mode) ? layout->shape & LAYOUT_FILE
					  : 0))
		return STATUS_OK;
	*shown = !layout->marks;
	for (size_t i = 0; !*shown && layout->marks[i]; i++) {
		char path[LAYOUT_NAME_SIZE + 64];
		snprintf(path, sizeof(path), "%s/%s", entry, layout->marks[i]);
		*shown = faccessat(directory, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
		if (!*shown && errno != ENOENT && errno != ENOTDIR)
			return error_errno(err, errno, "look at %s", path);
	}
	return STATUS_OK;
}

struct detection {
	char example[LAYOUTS][LAYOUT_NAME_SIZE]; /* an entry that shows the layout; empty: none */
};

/* Whether the entry is of layout i, and shows that DIR has this layout. */
static enum status shows(int directory, const char *entry, size_t i, bool *shown, struct error *err)
{
	struct layout_choice choice = {layouts[i], NULL};
	struct layout_name name;
	uint64_t inode;
	*shown = false;
	if (layouts[i] == &layout_native) {
		const char *removed = ckpt_name_read_removed(entry, &inode);
		*shown = layout_reads(&choice, removed ? removed : entry, &name);
		return STATUS_OK;
	}
	if (!layout_reads(&choice, entry, &name) ||
		(layouts[i]->sign && !strstr(entry, layouts[i]->sign)))
		return STATUS_OK;
	return is_shown(directory, entry, layouts[i], shown, err);
}

static enum status detect_entry(
	int directory, const char *entry, struct detection *detection, struct error *err)
{
	bool shown, any = false;
	for (size_t i = 0; i < LAYOUTS; i++) {
		if (layouts[i]->general && any)
			continue;
		enum status status = shows(directory, entry, i, &shown, err);
		if (status != STATUS_OK)
			return status;
		any |= shown;
		if (shown && !*detection->example[i])
			snprintf(detection->example[i], LAYOUT_NAME_SIZE, "%.255s", entry);
	}
	return STATUS_OK;
}

/* Choose the detected layout. STATUS_USAGE: there are two. */
static enum status conclude(const char *directory, struct detection *detection,
	struct layout_choice *choice, struct error *err)
{
	const char *name = NULL, *example = NULL;
	*choice = layout_ours;
	for (size_t i = 0; i < LAYOUTS; i++) {
		if (!*detection->example[i])
			continue;
		if (name)
			return error_set(err, STATUS_USAGE,
				"%s holds checkpoints of two layouts, %s (%s) and %s (%s): say "
				"which with --layout",
				directory, name, example, layouts[i]->name, detection->example[i]);
		name = layouts[i]->name;
		example = detection->example[i];
		choice->layout = layouts[i];
	}
	return STATUS_OK;
}

/* Look at the names in DIR, which may be missing. */
static enum status detect(const char *directory, struct detection *detection, struct error *err)
{
	struct error why;
	int descriptor;
	enum status status = ckpt_directory_open(directory, &descriptor, err);
	if (status == STATUS_NO)
		return STATUS_OK;
	if (status != STATUS_OK)
		return status;
	struct file_names names = {0};
	status = file_read_names(descriptor, directory, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
		status = detect_entry(descriptor, names.names[i], detection, &why);
		if (status != STATUS_OK)
			error_set(err, status, "%s: %s", directory, why.text);
	}
	file_names_release(&names);
	close(descriptor);
	return status;
}

enum status layout_detect(const char *directory, struct layout_choice *choice, struct error *err)
{
	struct detection detection = {0};
	enum status status = detect(directory, &detection, err);
	return status == STATUS_OK ? conclude(directory, &detection, choice, err) : status;
}

enum status layout_check_native(const char *directory, struct error *err)
{
	struct detection detection = {0};
	enum status status = detect(directory, &detection, err);
	bool native = *detection.example[0];
	for (size_t i = 1; status == STATUS_OK && !native && i < LAYOUTS; i++)
		if (*detection.example[i])
			status = error_set(err, STATUS_USAGE,
				"%s holds checkpoints of the layout %s (%s): only those that "
				"\"ckpt-rotate commit\" made can be copied and verified",
				directory, layouts[i]->name, detection.example[i]);
	return status;
}

enum status layout_choose(const char *directory, const char *layout, const char *pattern,
	struct layout_choice *choice, struct error *err)
{
	if (pattern && layout)
		return error_set(err, STATUS_USAGE, "give either --layout or --pattern");
	if (pattern)
		return layout_of_pattern(pattern, choice, err);
	if (layout && strcmp(layout, "auto") != 0)
		return layout_named(layout, choice, err);
	return layout_detect(directory, choice, err);
}

enum status layout_read_location(
	const char *text, char directory[4096], struct layout_choice *choice, struct error *err)
{
	const char *colon = strrchr(text, ':');
	struct error why;
	struct stat st;
	bool named = colon && (strcmp(colon + 1, "auto") == 0 ||
				      layout_named(colon + 1, choice, &why) == STATUS_OK);
	/* If lstat fails in another way, there may be a directory of that name. */
	if (colon && !named && !strchr(colon, '/') && lstat(text, &st) < 0 && errno == ENOENT)
		return error_set(err, STATUS_USAGE,
			"%s: %s (a directory whose name has a colon is written with a slash at the "
			"end: %s/)",
			text, why.text, text);
	int length = named ? (int)(colon - text) : (int)strlen(text);
	if (snprintf(directory, 4096, "%.*s", length, text) >= 4096)
		return error_set(err, STATUS_USAGE, "the name %.100s... is too long", text);
	return layout_choose(directory, named ? colon + 1 : NULL, NULL, choice, err);
}
