/* SPDX-License-Identifier: MIT */
#include "inject.h"

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

static char shared[64]; /* path of the plan */

struct plan *inject_plan(void)
{
	int descriptor = memfd_create("plan", MFD_CLOEXEC);
	if (descriptor < 0 || ftruncate(descriptor, sizeof(struct plan)) < 0)
		exit(99);
	struct plan *plan =
		mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	if (plan == MAP_FAILED)
		exit(99);
	snprintf(shared, sizeof(shared), "/proc/%d/fd/%d", (int)getpid(), descriptor);
	return plan;
}

pid_t inject_start(
	const struct plan *plan, char *const *argv, void (*prepare)(void *argument), void *argument)
{
	char self[PATH_MAX], preload[PATH_MAX + 32];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[length < 0 ? 0 : length] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(preload, sizeof(preload), "%s/calls.so", self);
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	if (prepare)
		prepare(argument);
	if (plan) {
		setenv("LD_PRELOAD", preload, 1);
		setenv("FAULTS", shared, 1);
	}
	execvp(*argv, argv);
	_exit(127);
}

int inject_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

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
	fprintf(stderr, "usage: crash --inject DIRECTORY [CALL[:FILE]] AT ACT [ERRNO|SIGNAL] "
			"-- COMMAND [ARG...]\n");
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

static void drop_output(void *unused)
{
	(void)unused;
	if (!freopen("/dev/null", "w", stdout))
		_exit(99);
}

int inject_main(int count, char **words)
{
	int own = 0, status = 0;
	while (own < count && strcmp(words[own], "--") != 0)
		own++;
	if (own + 1 >= count)
		usage();
	struct plan *plan = inject_plan();
	parse(own, words, plan);
	bool counts = plan->act == ACT_COUNT;
	pid_t pid = inject_start(plan, words + own + 1, counts ? drop_output : NULL, NULL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (counts)
		printf("%u\n", plan->count);
	else if (!plan->hits)
		return 99;
	return inject_code(status);
}
