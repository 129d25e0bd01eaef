/* SPDX-License-Identifier: MIT */
/* work: take commands and run them, until a notice comes. */
#include "queue/work.h"

#include <signal.h>

#include "agent/listen.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/process/ending.h"
#include "client.h"

#define PERIOD	   5000
#define PERIOD_MIN 100
#define LIMIT	   6
#define SLOTS_MAX  1024

static const char *platform, *term_signal = "TERM";
static uint64_t gpus_per_slot;
static struct args_list sources;
static struct queue_work work = {.slots = 1,
	.idle_exit = -1,
	.grace = -1,
	.kill_after = 5000,
	.period = PERIOD,
	.limit = LIMIT,
	.start_delay_max = 60000};

const struct args_option work_options[] = {
	{"worker", "NAME", "name of this worker (the array index, else host and pid)", ARGS_NAME,
		.target = &work.worker},
	{"slots", "K", "commands that run at the same time (1)", ARGS_UNSIGNED,
		.target = &work.slots, .min = 1, .max = SLOTS_MAX},
	{"gpus-per-slot", "N", "give each slot N GPUs of its own, in CUDA_VISIBLE_DEVICES",
		ARGS_UNSIGNED, .target = &gpus_per_slot, .min = 1, .max = SLOTS_MAX},
	{"idle-exit", "D", "exit when no command waits or runs anywhere for D; 0: at once",
		ARGS_DURATION, .target = &work.idle_exit},
	{"source", "SPEC", "of notices: signal:TERM, file:PATH, command:TEXT, slurm, gce ...",
		ARGS_LIST, .target = &sources},
	{"platform", "NAMES", "auto, or slurm,aws and the like: their sources", ARGS_TEXT,
		.target = &platform, .environment = "PREEMPT_PLATFORM"},
	{"grace", "D", "time between a notice and the end", ARGS_DURATION, .target = &work.grace,
		.environment = "PREEMPT_GRACE"},
	{"term-signal", "SIG", "signal for running commands at a notice (TERM)", ARGS_TEXT,
		.target = &term_signal},
	{"kill-after", "D", "time between TERM and KILL (5s)", ARGS_DURATION,
		.target = &work.kill_after},
	{"period", "D", "beat and look for the other workers every D (5s)", ARGS_DURATION,
		.target = &work.period},
	{"limit", "N", "periods of silence in a row that mean death (6)", ARGS_UNSIGNED,
		.target = &work.limit, .min = 2, .max = 1000},
	/* TensorFlow's variables for its coordinator, which does the same. */
	{"start-delay", "D", "start this much later for each lower index", ARGS_DURATION,
		.target = &work.start_delay, .environment = "TF_COORDINATOR_SCHEDULE_START_DELAY"},
	{"start-delay-max", "D", "and never later than this (1m)", ARGS_DURATION,
		.target = &work.start_delay_max,
		.environment = "TF_COORDINATOR_SCHEDULE_START_DELAY_MAX"},
	{0},
};

static enum status open_sources(struct source_set *watch, struct error *err)
{
	struct listen_request request = {.specifications = sources.items,
		.count = sources.count,
		.platform = platform	    ? platform
			    : sources.count ? NULL
					    : "auto",
		.how = {.grace = work.grace}};
	struct source *group;
	struct text warnings = {0};
	enum status status = listen_open(watch, &request, &group, &warnings, err);
	if (status == STATUS_OK)
		work.grace = request.how.grace;
	message_warnings(warnings.data);
	text_release(&warnings);
	return status;
}

static enum status check_options(struct error *err)
{
	if (work.period < PERIOD_MIN)
		return error_set(err, STATUS_USAGE, "--period: at least 100ms");
	return parse_signal(term_signal, &work.term_signal, "--term-signal", err);
}

int run_work(const struct args_rest *rest)
{
	struct error err = {0};
	struct client client = {0};
	struct source_set watch = {0};
	struct devices devices = {0};
	sigset_t all;
	int code = STATUS_OK;
	(void)rest;
	enum status status = check_options(&err);
	message_patience(1000); /* a log that stalls must not keep commands from ending */
	/* Before the store is opened: a notice may come while it is slow, and a wrong option must
	 * not make a store. */
	if (status == STATUS_OK && gpus_per_slot)
		status = devices_find(&devices, work.slots, gpus_per_slot, &err);
	if (status == STATUS_OK)
		status = open_sources(&watch, &err);
	if (status == STATUS_OK)
		status = client_open(&client, STORE_CREATE, &err);
	if (status == STATUS_OK) {
		work.url = text_string(&client.url);
		work.watch = &watch;
		work.devices = &devices;
		code = queue_work(&client.queue, &work);
	}
	/* A second TERM while we leave must not kill us: our exit code would be lost. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	source_set_release(&watch);
	devices_release(&devices);
	int ended = client_end(&client, status, &err);
	if (ending_signal())
		return ending_die(ending_signal());
	return status == STATUS_OK ? code : ended;
}
