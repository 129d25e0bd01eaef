/* SPDX-License-Identifier: MIT */
#include "agent/environment.h"

#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/reaper.h"
#include "base/process/variables.h"
#include "base/xalloc.h"
#include "notice/source.h"

/* All signals that these sources catch, "TERM,USR1"; "": none. */
static void name_signals(const char *const *sources, size_t count, char names[LISTEN_SIGNALS_SIZE])
{
	*names = '\0';
	for (size_t i = 0; i < count; i++) {
		const char *caught = source_signals(sources[i]);
		if (!caught)
			continue;
		size_t used = strlen(names);
		snprintf(names + used, LISTEN_SIGNALS_SIZE - used, "%s%s", used ? "," : "", caught);
	}
}

/*
 * Add the directory of preempt.py, as it was built or installed with this program, to the end of
 * PYTHONPATH: the command can import it.
 */
static void add_python_client(struct variables *list)
{
	static const char *const places[] = {"share/preempt", "lib/client", "../../lib/client"};
	const char *before = getenv("PYTHONPATH");
	char self[PATH_MAX], place[PATH_MAX];
	bool found = false;
	if (!realpath("/proc/self/exe", self))
		return;
	(void)dirname(self);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !found; i++) {
		char *path = xprintf("%s/../%s", self, places[i]);
		char *client = xprintf("%s/preempt.py", path);
		found = access(client, R_OK) == 0 && realpath(path, place);
		free(client);
		free(path);
	}
	if (!found)
		return;
	char *value = before && *before ? xprintf("%s:%s", before, place) : xstrdup(place);
	variables_set(list, "PYTHONPATH", value);
	free(value);
}

char **environment_build(const struct command_environment *what)
{
	struct variables list = {0};
	char signals[LISTEN_SIGNALS_SIZE];
	variables_inherit(&list);
	variables_set(&list, "PREEMPT_DIR", what->board);
	variables_set(&list, "PREEMPT_STORE", what->store);
	variables_set(&list, REAPER_MARK, what->mark);
	variables_set(&list, "PREEMPT_RUN", what->attempt->run);
	variables_set_number(&list, "PREEMPT_ATTEMPT", what->attempt->number);
	variables_set(&list, "PREEMPT_LIFE", what->attempt->life);
	variables_set_number(&list, "PREEMPT_TASKS", what->attempt->tasks);
	variables_set_number(&list, "PREEMPT_TASK", what->task);
	variables_set(&list, "PREEMPT_LAUNCH", what->identity->launch);
	name_signals(what->sources, what->source_count, signals);
	variables_set(&list, "PREEMPT_SIGNALS", signals);
	add_python_client(&list);
	if (what->resume)
		variables_set(&list, "PREEMPT_RESUME", what->resume);
	if (what->ranks) {
		variables_set_number(&list, "PREEMPT_RANKS", what->identity->count);
	} else if (what->spread) {
		variables_set_number(&list, "RANK", what->task);
		variables_set_number(&list, "LOCAL_RANK", what->local);
		variables_set_number(&list, "WORLD_SIZE", what->attempt->tasks);
		variables_set_number(&list, "LOCAL_WORLD_SIZE", what->identity->count);
	}
	return list.items;
}

void environment_free(char **environment)
{
	struct variables list = {.items = environment};
	variables_release(&list);
}
