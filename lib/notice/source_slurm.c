/* SPDX-License-Identifier: MIT */
/*
 * slurm or slurm:TERM,USR1. Notices come from signals, which source_signal.c catches, and from the
 * job's end. Slurm is asked by squeue, and rarely, because a controller serves thousands of jobs:
 * once at the start if SLURM_JOB_END_TIME is not set, once before the notice that the end is near
 * (the limit may have been changed), and once after a signal. The signal's notice waits for that
 * answer, at most for PATIENCE: the time left decides what the group does first.
 *
 * Slurm gives an end by the clock of its controller. An end that has already passed by our clock
 * when we first get it is not used as a deadline: the job runs, so one of the clocks is wrong. Then
 * the time left is counted as if the job had started together with this process, and only decides
 * when to give the notice that the end is near.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/process/subprocess.h"
#include "base/xalloc.h"
#include "notice/source.h"
#include "platform/slurm.h"

#define PATIENCE    3000   /* ms for an answer while a signal's notice waits */
#define NO_HURRY    10000  /* ms for any other answer */
#define SPREAD	    2000   /* ms over which the tasks of a job spread their questions, at most */
#define SPREAD_EACH 4	   /* ms for each task */
#define AGAIN	    600000 /* ms until a failed question about the end is asked again */
#define CHECK_EVERY 30000  /* ms between two readings of the wall clock */

struct slurm_source {
	struct source source;
	struct source *signals;
	struct subprocess squeue;
	struct loop loop; /* squeue and the signals */
	char job_id[64];  /* "9", or "9_3" for a task of an array */
	int64_t grace;
	int64_t began;	   /* clock_now */
	int64_t start_utc; /* of the job; 0: not known */
	int64_t end_utc;   /* 0: not known */
	bool doubted;	   /* the end had passed by our clock when we first got it */
	int64_t warn_of;   /* the end that had passed, until source_check warns of it; 0: none */
	int64_t lead;	   /* ms before the end at which its notice is given */
	int64_t ask;	   /* when to ask for the end; CLOCK_NEVER: do not ask */
	int64_t spread;
	bool confirmed; /* Slurm was asked again when the end was near */
	bool given;	/* the notice that the end is near, or that of a signal */

	bool held;  /* the notice of a signal waits for Slurm's answer */
	bool asked; /* Slurm was asked after that signal */
	struct notice notice;
	int64_t start, until; /* of the held notice: when to ask; when to give it unanswered */
};

static void slurm_close(struct source *source)
{
	struct slurm_source *self = (struct slurm_source *)source;
	subprocess_release(&self->squeue);
	source_close(self->signals);
	loop_close(&self->loop);
	free(self);
}

/* Estimate the controller's clock. */
static int64_t controller_utc(const struct slurm_source *self)
{
	int64_t running = clock_now() - self->began;
	if (self->doubted)
		return self->start_utc + running;
	return slurm_utc(clock_utc(), self->start_utc, running);
}

/* Note the job's start and end as Slurm gives them; 0: not given. */
static void know_end(struct slurm_source *self, int64_t start_utc, int64_t end_utc)
{
	if (start_utc)
		self->start_utc = start_utc;
	if (!end_utc)
		return;
	bool over = !self->end_utc && end_utc <= controller_utc(self);
	if (over && !self->doubted)
		self->warn_of = end_utc;
	self->doubted |= over;
	if (self->doubted && (!self->start_utc || self->start_utc >= end_utc))
		return; /* no known start from which to count */
	if (!self->end_utc)
		self->lead = notice_lead(self->grace, end_utc - controller_utc(self));
	self->end_utc = end_utc;
}

static enum source_answer warn(struct slurm_source *self, struct error *err)
{
	char end[32], now[32];
	clock_format_utc(self->warn_of, end);
	clock_format_utc(clock_utc(), now);
	error_set(err, STATUS_NO,
		"Slurm says that job %s ends at %s, but this machine's clock says %s and it runs: "
		"one of the clocks is wrong; the end is not used as a deadline",
		self->job_id, end, now);
	self->warn_of = 0;
	return SOURCE_WARNING;
}

/* A time from the environment, ms since 1970; 0: not set. */
static int64_t time_of(const char *variable)
{
	uint64_t seconds = 0;
	(void)signs_number(&signs_environment, variable, 0, (uint64_t)1 << 40, &seconds, NULL);
	return (int64_t)seconds * 1000;
}

static enum status slurm_open(struct source **source, const char *rest,
	const struct source_options *options, struct error *err)
{
	uint64_t tasks = 1;
	char job[64], specification[300];
	enum status status = slurm_job_name(&signs_environment, false, job, err);
	if (status == STATUS_NO)
		error_set(err, STATUS_USAGE,
			"source slurm: SLURM_JOB_ID is not set, so this is no job of Slurm");
	if (status != STATUS_OK)
		return STATUS_USAGE;
	struct slurm_source *self = xcalloc(1, sizeof(*self));
	snprintf(self->job_id, sizeof(self->job_id), "%s", job);
	self->grace = options->grace;
	self->began = clock_now();
	self->lead = notice_lead(self->grace, INT64_MAX);
	(void)signs_number(&signs_environment, "SLURM_NTASKS", 1, UINT32_MAX, &tasks, NULL);
	self->spread = tasks < SPREAD / SPREAD_EACH ? (int64_t)tasks * SPREAD_EACH : SPREAD;
	self->ask = CLOCK_NEVER;
	know_end(self, time_of("SLURM_JOB_START_TIME"), time_of("SLURM_JOB_END_TIME"));
	if (!self->end_utc)
		self->ask = clock_after(clock_jitter(10 * self->spread)); /* not urgent */
	self->loop = LOOP_CLOSED;
	snprintf(specification, sizeof(specification), "signal:%s", *rest ? rest : NOTICE_SIGNALS);
	status = source_open(&self->signals, specification, options, err);
	if (status == STATUS_OK)
		status = loop_open(&self->loop, err);
	if (status != STATUS_OK) {
		slurm_close(&self->source);
		return status;
	}
	loop_watch(&self->loop, source_descriptor(self->signals));
	*source = &self->source;
	return STATUS_OK;
}

static int slurm_descriptor(const struct source *source)
{
	return ((const struct slurm_source *)source)->loop.descriptor;
}

static bool is_near(const struct slurm_source *self)
{
	return self->end_utc && self->end_utc - self->lead <= controller_utc(self);
}

/* When to look at the end next: after CHECK_EVERY at most, because the wall clock may be set. */
static int64_t end_due(const struct slurm_source *self)
{
	if (!self->end_utc || self->given)
		return CLOCK_NEVER;
	if (is_near(self)) /* now, unless Slurm will be asked first */
		return self->confirmed || self->ask == CLOCK_NEVER ? 0 : CLOCK_NEVER;
	int64_t wait = self->end_utc - self->lead - controller_utc(self);
	return clock_after(wait < CHECK_EVERY ? wait : CHECK_EVERY);
}

static int64_t slurm_due(const struct source *source)
{
	const struct slurm_source *self = (const struct slurm_source *)source;
	int64_t due = self->warn_of ? 0 : CLOCK_NEVER;
	if (self->squeue.pid)
		due = clock_earlier(self->squeue.end.due, due);
	else if (self->held)
		due = clock_earlier(self->start, due);
	else
		due = clock_earlier(self->ask, due);
	if (self->held)
		return clock_earlier(self->until, due);
	return self->squeue.pid ? due : clock_earlier(end_due(self), due);
}

/* Give the held notice, with its reason and why, and the time left at receipt (ms; negative: not
 * known). */
static enum source_answer give_held(
	struct slurm_source *self, const char *why, int64_t left, struct notice *notice)
{
	const struct notice *held = &self->notice;
	char reason[sizeof(held->reason)];
	snprintf(reason, sizeof(reason), "%.120s%s%.133s", held->reason, *why ? "; " : "", why);
	notice_set(notice, held->source, reason,
		(struct notice_time){held->received, held->received_utc}, left);
	notice->signal = held->signal;
	self->held = false;
	self->given = true; /* so the end needs no notice of its own */
	return SOURCE_NOTICE;
}

/* "WHAT at END, but this machine's clock says NOW: the time left is not known" */
static void say_doubt(char *text, size_t size, const char *what, int64_t end_utc)
{
	char end[32], now[32];
	clock_format_utc(end_utc, end);
	clock_format_utc(clock_utc(), now);
	snprintf(text, size,
		"%s at %s, but this machine's clock says %s: the time left is not "
		"known",
		what, end, now);
}

/* Give the held notice with Slurm's answer. */
static enum source_answer give_answered(
	struct slurm_source *self, const struct slurm_job *job, struct notice *notice)
{
	struct notice_time now = notice_time();
	char why[160];
	if (job->start)
		self->start_utc = job->start;
	int64_t utc = slurm_utc(now.utc, self->start_utc, now.now - self->began);
	struct slurm_estimate estimate =
		slurm_estimate_left(job, self->notice.signal, self->end_utc, self->lead, utc);
	bool doubted = estimate.over || (self->doubted && estimate.left >= 0);
	snprintf(why, sizeof(why), "%s", estimate.why);
	if (doubted)
		say_doubt(why, sizeof(why), estimate.why, job->end);
	int64_t left = !doubted && estimate.left >= 0
			       ? estimate.left + (now.now - self->notice.received)
			       : self->grace;
	if (self->grace >= 0 && self->grace < left)
		left = self->grace;
	return give_held(self, why, left, notice);
}

/* Squeue has failed: continue with what is known. */
static enum source_answer not_answered(
	struct slurm_source *self, int64_t now, struct notice *notice, const struct error *err)
{
	self->ask = now + AGAIN;
	self->confirmed = true;
	return self->held ? give_held(self, err->text, self->grace, notice) : SOURCE_CANNOT_ASK;
}

/* Squeue has ended: read its output. */
static enum source_answer read_answer(
	struct slurm_source *self, int64_t now, struct notice *notice, struct error *err)
{
	struct slurm_job job;
	enum source_answer answer = SOURCE_NONE;
	if (slurm_ask_end(&self->squeue, &job, err) != STATUS_OK)
		return not_answered(self, now, notice, err);
	if (self->held)
		answer = give_answered(self, &job, notice);
	if (!job.end && !strcmp(job.state, "RUNNING")) { /* the limit was removed */
		self->end_utc = 0;
		self->doubted = false;
	}
	know_end(self, job.start, job.end);
	self->ask = CLOCK_NEVER;
	self->confirmed = is_near(self); /* false: the end was moved */
	return answer;
}

/* If the end is near: ask Slurm whether it was moved, then give the notice. */
static enum source_answer look_at_end(struct slurm_source *self, int64_t now, struct notice *notice)
{
	char utc[32], reason[160];
	struct notice_time time = notice_time();
	int64_t left = self->end_utc - controller_utc(self);
	if (!is_near(self) || self->given)
		return SOURCE_NONE;
	if (!self->confirmed) {
		if (self->ask == CLOCK_NEVER)
			self->ask = now + clock_jitter(self->spread);
		return SOURCE_PENDING;
	}
	self->given = true;
	clock_format_utc(self->end_utc, utc);
	snprintf(reason, sizeof(reason), "the job's time is up at %s", utc);
	if (self->doubted)
		say_doubt(reason, sizeof(reason), "the job's time is up", self->end_utc);
	notice_set(notice, "slurm:end", reason, time,
		self->doubted ? self->grace
		: left > 0    ? left
			      : 0);
	return SOURCE_NOTICE;
}

/*
 * Hold one notice: signals that come before it is given belong to the same event. Kill a squeue
 * that was started before the signal: Slurm may have moved the end since.
 */
static void catch_signal(struct slurm_source *self, int64_t now, struct error *err)
{
	struct notice notice;
	if (source_check(self->signals, now, &notice, err) != SOURCE_NOTICE || self->held)
		return;
	self->held = true;
	self->asked = false;
	self->notice = notice;
	self->start = now + clock_jitter(self->spread);
	self->until = now + PATIENCE;
	if (self->squeue.pid && self->grace != 0)
		self->squeue.limit = now;
}

static enum source_answer slurm_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err)
{
	struct slurm_source *self = (struct slurm_source *)source;
	catch_signal(self, now, err);
	if (self->warn_of)
		return warn(self, err);
	/* With --grace 0 an answer could add no time: do not ask. */
	if (self->held && self->grace == 0)
		return give_held(self, "", 0, notice);
	enum subprocess_state state = subprocess_finish(&self->squeue, now);
	if (self->held && now >= self->until && state == SUBPROCESS_RUNS)
		return give_held(self, "squeue has not answered in time", self->grace, notice);
	if (state == SUBPROCESS_RUNS || (self->held && !self->asked && state != SUBPROCESS_NONE))
		return SOURCE_PENDING;
	if (state == SUBPROCESS_ENDED)
		return read_answer(self, now, notice, err);
	if (state == SUBPROCESS_LATE) {
		error_set(err, STATUS_TEMPORARY, "squeue has not answered in time");
		return not_answered(self, now, notice, err);
	}
	if (self->held && now < self->start)
		return SOURCE_PENDING;
	if (!self->held && now < self->ask)
		return look_at_end(self, now, notice);
	subprocess_release(&self->squeue);
	if (slurm_ask_start(&self->squeue, self->job_id, now + (self->held ? PATIENCE : NO_HURRY),
		    &self->loop, err) != STATUS_OK)
		return not_answered(self, now, notice, err);
	self->asked = self->held;
	return SOURCE_PENDING;
}

static bool slurm_take_held(struct source *source, struct notice *notice)
{
	struct slurm_source *self = (struct slurm_source *)source;
	catch_signal(self, clock_now(), NULL);
	return self->held && give_held(self, "", self->grace, notice) == SOURCE_NOTICE;
}

static int64_t slurm_expects(const struct source *source)
{
	const struct slurm_source *self = (const struct slurm_source *)source;
	if (!self->end_utc || self->given)
		return CLOCK_NEVER;
	return clock_now() + self->end_utc - self->lead - controller_utc(self);
}

const struct source_kind source_slurm = {.name = "slurm",
	.example = "slurm:TERM,USR1",
	.bare = true,
	.signals = NOTICE_SIGNALS,
	.open = slurm_open,
	.close = slurm_close,
	.descriptor = slurm_descriptor,
	.due = slurm_due,
	.check = slurm_check,
	.take_held = slurm_take_held,
	.expects = slurm_expects};
