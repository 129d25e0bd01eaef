/* SPDX-License-Identifier: MIT */
/*
 * preempt-run: run this machine's tasks with an agent around them. See preempt-run(1).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/args.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/parse.h"
#include "ckpt/ckpt.h"
#include "ckpt/layouts.h"
#include "platform/platform.h"
#include "run/history.h"
#include "run/options.h"
#include "run/trace.h"
#include "store/remove.h"
#include "store/store.h"

static uint64_t copies, ranks, exit_code = CODE_SAVED, max_bad_restarts;
static bool copies_given, ranks_given, exit_code_given, forward, anew;
static struct args_list notices;
static int64_t grace = -1, kill_after = 5000;
static bool no_heartbeat;
static const char *savers = "all", *complete = "all", *store_loss = "save";
static struct budget_limits limits = BUDGET_DEFAULTS;
static bool restarts, crashes_given, hangs_given, no_progress_given;
static const char *board, *shield, *on_notice, *signal_to = "child", *checkpoints, *done_if,
					       *platform, *rehearse, *log_format, *event_command;

static const struct args_option options[] = {
	{"copies", "L", "start L copies of the command, one task each", ARGS_UNSIGNED,
		.target = &copies, .min = 1, .max = 65536, .given = &copies_given, .letter = 'n'},
	{"ranks", "L", "the command starts its L ranks itself (torchrun)", ARGS_UNSIGNED,
		.target = &ranks, .min = 1, .max = 65536, .given = &ranks_given},
	{"notice", "SOURCE", "signal:TERM file:PATH command:TEXT deadline:+2h slurm gce ...",
		ARGS_LIST, .target = &notices},
	{"platform", "NAMES", "auto, none or presets (slurm,aws): sources, exit code, grace",
		ARGS_TEXT, .target = &platform, .environment = "PREEMPT_PLATFORM"},
	{"grace", "D", "time between a notice and the end of the machine", ARGS_DURATION,
		.target = &grace, .environment = "PREEMPT_GRACE"},
	{"join-timeout", "D", "time for all tasks to join and to send their first beat (5m)",
		ARGS_DURATION, .target = &heartbeat_options.rules.first},
	AGREEMENT_ROWS,
	{"startup", "D", "exit 42 instead of 43 if preempted within D of the start (10m)",
		ARGS_DURATION, .target = &agreement_options.startup},
	{"kill-after", "D", "time between TERM and KILL (5s)", ARGS_DURATION,
		.target = &kill_after},
	{"savers", "WHO", "all (default) or chief: whose saves a checkpoint needs", ARGS_TEXT,
		.target = &savers},
	{"complete", "WHO", "all (default) or chief: whose saves are enough if a task is dead",
		ARGS_TEXT, .target = &complete},
	{"per-task", NULL, "each task's checkpoint is independent", ARGS_FLAG,
		.target = &agreement_options.per_task},
	{"on-store-loss", "WHAT", "save (default) or end: if the store is lost after a notice",
		ARGS_TEXT, .target = &store_loss},
	{"exit-code", "N", "exit with N instead of 42", ARGS_UNSIGNED, .target = &exit_code,
		.min = 1, .max = 255, .given = &exit_code_given},
	{"forward", NULL, "pass notice signals on to the command", ARGS_FLAG, .target = &forward},
	{"shield", "SIGNALS", "start the command with these signals ignored: TERM,USR1", ARGS_TEXT,
		.target = &shield},
	{"on-notice", "HOW", "signal:USR1 or command:TEXT for programs that cannot be changed",
		ARGS_TEXT, .target = &on_notice},
	{"signal-to", "WHOM", "child (default) or ranks (its group) gets the --on-notice signal",
		ARGS_TEXT, .target = &signal_to},
	{"checkpoints", "DIR",
		"exit 42 if a newer checkpoint in DIR[:LAYOUT] or DIR:PATTERN is complete; sets "
		"PREEMPT_RESUME",
		ARGS_TEXT, .target = &checkpoints},
	{"anew", NULL, "start the run over: forget what it has saved", ARGS_FLAG, .target = &anew},
	{"max-bad-restarts", "N", "mark a checkpoint as bad after N failed restarts from it",
		ARGS_UNSIGNED, .target = &max_bad_restarts, .min = 1, .max = 1000000},
	{"done-if", "COMMAND", "run after the command's exit 0; exit 0: the training has finished",
		ARGS_TEXT, .target = &done_if},
	HEARTBEAT_ROWS,
	{"no-heartbeat", NULL, "neither beat nor watch the other tasks", ARGS_FLAG,
		.target = &no_heartbeat},
	{"restarts", "[N]", "run it again after a failure, within the limits (at most N times)",
		ARGS_OPTIONAL, .target = &limits.restarts, .max = 1000000, .given = &restarts},
	{"max-crashes", "N", "with --restarts: forgive N crashes of the command (3)", ARGS_UNSIGNED,
		.target = &limits.crashes, .max = 1000000, .given = &crashes_given},
	{"max-hangs", "N", "with --restarts: forgive N hangs (3)", ARGS_UNSIGNED,
		.target = &limits.hangs, .max = 1000000, .given = &hangs_given},
	{"max-no-progress", "N",
		"with --restarts: forgive N attempts in a row that save no newer step (3)",
		ARGS_UNSIGNED, .target = &limits.no_progress, .max = 1000000,
		.given = &no_progress_given},
	{"on-event", "COMMAND", "run by sh once for each event of the job, for mail or webhooks",
		ARGS_TEXT, .target = &event_command},
	{"log-format", "FORMAT", "text (with the time) or json: one object per line", ARGS_TEXT,
		.target = &log_format, .environment = "PREEMPT_LOG_FORMAT"},
	{"rehearse", "SIG@D", "send SIG to preempt-run after D as a notice, and report the result",
		ARGS_TEXT, .target = &rehearse},
	{"board", "DIR", "make the boards below DIR, for a command in a container", ARGS_TEXT,
		.target = &board},
	{0},
};

/* Parse --rehearse: "TERM@30s". */
static enum status parse_rehearsal(struct agent_rehearsal *rehearsal, struct error *err)
{
	char copy[64];
	if (!rehearse)
		return STATUS_OK;
	snprintf(copy, sizeof(copy), "%s", rehearse);
	char *after = strchr(copy, '@');
	if (strlen(rehearse) >= sizeof(copy) || !after)
		return error_set(
			err, STATUS_USAGE, "--rehearse: \"%s\" is not like TERM@30s", rehearse);
	*after++ = '\0';
	enum status status = parse_signal(copy, &rehearsal->signal, "--rehearse", err);
	return status == STATUS_OK ? parse_duration(after, &rehearsal->after, "--rehearse", err)
				   : status;
}

/* True if text is one of the two words; otherwise print an error. */
static bool is_word(const char *text, const char *first, const char *second, const char *option,
	bool *is_second)
{
	*is_second = !strcmp(text, second);
	if (*is_second || !strcmp(text, first))
		return true;
	message_error("%s: \"%s\" is neither %s nor %s; see preempt-run --help", option, text,
		first, second);
	return false;
}

static enum status parse_on_notice(struct agent_options *agent, struct error *err)
{
	if (!on_notice)
		return STATUS_OK;
	if (!strncmp(on_notice, "signal:", 7))
		return parse_signal(on_notice + 7, &agent->notice_signal, "--on-notice", err);
	if (strncmp(on_notice, "command:", 8) || !on_notice[8])
		return error_set(err, STATUS_USAGE,
			"--on-notice: \"%s\" is neither signal:NAME nor command:TEXT", on_notice);
	agent->notice_command = on_notice + 8;
	message_info("--on-notice tells every task to save, but does not align them: they may save "
		     "at different steps");
	return STATUS_OK;
}

/* The layout of --checkpoints: once a start of the run has chosen one, all later searches use it.
 */
static char chosen[32];
static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER;

static void choose_layout(const char *layout, char before[32])
{
	pthread_mutex_lock(&choosing);
	if (!*chosen)
		snprintf(chosen, sizeof(chosen), "%s", layout);
	memcpy(before, chosen, sizeof(chosen));
	pthread_mutex_unlock(&choosing);
}

/* Find the checkpoint to resume from, for --checkpoints. */
static enum status find_checkpoint(
	const struct saved *known, struct agent_checkpoint *found, struct error *err)
{
	struct checkpoint_resume resume = {0};
	bool saved = known && known->kind == SAVED_STEP;
	char before[32];
	choose_layout(saved ? known->layout : "", before);
	enum status status = checkpoint_find_resume(
		checkpoints, *before ? before : NULL, saved ? &known->step : NULL, &resume, err);
	found->note[0] = '\0';
	if (status != STATUS_OK)
		return status;
	choose_layout(resume.layout, before);
	snprintf(found->path, sizeof(found->path), "%s", resume.path);
	found->step = resume.step;
	found->doubtful = resume.doubtful;
	snprintf(found->layout, sizeof(found->layout), "%s", resume.layout);
	snprintf(found->note, sizeof(found->note), "%s", err->text);
	return STATUS_OK;
}

/* Mark a checkpoint as bad, for --max-bad-restarts. */
static enum status give_up_checkpoint(uint64_t step, uint64_t failures, struct error *err)
{
	char before[32];
	choose_layout("", before);
	return checkpoint_give_up(checkpoints, *before ? before : NULL, step, failures, err);
}

/* STATUS_USAGE: the tasks run on several machines, but the store is local to this one. */
static enum status check_store(const struct identity *identity, const char *url, struct error *err)
{
	struct store *store;
	enum status status = job_open_store(&store, url, clock_after(30000), err);
	if (status != STATUS_OK)
		return status;
	status = identity_check_store(identity, store_where(store), store_is_local(store), err);
	if (status == STATUS_OK && anew)
		status = saved_forget(store, identity->run, err);
	store_close(store);
	return status;
}

/*
 * Choose the sources of --platform, or of the one that is recognised, and those of --notice. If
 * only --notice is given, watch no more of that platform than its signals.
 */
static enum status choose_sources(struct agent_options *agent, struct error *err)
{
	static struct platform_choice choice;
	struct signs signs;
	agent->sources = notices.items;
	agent->source_count = notices.count;
	if (notices.count && platform && !strcmp(platform, "none"))
		return STATUS_OK;
	if (platform && !strcmp(platform, "none"))
		return error_set(err, STATUS_USAGE,
			"--platform none needs --notice: nothing would be watched");
	signs_inspect(&signs);
	if (platform_choose(platform ? platform : "auto", &signs, &choice, err) != STATUS_OK)
		return err->status;
	if (notices.count && !platform)
		choice.count = 1; /* only the platform's signals */
	if (choice.note)
		message_info("note: %s", choice.note);
	message_detail("platform %s", choice.names);
	const size_t most = sizeof(notices.items) / sizeof(notices.items[0]);
	for (size_t i = 0; i < choice.count && notices.count < most; i++) {
		notices.items[notices.count++] = choice.sources[i];
		agent->sources_found += !choice.certain && i > 0; /* the first are its signals */
	}
	agent->source_count = notices.count;
	if (choice.exit_code && !exit_code_given)
		agent->exit_code = choice.exit_code;
	if (agent->grace < 0)
		agent->grace = choice.grace;
	return STATUS_OK;
}

static int run(const struct args_rest *rest)
{
	struct error err;
	static struct identity identity;
	static char url[4096];
	struct agent_options agent = {.command = rest->command,
		.ranks = ranks_given,
		.grace = grace,
		.board_parent = board,
		.forward = forward,
		.done_if = done_if,
		.exit_code = (int)exit_code,
		.join_timeout = heartbeat_options.rules.first,
		.kill_after = kill_after,
		.agreement = agreement_options};
	bool json = false;
	if (log_format && !is_word(log_format, "text", "json", "--log-format", &json))
		return STATUS_USAGE;
	message_format(json ? MESSAGE_JSON : log_format ? MESSAGE_STAMPED : MESSAGE_PLAIN);
	message_patience(1000); /* a log that stalls must not keep us from saving */
	sigemptyset(&agent.shield);
	if (parse_signals(shield, &agent.shield, "--shield", &err) != STATUS_OK)
		return message_fail(&err);
	if (choose_sources(&agent, &err) != STATUS_OK)
		return message_fail(&err);
	agent_hold_signals(agent.sources, agent.source_count);
	if (!is_word(savers, "all", "chief", "--savers", &agent.agreement.savers_chief) ||
		!is_word(complete, "all", "chief", "--complete", &agent.agreement.complete_chief) ||
		!is_word(store_loss, "save", "end", "--on-store-loss",
			&agent.agreement.store_loss_ends) ||
		!is_word(signal_to, "child", "ranks", "--signal-to", &agent.signal_ranks))
		return STATUS_USAGE;
	if (copies_given && ranks_given) {
		message_error("-n and --ranks exclude each other: either preempt-run or the "
			      "command starts the tasks; see preempt-run --help");
		return STATUS_USAGE;
	}
	if (!restarts && (crashes_given || hangs_given || no_progress_given)) {
		message_error("--max-crashes, --max-hangs and --max-no-progress need --restarts: "
			      "without it nothing is run again");
		return STATUS_USAGE;
	}
	if (parse_rehearsal(&agent.rehearsal, &err) != STATUS_OK ||
		parse_on_notice(&agent, &err) != STATUS_OK ||
		heartbeat_options_complete(!no_heartbeat, &err) != STATUS_OK)
		return message_fail(&err);
	if (!no_heartbeat)
		agent.beats = heartbeat_options.rules;
	agent.progress_timeout = heartbeat_options.progress_timeout;
	if (max_bad_restarts && !checkpoints) {
		message_error("--max-bad-restarts needs --checkpoints DIR");
		return STATUS_USAGE;
	}
	if (checkpoints && layout_check_location(checkpoints, &err) != STATUS_OK) {
		error_prefix(&err, "--checkpoints");
		return message_fail(&err);
	}
	agent.find_checkpoint = checkpoints ? find_checkpoint : NULL;
	agent.checkpoints = checkpoints;
	agent.max_bad_restarts = max_bad_restarts;
	agent.give_up_checkpoint = give_up_checkpoint;
	if (group_identify(IDENTITY_START,
		    ranks_given	   ? ranks
		    : copies_given ? copies
				   : 0,
		    &identity, &err) != STATUS_OK ||
		group_store_url(identity.run, true, url, sizeof(url), &err) != STATUS_OK)
		return message_fail(&err);
	if (*identity.warning)
		message_error("warning: %s", identity.warning);
	message_detail("run %s (%s), task %llu of %llu (%s), store %s", identity.run,
		identity.run_source, (unsigned long long)identity.task,
		(unsigned long long)identity.tasks, identity.task_source, url);
	if (check_store(&identity, url, &err) != STATUS_OK)
		return message_fail(&err);

	static char tasks[64];
	struct on_event on_event = {.command = event_command, .run = identity.run, .store = url};
	announce_name_tasks(identity.task, identity.count, tasks);
	message_about(identity.run, tasks);
	agent.on_event = &on_event;
	agent.identity = &identity;
	agent.store = url;
	agent.attempt = group_asked_attempt();
	int code = agent_run(&agent, restarts ? &limits : NULL);
	/* If the run's name was made for this start, no later start finds its store: remove it. */
	if (identity.run_is_ours && !group_options.store && store_remove(url, &err) != STATUS_OK)
		message_error("warning: the store of this run is left behind: %s", err.text);
	return code;
}

static const struct args_command commands[] = {
	{NULL, "[OPTION...] -- COMMAND [ARG...]", NULL, options, group_identity_table, 0, 0, true,
		true, run},
	{0},
};

int main(int argc, char **argv)
{
	return args_main(
		&(struct args_program){"preempt-run",
			"Run a training command so that it stops together with all others, saved.",
			commands,
			"exit codes: 0 finished, 42 saved: run me again, 43 preempted unsaved: run me "
			"again,\n44 another task broke: run me again, 93 do not run me again; see "
			"preempt(7)\n"},
		argc, argv);
}
