/* SPDX-License-Identifier: MIT */
/*
 * preempt-requeue: run the job of a batch script, and make the scheduler run it again if that is
 * right. See preempt-requeue(1).
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/listen.h"
#include "base/args.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "compose/batch.h"
#include "platform/slurm.h"
#include "run/attempt.h"
#include "run/options.h"
#include "run/trace.h"

#define STORE_LIMIT 60000 /* ms to read from the store how the attempts ended */
#define TAKEN_LIMIT 10000 /* ms to wait until Slurm ends the script of a job that it requeued */

static struct budget_limits limits = BUDGET_DEFAULTS;
static struct args_list notices;
static const char *platform_name, *requeue_command;
static uint64_t given_code, exit_code;
static bool code_given, exit_code_given, dry_run;
static int64_t grace = -1, stay = 300000, ask_limit = 120000;

static const struct args_option options[] = {
	{"code", "RC", "the job has ended with RC already; no COMMAND", ARGS_UNSIGNED,
		.target = &given_code, .max = 255, .given = &code_given},
	{"dry-run", NULL,
		"start nothing, change nothing; print the decision and what would be done",
		ARGS_FLAG, .target = &dry_run},
	{"platform", "NAME", "slurm, sge, condor, lsf, pbs, k8s or none; sets the exit code, too",
		ARGS_TEXT, .target = &platform_name},
	{"requeue-command", "COMMAND", "request the requeue with this shell command, not scontrol",
		ARGS_TEXT, .target = &requeue_command},
	{"exit-code", "N", "exit with N, not 42 to 44, if the job is to run again", ARGS_UNSIGNED,
		.target = &exit_code, .min = 1, .max = 255, .given = &exit_code_given},
	{"max-crashes", "N", "forgive N crashes (3)", ARGS_UNSIGNED, .target = &limits.crashes,
		.max = 1000000},
	{"max-hangs", "N", "forgive N hangs (3)", ARGS_UNSIGNED, .target = &limits.hangs,
		.max = 1000000},
	{"max-no-progress", "N", "forgive N attempts in a row that saved no newer step (3)",
		ARGS_UNSIGNED, .target = &limits.no_progress, .max = 1000000},
	{"notice", "SOURCE", "signal:TERM,USR1 file:PATH command:TEXT; may be repeated", ARGS_LIST,
		.target = &notices},
	{"grace", "D", "time between a notice and the end", ARGS_DURATION, .target = &grace,
		.environment = "PREEMPT_GRACE"},
	{"timeout", "D", "time to try to reach the scheduler (2m)", ARGS_DURATION,
		.target = &ask_limit},
	{"stay", "D",
		"if Slurm preempts the job but does not answer: time to wait for the end (5m)",
		ARGS_DURATION, .target = &stay},
	{0},
};
static const struct args_option common[] = {
	GROUP_STORE_ROW,
	GROUP_RUN_ROW(GROUP_RUN_HELP),
	{0},
};

/* Request the requeue with --requeue-command, or the scheduler's own command. */
static void ask_by_command(const char *command, const char *job)
{
	struct subprocess_options how = {.shell = command,
		.standard = {SUBPROCESS_NOTHING, SUBPROCESS_KEEP, SUBPROCESS_JOINED},
		.limit = clock_after(ask_limit)};
	struct subprocess child;
	struct error err;
	if (job)
		setenv("PREEMPT_JOB", job, 1);
	enum status status = subprocess_run(&child, &how, &err);
	const char *said = text_string(&child.output);
	if (status != STATUS_OK)
		message_error("%s: %s", command, err.text);
	else if (child.code != 0)
		message_error("%s: failed with %d: %.*s", command, child.code,
			(int)strcspn(said, "\n"), said);
	else
		message_info("requested the requeue: %s", command);
	subprocess_release(&child);
}

/*
 * Slurm does not answer. When Slurm preempts a job, it requeues the job by itself if the script
 * still runs at the end of the grace time; if the script has ended, the job counts as completed.
 */
static void stay_for_slurm(struct batch *batch, const struct requeue_decision *requeue)
{
	if (!requeue->by_signal || stay == 0)
		return;
	message_info(
		"staying for at most %lld s: Slurm requeues a preempted job if its script still "
		"runs at the end of the grace time",
		(long long)(stay / 1000));
	int64_t until = clock_after(stay);
	while (clock_now() < until && !batch->ended_by)
		batch_wait(batch, until);
}

static void ask_slurm(struct batch *batch, const char *job, const struct requeue_decision *requeue)
{
	struct error err;
	switch (slurm_requeue(job, clock_after(ask_limit), &err)) {
	case SLURM_REQUEUED:
		message_info("job %s is requeued", job);
		batch_wait(batch, clock_after(TAKEN_LIMIT));
		break;
	case SLURM_ENDING: message_info("job %s is not requeued: %s", job, err.text); break;
	case SLURM_REFUSED:
		message_error("job %s is not requeued: %s; was it submitted with --requeue?", job,
			err.text);
		break;
	case SLURM_UNREACHABLE:
		message_error("job %s is not requeued: %s; from outside: scontrol requeue %s", job,
			err.text, job);
		stay_for_slurm(batch, requeue);
		break;
	}
}

/* The exit code with which the job is run again: --exit-code, or that of --platform, or `code`. */
static int code_for(const struct platform *scheduler, int code)
{
	if (exit_code_given)
		return (int)exit_code;
	return platform_name && scheduler->exit_code ? scheduler->exit_code : code;
}

static const char *command_of(const struct platform *scheduler)
{
	return requeue_command ? requeue_command : scheduler->rerun;
}

/* Print one line on stdout, escaped: names and reasons come from the store and the scheduler. */
static void __attribute__((format(printf, 1, 2))) print_line(const char *format, ...)
{
	struct text line = {0};
	char *raw = NULL;
	va_list arguments;
	va_start(arguments, format);
	if (vasprintf(&raw, format, arguments) >= 0)
		text_add_escaped(&line, raw);
	va_end(arguments);
	puts(text_string(&line));
	text_release(&line);
	free(raw);
}

static int print_plan(const struct requeue_question *question, const struct platform *scheduler,
	const char *job, const struct requeue_decision *requeue)
{
	const struct budget_decision *decision = &requeue->decision;
	int code = decision->again ? code_for(scheduler, requeue->code) : requeue->code;
	print_line("run %s, store %s", question->run, question->store);
	print_line("platform %s%s%s", scheduler->name, job ? ", job " : "", job ? job : "");
	if (requeue->known)
		print_line("attempt %llu: %s%s%s", (unsigned long long)requeue->outcome.attempt,
			outcome_word(requeue->outcome.cause), *requeue->outcome.text ? ": " : "",
			requeue->outcome.text);
	print_line("%s%s%s",
		decision->again	    ? "run again"
		: decision->decided ? "do not run again"
				    : "nothing to run again",
		*decision->why ? ": " : "", decision->why);
	if (decision->again && command_of(scheduler))
		print_line("would run: %s", command_of(scheduler));
	else if (decision->again && scheduler->scontrol && job)
		print_line("would run: scontrol requeue %s", job);
	if (decision->again && scheduler->note)
		print_line("note: %s", scheduler->note);
	print_line("exit code %d", code);
	return code;
}

static int act(struct batch *batch, const struct platform *scheduler, const char *job,
	const struct requeue_decision *requeue)
{
	const struct budget_decision *decision = &requeue->decision;
	if (decision->decided) {
		message_error("not run again (%d): %s", CODE_DECIDED, decision->why);
		if (requeue->unrecorded.status != STATUS_OK)
			message_error("%s", requeue->unrecorded.text);
		return CODE_DECIDED;
	}
	if (!decision->again) {
		if (*decision->why && requeue->code)
			message_info("not run again: %s", decision->why);
		if (requeue->known && requeue->outcome.cause == CAUSE_COMPLETED)
			job_remove_trace();
		return requeue->code;
	}
	message_info("run again: %s", decision->why);
	if (decision->pause)
		batch_wait(batch, clock_after(decision->pause));
	if (batch->ended_by)
		return 128 + batch->ended_by;
	if (command_of(scheduler))
		ask_by_command(command_of(scheduler), job);
	else if (scheduler->scontrol && job)
		ask_slurm(batch, job, requeue);
	return code_for(scheduler, requeue->code);
}

/*
 * The newest attempt before the start of the job. 0: there is none, or the store does not answer;
 * in that case only the launch id shows which attempts are of this start. A store that --store or
 * PREEMPT_STORE names is made if it is missing, and traced.
 */
static uint64_t newest_attempt(const struct requeue_question *question)
{
	struct store *store;
	uint64_t number = 0;
	int64_t limit = clock_after(10000);
	bool named = group_options.store != NULL;
	if ((named ? job_open_store(&store, question->store, limit, NULL)
		   : store_open(&store, question->store, 0, limit, NULL)) != STATUS_OK)
		return 0;
	if (named)
		job_leave_trace(question->store);
	if (attempt_newest(store, question->run, &number, NULL, NULL) != STATUS_OK)
		number = 0;
	store_close(store);
	return number;
}

static int decide_and_act(struct batch *batch, struct requeue_question *question,
	const struct platform *scheduler, const char *job)
{
	struct requeue_decision requeue = {0};
	struct error err;
	const char *count = scheduler->restarts ? getenv(scheduler->restarts) : NULL;
	/* For the scheduler it means "run again": so it is counted. */
	if (question->code > 0 && question->code == code_for(scheduler, 0))
		question->code = CODE_BROKEN;
	/* The scheduler counts preemptions, too, so its count limits no job that was preempted. */
	if (question->noticed || question->code == CODE_SAVED)
		count = NULL;
	question->guesses = job_count_guess(
		dry_run ? GUESS_ASK : GUESS_COUNT, count ? strtoull(count, NULL, 10) : 0);
	question->record = !dry_run;
	question->deadline = clock_after(STORE_LIMIT);
	enum status status = requeue_decide(question, &requeue, &err);
	/* A dry run cannot decide without the store and without an exit code. */
	if (status != STATUS_OK && dry_run && !code_given)
		return message_fail(&err);
	if (status != STATUS_OK) {
		message_error("the store could not be asked: %s; whether to run again is judged "
			      "by the exit code alone",
			err.text);
		requeue_guess(question, &err, &requeue);
	} else if (!requeue.outcome.attempt && !dry_run) {
		message_info("%s has no attempt of this start of run %s: the job and "
			     "preempt-requeue must use the same --run and --store",
			question->store, question->run);
	}
	if (status == STATUS_OK && requeue.known && !dry_run)
		(void)job_count_guess(GUESS_FORGET, 0);
	return dry_run ? print_plan(question, scheduler, job, &requeue)
		       : act(batch, scheduler, job, &requeue);
}

/* Start the job, and wait for its end. */
static enum status run_job(struct batch *batch, char *const *command, struct error *err)
{
	if (ancestors_batch_shell_waits())
		message_error(
			"warning: the batch script waits for this program, and without a trap it "
			"is ended, with the job, by sbatch --signal=B:...: start it with exec");
	/* The job must find the same run and store. */
	if (group_options.run)
		setenv("PREEMPT_RUN", group_options.run, 1);
	if (group_options.store)
		setenv("PREEMPT_STORE", group_options.store, 1);
	batch->question->before = newest_attempt(batch->question);
	return batch_run(batch, command, err);
}

static int run(const struct args_rest *rest)
{
	struct error err;
	struct group_run own;
	char job[64] = "", signals[LISTEN_SIGNALS_SIZE + 7] = "signal:";
	const char *const usual[] = {signals};
	const struct platform *scheduler =
		platform_scheduler(platform_name, &signs_environment, &err);
	struct requeue_question question = {.code = -1, .limits = &limits};
	struct batch batch = {.question = &question, .loop = LOOP_CLOSED};
	message_patience(1000); /* a log that stalls must not delay the notice to the tasks */
	if (!scheduler)
		return message_fail(&err);
	if (!dry_run && code_given == (rest->command && rest->command[0])) {
		message_error(
			"write -- COMMAND [ARG...], or --code RC; see preempt-requeue --help");
		return STATUS_USAGE;
	}
	if (group_find(IDENTITY_RUN, false, &own, &err) != STATUS_OK ||
		status_is_error(slurm_job_name(&signs_environment, true, job, &err)))
		return message_fail(&err);
	message_detail("platform %s, run %s (%s), store %s", scheduler->name, own.identity.run,
		own.identity.run_source, own.url);
	question.run = own.identity.run;
	question.store = own.url;
	question.launch = own.identity.launch;
	if (code_given)
		question.code = (int)given_code;
	batch.slurm_job = *job && scheduler->scontrol ? job : NULL;
	if (dry_run)
		return decide_and_act(&batch, &question, scheduler, batch.slurm_job);

	enum status status = listen_signals(signals + 7, &err);
	if (status == STATUS_OK)
		status = batch_open(&batch, notices.count ? notices.items : usual,
			notices.count ? notices.count : 1, grace, &err);
	if (status == STATUS_OK && !code_given)
		status = run_job(&batch, rest->command, &err);
	int code = status != STATUS_OK ? message_fail(&err)
		   /* ended by INT, HUP or QUIT, not preempted */
		   : batch.ended_by && !question.noticed
			   ? question.code
			   : decide_and_act(&batch, &question, scheduler, batch.slurm_job);
	batch_close(&batch);
	return code;
}

static const struct args_command commands[] = {
	{NULL, "[OPTION...] -- COMMAND [ARG...]", NULL, options, common, 0, 0, true, false, run},
	{0},
};

int main(int argc, char **argv)
{
	return args_main(
		&(struct args_program){"preempt-requeue",
			"Run a batch job, and have the scheduler run it again if that is right.",
			commands,
			"in a batch script:  exec preempt-requeue -- srun preempt-run -- ./train.sh\n"
			"exit codes: 42 to 44 run again, 93 do not run again, otherwise that of "
			"COMMAND\n"},
		argc, argv);
}
