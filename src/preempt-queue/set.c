/* SPDX-License-Identifier: MIT */
/* preempt-queue set: set or print the --halt of commands that are scheduled without it. */
#include <stdio.h>

#include "client.h"

static const char *halt;
static bool keep_going;

const struct args_option set_options[] = {
	{"halt", "WHEN", "now, soon or never: for commands scheduled without --halt", ARGS_TEXT,
		.target = &halt},
	{"keep-going", NULL, "the same as --halt never", ARGS_FLAG, .target = &keep_going},
	{0},
};

static enum status set(struct queue *queue, void *context, struct error *err)
{
	return queue_settings_put(queue, context, err);
}

static enum status print(struct queue *queue, void *context, struct error *err)
{
	struct queue_settings settings;
	(void)context;
	enum status status = queue_settings_get(queue, &settings, err);
	if (status == STATUS_OK)
		printf("halt %s\n", queue_halt_word(settings.halt));
	return status;
}

int run_set(const struct args_rest *rest)
{
	struct queue_settings settings = {.halt = HALT_NEVER};
	(void)rest;
	if (halt && keep_going)
		return client_refuse("set: --halt and --keep-going exclude each other");
	if (halt && !queue_halt_parse(halt, &settings.halt))
		return client_refuse("set: --halt is one of now, soon and never");
	return halt || keep_going ? client_run(STORE_CREATE, set, &settings)
				  : client_run(0, print, NULL);
}
