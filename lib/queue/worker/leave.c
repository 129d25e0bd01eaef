/* SPDX-License-Identifier: MIT */
/* Notices, signals that end us, and leaving. */
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/message.h"
#include "queue/worker/loop.h"

#define HAND_IN	 3000  /* ms before a deadline, reserved for handing in results */
#define WITHOUT	 60000 /* ms for handing in results if there is no deadline */
#define PATIENCE 1000  /* ms that an answer of the store may take while we leave */

int64_t work_share(int64_t left)
{
	int64_t kept = left / 4 < HAND_IN ? left / 4 : HAND_IN;
	return left > 0 ? left - kept : 0;
}

void work_leave(struct work *work, int code, int64_t kill_at, int64_t until)
{
	if (!work->leaving)
		work->code = code;
	work->leaving = true;
	work->kill_at = clock_earlier(work->kill_at, kill_at);
	work->until = clock_earlier(work->until, until);
	store_set_patience(work->queue->store, PATIENCE);
	for (size_t i = 0; i < work->slot_count; i++) {
		slot_tell(&work->slots[i], ENDING_PREEMPTED, work->options->term_signal,
			work->kill_at);
		work_end_held(&work->slots[i], ENDING_PREEMPTED, WORK_NOT_STARTED);
	}
}

static void take_notice(struct work *work, const struct notice *notice)
{
	int64_t now = clock_now(), kill_at, until;
	if (notice->deadline > notice->received && notice->deadline != CLOCK_NEVER) {
		kill_at = now + work_share(notice->deadline - now);
		until = notice->deadline;
	} else {
		int64_t grace =
			work->options->grace < 0 ? work->options->kill_after : work->options->grace;
		kill_at = now + grace;
		until = kill_at + WITHOUT;
	}
	if (!work->leaving || until < work->until)
		message_info("notice: %s%s%s", notice->source, *notice->reason ? ": " : "",
			notice->reason);
	work_leave(work, CODE_SAVED, kill_at, until);
}

void work_take_notices(struct work *work)
{
	struct source_set *watch = work->options->watch;
	struct notice notice;
	source_set_wait(watch, NULL, 0, 0);
	while (source_set_take(watch, &notice))
		take_notice(work, &notice);
}

void work_take_held(struct work *work)
{
	struct notice notice;
	while (source_set_take_held(work->options->watch, &notice))
		take_notice(work, &notice);
}

void work_take_signals(struct work *work)
{
	struct signalfd_siginfo signal;
	while (read(work->signals, &signal, sizeof(signal)) == sizeof(signal)) {
		int64_t now = clock_now();
		bool again = work->signalled;
		work->signalled = true;
		/* If a notice came first, its exit code stays. */
		if (!work->leaving || work->code != CODE_SAVED)
			work->ended_by = (int)signal.ssi_signo;
		if (!work->leaving && work_runs_something(work))
			message_info("%s: stopping the running commands and putting them back; "
				     "a second signal kills them",
				strsignal((int)signal.ssi_signo));
		/* A second signal kills the commands at once. */
		int64_t kill_at = again ? now : now + work->options->kill_after;
		work_leave(work, 128 + (int)signal.ssi_signo, kill_at, kill_at + WITHOUT);
	}
}

static void say_what_is_left(const struct work *work)
{
	size_t running = work->slot_count - work_free_slots(work);
	if (running)
		message_error("no time is left: the results of %zu command%s could not be "
			      "stored; other workers will run %s again",
			running, running == 1 ? "" : "s", running == 1 ? "it" : "them");
	else
		message_error("no time is left to unregister: the other workers will declare "
			      "this one dead");
}

bool work_has_left(struct work *work)
{
	struct error err;
	int64_t now = clock_now();
	bool idle = work_is_idle(work) && !moves_are_unknown(work->queue);
	if (idle && !work->registered)
		return true;
	if (idle && (!work->failures || now >= work->again)) {
		enum status status = workers_remove(work->queue, &work->worker, &err);
		work_note_answer(work, status, &err);
		work->registered = status != STATUS_OK && status != STATUS_NO;
		if (!work->registered)
			return true;
	}
	if (now < work->until)
		return false;
	say_what_is_left(work);
	if (work->code == STATUS_OK || work->code == CODE_SAVED)
		work->code = STATUS_TEMPORARY;
	return true;
}
