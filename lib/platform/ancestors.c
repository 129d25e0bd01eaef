/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process/process.h"
#include "platform/platform.h"

/* Read a small file of /proc/PID; replace NULs and newlines by spaces. */
static bool read_proc(pid_t pid, const char *name, char *to, size_t size)
{
	char path[320];
	struct text text = {.limit = size - 1};
	snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
	bool read = file_read_whole(path, size - 1, &text, NULL) == STATUS_OK && text.length;
	if (read) {
		memcpy(to, text.data, text.length);
		to[text.length] = '\0';
		for (size_t i = 0; i < text.length; i++)
			if (to[i] == '\0' || to[i] == '\n')
				to[i] = ' ';
	}
	text_release(&text);
	return read;
}

static bool is_slurmstepd(pid_t pid, const void *unused)
{
	(void)unused;
	char name[64];
	return pid > 0 && read_proc(pid, "comm", name, sizeof(name)) &&
	       !strcmp(name, "slurmstepd ");
}

static pid_t find_slurmstepd(void)
{
	return process_find_ancestor(getpid(), is_slurmstepd, NULL);
}

/*
 * Get our Slurm step, "9.batch" or "9.0", from the command line of the slurmstepd above us. The
 * environment is not enough, because sbatch passes SLURM_STEP_ID on to the jobs it submits.
 */
static bool find_step(char *step, size_t size)
{
	char line[4096];
	pid_t pid = find_slurmstepd();
	/* Its command line is "slurmstepd: [9.batch]". */
	if (!pid || !read_proc(pid, "cmdline", line, sizeof(line)))
		return false;
	const char *begin = strstr(line, "slurmstepd: [");
	if (begin != line)
		return false;
	begin += strlen("slurmstepd: [");
	size_t length = strcspn(begin, "] ");
	if (!length || length >= size)
		return false;
	memcpy(step, begin, length);
	step[length] = '\0';
	return true;
}

bool ancestors_batch_shell_waits(void)
{
	char step[64];
	pid_t shell = process_parent(getpid());
	return find_step(step, sizeof(step)) && strstr(step, ".batch") &&
	       !is_slurmstepd(shell, NULL) && is_slurmstepd(process_parent(shell), NULL);
}

pid_t ancestors_prolog_task(void)
{
	/*
	 * The slurmstepd of a step forks another one for each task, which runs the prolog and then
	 * becomes the task.
	 */
	pid_t pid = find_slurmstepd();
	return pid && is_slurmstepd(process_parent(pid), NULL) ? pid : 0;
}

/* Whether a process has the reading end of this pipe open: only r is set in the mode of its link.
 */
static bool reads(pid_t pid, const struct stat *pipe)
{
	char path[64];
	struct dirent *entry;
	struct stat found, link;
	bool is_reader = false;
	snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
	DIR *directory = opendir(path);
	while (directory && !is_reader && (entry = readdir(directory)))
		is_reader =
			fstatat(dirfd(directory), entry->d_name, &found, 0) == 0 &&
			found.st_dev == pipe->st_dev && found.st_ino == pipe->st_ino &&
			fstatat(dirfd(directory), entry->d_name, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
			!(link.st_mode & S_IWUSR);
	if (directory)
		closedir(directory);
	return is_reader;
}

static bool reads_or_is_slurmstepd(pid_t pid, const void *pipe)
{
	return is_slurmstepd(pid, NULL) || reads(pid, pipe);
}

pid_t ancestors_reader(void)
{
	struct stat pipe;
	if (fstat(STDOUT_FILENO, &pipe) != 0 || !S_ISFIFO(pipe.st_mode))
		return 0;
	pid_t pid = process_find_ancestor(getpid(), reads_or_is_slurmstepd, &pipe);
	return is_slurmstepd(pid, NULL) ? 0 : pid;
}

void signs_inspect(struct signs *signs)
{
	static const char *const files[DMI_FIELDS] = {
		"", "sys_vendor", "product_name", "chassis_asset_tag"};
	*signs = signs_environment;
	if (getenv("SLURM_JOB_ID"))
		(void)find_step(signs->slurm_step, sizeof(signs->slurm_step));
	for (enum platform_dmi field = DMI_VENDOR; field < DMI_FIELDS; field++) {
		char path[64];
		struct text text = {0};
		snprintf(path, sizeof(path), "/sys/class/dmi/id/%s", files[field]);
		if (file_read_whole(path, 4096, &text, NULL) == STATUS_OK)
			snprintf(signs->dmi[field], sizeof(signs->dmi[field]), "%.*s",
				(int)strcspn(text_string(&text), "\n"), text_string(&text));
		text_release(&text);
	}
}
