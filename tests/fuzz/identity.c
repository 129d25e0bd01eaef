/* SPDX-License-Identifier: MIT */
/* The environment that a launcher gives: an input has a line "NAME=VALUE" for each variable. */
#include "run/identity.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "run/attempt.h"
#include "run/launchers.h"
#include "support/fuzz.h"

static char *variables[64];
static size_t count;

static const char *lookup(void *context, const char *name)
{
	size_t length = strlen(name);
	(void)context;
	for (size_t i = 0; i < count; i++)
		if (strncmp(variables[i], name, length) == 0 && variables[i][length] == '=')
			return variables[i] + length + 1;
	return NULL;
}

static void check(const struct identity *identity)
{
	FUZZ_HOLDS(parse_name(identity->run, "run", NULL) == STATUS_OK);
	FUZZ_HOLDS(memchr(identity->launch, '\0', sizeof(identity->launch)));
	if (!identity->is_task)
		return;
	FUZZ_HOLDS(identity->tasks >= 1 && identity->tasks <= IDENTITY_TASKS_MAX);
	FUZZ_HOLDS(identity->task < identity->tasks && identity->count >= 1);
	FUZZ_HOLDS(identity->task + identity->count <= identity->tasks);
	FUZZ_HOLDS(attempt_compare_launch(identity->launch, identity->launch) == LAUNCH_SAME);
	(void)attempt_compare_launch(identity->launch, "slurm:9:1+srun:2");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum identity_need needs[] = {IDENTITY_START, IDENTITY_TASK, IDENTITY_RUN};
	struct identity_environment environment = {.lookup = lookup, .nonce = "ab12"};
	struct identity identity;
	struct slurm_shell shell;
	uint64_t task;
	while (count < 64 && (variables[count] = fuzz_next(&data, &size, '\n')))
		count++;
	environment.slurm_step = lookup(NULL, "STEP");
	for (size_t i = 0; i < 6; i++) {
		struct identity_request request = {.need = needs[i % 3], .local = i < 3 ? 0 : 8};
		struct error err = {0};
		enum status status = identity_find(&environment, &request, &identity, &err);
		FUZZ_HOLDS(status == STATUS_OK || *err.text);
		if (status == STATUS_OK)
			check(&identity);
	}
	(void)identity_own_task(&environment, &task, NULL, NULL);
	(void)slurm_shell_find(&environment, &shell, NULL);
	while (count > 0)
		free(variables[--count]);
	return 0;
}
