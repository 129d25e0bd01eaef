/* SPDX-License-Identifier: MIT */
#include "base/process/tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/parse.h"
#include "base/xalloc.h"

/* The value of "Name:\tVALUE" in /proc/PID/status; NULL: there is none. */
static const char *value_of(const struct text *status, const char *name)
{
	const char *at = strstr(text_string(status), name);
	return at ? at + strlen(name) : NULL;
}

static bool in_mask(const struct text *status, const char *name, int signal)
{
	const char *mask = value_of(status, name);
	return mask && strtoull(mask, NULL, 16) >> (signal - 1) & 1;
}

/* False: it has ended, or cannot be read. */
static bool read_process(pid_t pid, int signal, struct tree_process *process)
{
	char path[64];
	struct text status = {0};
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	bool read = file_read_whole(path, 65536, &status, NULL) == STATUS_OK;
	const char *name = value_of(&status, "Name:\t"), *parent = value_of(&status, "\nPPid:\t");
	const char *state = value_of(&status, "\nState:\t");
	read = read && name && parent && state && *state != 'Z';
	if (read) {
		*process = (struct tree_process){.pid = pid, .parent = (pid_t)atoi(parent)};
		snprintf(process->name, sizeof(process->name), "%.*s", (int)strcspn(name, "\n"),
			name);
		process->disposition = in_mask(&status, "\nSigIgn:\t", signal) ? TREE_IGNORES
				       : in_mask(&status, "\nSigCgt:\t", signal) ||
						       in_mask(&status, "\nSigBlk:\t", signal)
					       ? TREE_CATCHES
					       : TREE_DIES;
	}
	text_release(&status);
	return read;
}

static enum status read_all(
	int signal, struct tree_process **processes, size_t *count, struct error *err)
{
	struct tree_process *all = NULL;
	size_t used = 0, room = 0;
	DIR *directory = opendir("/proc");
	if (!directory)
		return error_set(err, STATUS_TEMPORARY, "cannot read /proc: %s", strerror(errno));
	for (struct dirent *entry; (entry = readdir(directory));) {
		uint64_t pid;
		if (!parse_decimal(entry->d_name, &pid))
			continue;
		all = xgrow(all, used, &room, sizeof(*all));
		used += read_process((pid_t)pid, signal, &all[used]);
	}
	closedir(directory);
	*processes = all;
	*count = used;
	return STATUS_OK;
}

enum status tree_list(
	pid_t root, int signal, struct tree_process **processes, size_t *count, struct error *err)
{
	struct tree_process *all = NULL, *found;
	size_t total = 0, kept = 0;
	enum status status = read_all(signal, &all, &total, err);
	if (status != STATUS_OK)
		return status;
	found = xcalloc(total, sizeof(*found));
	for (size_t i = 0; i < total && kept == 0; i++)
		if (all[i].pid == root)
			found[kept++] = all[i];
	for (size_t next = 0; next < kept; next++)
		for (size_t i = 0; i < total && kept < total; i++)
			if (all[i].parent == found[next].pid)
				found[kept++] = all[i];
	free(all);
	*processes = found;
	*count = kept;
	return STATUS_OK;
}
