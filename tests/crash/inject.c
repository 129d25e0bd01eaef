/* SPDX-License-Identifier: MIT */
/*
 * inject DIRECTORY [CALL[:FILE]] AT ACT [ERRNO|SIGNAL] -- COMMAND [ARG...]
 *
 * Run a command with a fault at its AT-th call on files of DIRECTORY; at the AT-th of those that
 * are CALL ("pwrite"), on FILE ("run.db-journal") where these are given. ACT: count (and print how
 * many to stdout instead of the command's), fail, always (from then on), late (it is done, then
 * fails), half, before and after (a signal). Exits like the command, and with 99 if the fault
 * never came.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

static const struct {
	const char *name;
	enum call_act act;
} acts[] = {
	{"count", ACT_COUNT},
	{"fail", ACT_FAIL},
	{"always", ACT_FAIL_ALWAYS},
	{"late", ACT_LATE},
	{"half", ACT_HALF},
	{"before", ACT_BEFORE},
	{"after", ACT_AFTER},
};

static int number_of(const char *name)
{
	for (int i = 1; i < 200; i++)
		if (strerrorname_np(i) && !strcmp(strerrorname_np(i), name))
			return i;
	for (int i = 1; i < NSIG; i++)
		if (sigabbrev_np(i) && !strcmp(sigabbrev_np(i), name))
			return i;
	return 0;
}

static _Noreturn void usage(void)
{
	fprintf(stderr,
		"usage: inject DIRECTORY [CALL[:FILE]] AT ACT [ERRNO|SIGNAL] -- COMMAND [ARG...]\n");
	exit(2);
}

static void parse(int count, char **words, struct plan *plan)
{
	char *end;
	if (count < 3 || !realpath(words[0], plan->directory))
		usage();
	char **at = words + 1;
	if (*at[0] < '0' || *at[0] > '9') {
		char *file = strchr(*at, ':');
		if (file)
			*file++ = '\0';
		snprintf(plan->only.name, sizeof(plan->only.name), "%s", *at);
		snprintf(plan->only.file, sizeof(plan->only.file), "%s", file ? file : "");
		at++;
	}
	if (at + 1 >= words + count)
		usage();
	plan->at = (unsigned)strtoul(*at, &end, 10);
	size_t act = 0;
	while (act < sizeof(acts) / sizeof(*acts) && strcmp(acts[act].name, at[1]))
		act++;
	if (*end || act == sizeof(acts) / sizeof(*acts))
		usage();
	plan->act = acts[act].act;
	if (at + 2 < words + count && !(plan->number = number_of(at[2])))
		usage();
	plan->armed = true;
}

int main(int argc, char **argv)
{
	char path[] = "/dev/shm/plan-XXXXXX", self[PATH_MAX], preload[PATH_MAX + 32];
	int own = 1, status = 0;
	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	int descriptor = mkostemp(path, O_CLOEXEC);
	if (own + 1 >= argc || descriptor < 0 || ftruncate(descriptor, sizeof(struct plan)) < 0)
		usage();
	struct plan *plan =
		mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	if (plan == MAP_FAILED)
		return 99;
	unlink(path); /* nothing is left, however we end */
	parse(own - 1, argv + 1, plan);
	char shared[64];
	snprintf(shared, sizeof(shared), "/proc/%d/fd/%d", (int)getpid(), descriptor);
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[length < 0 ? 0 : length] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(preload, sizeof(preload), "%s/calls.so", self);
	pid_t pid = fork();
	if (pid == 0) {
		setenv("LD_PRELOAD", preload, 1);
		setenv("FAULTS", shared, 1);
		if (plan->act == ACT_COUNT && !freopen("/dev/null", "w", stdout))
			_exit(99);
		execvp(argv[own + 1], argv + own + 1);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (plan->act == ACT_COUNT)
		printf("%u\n", plan->count);
	else if (!plan->hits)
		return 99;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
