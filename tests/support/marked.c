/* SPDX-License-Identifier: MIT */
/*
 * marked NAME=VALUE: print the pids of the processes of this machine with this variable in their
 * environment. Exit code 1: it is not known of a process, because it changes its program each time
 * that we look.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/process/process.h"

#define LOOKS 10000

static enum status look(pid_t pid, const char *variable)
{
	enum status has = process_has_variable(pid, variable);
	for (int i = 1; has == STATUS_TEMPORARY && i < LOOKS; i++) {
		clock_sleep_until(clock_after(1));
		has = process_has_variable(pid, variable);
	}
	return has;
}

int main(int argc, char **argv)
{
	int code = 0;
	DIR *proc = opendir("/proc");
	if (argc != 2 || !proc) {
		fprintf(stderr, "usage: marked NAME=VALUE\n");
		return 2;
	}
	for (struct dirent *entry; (entry = readdir(proc));) {
		uint64_t pid;
		if (!parse_decimal(entry->d_name, &pid))
			continue;
		enum status has = look((pid_t)pid, argv[1]);
		if (has == STATUS_OK)
			printf("%" PRIu64 "\n", pid);
		if (has == STATUS_TEMPORARY) {
			fprintf(stderr, "marked: process %" PRIu64 " has no environment yet\n",
				pid);
			code = 1;
		}
	}
	closedir(proc);
	return code;
}
