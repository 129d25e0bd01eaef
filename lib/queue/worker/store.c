/* SPDX-License-Identifier: MIT */
/* The requests of a worker to the store. */
#include <signal.h>

#include "base/clock.h"
#include "base/message.h"
#include "queue/after.h"
#include "queue/worker/loop.h"

#define AGAIN_FIRST  100    /* ms */
#define AGAIN_MOST   5000   /* ms */
#define DRAINED	     1000   /* ms between two looks whether the queue is drained */
#define KEEP_RESULTS 600000 /* ms during which we try again although the error looks permanent */
#define LEAVE_TIME   30000  /* ms for leaving when the queue is drained */
#define LONG_GRACE   10000  /* ms; with less time left until KILL we look at no other worker */

void work_note_answer(struct work *work, enum status status, const struct error *err)
{
	if (status == STATUS_OK || status == STATUS_NO) {
		/* On a full disk reads succeed. A successful read does not show that the failed
		 * write would succeed now. */
		if (work->refused)
			return;
		if (work->said_trouble)
			message_info("the store answers again");
		work->said_trouble = false;
		work->failures = 0;
		return;
	}
	work->stuck = true;
	if (!work->failures)
		work->failing_since = clock_now();
	/* Commands go on, and results are kept. After a permanent error leave at once if there is
	 * neither; else once no command runs and KEEP_RESULTS passed since the first failure. */
	bool passes = status == STATUS_TEMPORARY || status == STATUS_TIMEOUT;
	bool idle = work_is_idle(work);
	bool long_enough = idle || (!work_runs_something(work) &&
					   clock_now() - work->failing_since > KEEP_RESULTS);
	if (!passes && !work->leaving && long_enough) {
		message_error("%s", err->text);
		work->said_trouble = true;
		/* While we leave we take nothing, so handing in may succeed. */
		work_leave(work, (int)status, clock_now(), clock_after(idle ? 0 : LEAVE_TIME));
	}
	/* Report it only if it lasts. */
	if (++work->failures == 3 && !work->said_trouble) {
		message_error(
			"cannot ask the store: %s; running commands go on; retrying", err->text);
		work->said_trouble = true;
	}
	int64_t most = AGAIN_FIRST;
	for (unsigned i = 1; i < work->failures && most < AGAIN_MOST; i++)
		most *= 2;
	work->again = clock_after(clock_jitter(most < AGAIN_MOST ? most : AGAIN_MOST));
}

/* ---- Registering, and registering again ---- */

static void join(struct work *work)
{
	struct error err;
	/* If we were registered before, another worker may have our old number by now. */
	work_name(work->options, &work->worker);
	enum status status = workers_join(work->queue, &work->worker, &err);
	if (status == STATUS_OK)
		status = beater_start(
			&work->beater, work->options->url, work->queue, &work->worker, &err);
	work_note_answer(work, status, &err);
	if (status != STATUS_OK)
		return;
	work->registered = work->worth_trying = true;
	work->period_at = 0; /* look at once for workers that died on this machine */
	if (work->was_registered)
		return;
	work->was_registered = true;
	int64_t delay = work->options->start_delay_max;
	if (work->options->start_delay <= 0)
		delay = 0;
	else if (work->worker.index < (uint64_t)(delay / work->options->start_delay))
		delay = (int64_t)work->worker.index * work->options->start_delay;
	work->not_before = clock_after(delay);
	message_detail("worker %s (%s) has registered%s", work->worker.name, work->worker.token,
		delay ? " and delays its start (--start-delay)" : "");
}

/* ---- Handing in and taking ---- */

/* Free the slots whose results were accepted or refused; the others are handed in again. */
static void settle(struct work *work)
{
	size_t kept = 0;
	for (size_t i = 0; i < work->ended_count; i++) {
		struct slot *slot = work->ended[i];
		const struct queue_run *run = &slot->run;
		unsigned long long id = run->item.id;
		if (run->outcome == RUN_PENDING || run->outcome == RUN_SENT) {
			work->ended[kept++] = slot;
			continue;
		}
		if (run->outcome == RUN_REFUSED)
			message_info("the result of command %llu was refused: the command was "
				     "given to another worker",
				id);
		else
			message_detail("command %llu: %s", id, queue_state_word(run->result.state));
		if (run->outcome == RUN_ACCEPTED && run->result.state != QUEUE_WAITING)
			work_write_joblog(work, run);
		slot_clear(slot, &work->place);
	}
	work->ended_count = kept;
}

/* Our commands were given to other workers: end them here, and register again. */
static void start_over(struct work *work)
{
	int64_t now = clock_now();
	message_error("this worker was silent for so long that it was declared dead: its "
		      "commands were given to other workers and are ended here%s",
		work->leaving ? "" : "; registering again");
	for (size_t i = 0; i < work->ended_count; i++)
		if (work->ended[i]->run.outcome == RUN_PENDING)
			work->ended[i]->run.outcome = RUN_REFUSED;
	settle(work);
	for (size_t i = 0; i < work->slot_count; i++)
		slot_tell(&work->slots[i], ENDING_CANCELLED, SIGKILL, now);
	for (size_t i = 0; i < work->slot_count; i++)
		slot_clear(&work->slots[i], &work->place);
	work->ended_count = 0;
	exchange_pauses_release(&work->pauses);
	work->exchange = (struct exchange){
		.queue = work->queue, .worker = &work->worker, .pauses = &work->pauses};
	judge_release(&work->judge);
	beater_stop(work->beater);
	work->beater = NULL;
	work->registered = false;
}

static size_t at_most(size_t count, size_t most)
{
	return count < most ? count : most;
}

static void exchange(struct work *work)
{
	struct exchange *x = &work->exchange;
	struct error err;
	size_t want = 0;
	x->ended_count = at_most(work->ended_count, QUEUE_BATCH);
	for (size_t i = 0; i < x->ended_count; i++)
		x->ended[i] = &work->ended[i]->run;
	/* The call below resets error_pending: look again for commands, if it was set. */
	work->worth_trying |= x->error_pending;
	if (work->worth_trying && work_may_take(work, clock_now()) && !exchange_has_failure(x))
		want = at_most(work_free_slots(work) + x->ended_count, QUEUE_BATCH);
	x->want = want;
	enum status status = exchange_run(x, &err);
	work->refused = status != STATUS_OK && status != STATUS_NO;
	work_note_answer(work, status, &err);
	settle(work);
	if (status == STATUS_NO) {
		start_over(work);
		return;
	}
	/* If we got as many as we wanted, there may be more. */
	if (status == STATUS_OK && want)
		work->worth_trying = x->got == want;
	for (size_t i = 0; i < x->got; i++)
		work_start(work, &x->taken[i]);
	if (x->error_pending && !work->said_pending)
		message_info("a command has failed: nothing is taken until the failure is "
			     "reported (preempt-queue join)");
	if (want)
		work->said_pending = x->error_pending;
	if (x->got)
		work->drained_since = 0;
}

/* ---- At times ---- */

/* Report a damaged record that is not ours; our commands go on. */
static void say_damage(struct work *work, const struct error *err)
{
	if (!work->said_damage)
		message_error("%s", err->text);
	work->said_damage = true;
	work->worth_trying |= work->failures > 0;
}

/* Release, or cancel, commands whose --after commands are over. */
static void carry_on(struct work *work)
{
	struct error err;
	enum status status = queue_carry_on(work->queue, &work->exchange.pending, &err);
	if (status == STATUS_DAMAGED) {
		work->exchange.pending = false;
		say_damage(work, &err);
		return;
	}
	work_note_answer(work, status, &err);
}

static void look_at_others(struct work *work)
{
	struct error err, trouble_err;
	uint64_t fenced = 0;
	bool trouble;
	uint64_t written = beater_written(work->beater, &trouble, &trouble_err);
	if (trouble)
		message_detail("cannot beat: %s", trouble_err.text);
	enum status status =
		judge_look(&work->judge, work->queue, &work->worker, written, &fenced, &err);
	if (fenced)
		message_info("%llu worker%s gone: the commands that ran there wait again",
			(unsigned long long)fenced, fenced == 1 ? " is" : "s are");
	if (status == STATUS_DAMAGED) {
		/*
		 * The record is not ours: go on. The next exchange shows whether the store answers.
		 */
		say_damage(work, &err);
		return;
	}
	work_note_answer(work, status, &err);
	if (status == STATUS_NO)
		start_over(work);
}

/* End our commands that were cancelled. */
static void look_for_cancelled(struct work *work)
{
	struct store_answer answer = {0};
	struct error err;
	enum status status =
		queue_list(work->queue, "cancel", (struct store_range){0}, &answer, &err);
	work_note_answer(work, status, &err);
	for (size_t i = 0; i < answer.count; i++) {
		uint64_t id;
		if (!queue_key_id(answer.entries[i].key, &id))
			continue;
		for (size_t k = 0; k < work->slot_count; k++) {
			struct slot *slot = &work->slots[k];
			if (!(slot->busy || slot->held) || slot->run.item.id != id)
				continue;
			slot_tell(slot, ENDING_CANCELLED, SIGTERM,
				clock_after(work->options->kill_after));
			work_end_held(slot, ENDING_CANCELLED, "");
			slot->because = queue_cancel_cause(&answer.entries[i]);
			/* It has ended, and its output cannot be kept: do not try for ever. */
			if (slot->ended && !slot->collected)
				run_end_cancelled(&slot->run, &answer.entries[i]);
		}
	}
	store_answer_release(&answer);
}

/* Leave if no command of the whole queue has waited or run for the time of --idle-exit. */
static void look_whether_drained(struct work *work, int64_t now)
{
	struct queue_count count;
	struct error err;
	enum status status = queue_count(work->queue, &count, &err);
	work_note_answer(work, status, &err);
	if (status != STATUS_OK)
		return;
	uint64_t sum = count.scheduled + count.succeeded + count.failed + count.cancelled;
	/* While a failure is pending no worker takes the waiting commands; they are cancelled when
	 * it is reported. */
	bool pending = work->exchange.error_pending;
	if ((count.waiting && !pending) || count.running) {
		work->drained_since = 0;
	} else if (!work->drained_since || sum != work->drained_sum) {
		work->drained_since = now;
		work->drained_sum = sum;
	}
	int64_t left = work->drained_since ? work->drained_since + work->options->idle_exit - now
					   : DRAINED;
	if (left <= 0)
		work_leave(work, pending && count.waiting ? CODE_BROKEN : STATUS_OK, now,
			clock_after(LEAVE_TIME));
	work->drained_at = now + (left < DRAINED ? left : DRAINED);
}

bool work_looks_at_others(const struct work *work, int64_t now)
{
	if (work->leaving && (!work_runs_something(work) || work->kill_at - now < LONG_GRACE))
		return false;
	return work->registered;
}

bool work_asks_whether_drained(const struct work *work, int64_t now)
{
	return work->options->idle_exit >= 0 && work_is_idle(work) && work_may_take(work, now) &&
	       !work->worth_trying;
}

static bool has_something_for_store(const struct work *work, int64_t now)
{
	if (!work->registered || work->stuck)
		return false;
	return work->ended_count || moves_are_unknown(work->queue) ||
	       (work->worth_trying && work_may_take(work, now) && work_free_slots(work));
}

void work_ask_store(struct work *work)
{
	int64_t now = clock_now();
	work->asked_at = now;
	if (work->failures && now < work->again)
		return;
	/* Look at the others at once: that shows whether the store answers again. */
	if (work->failures)
		work->period_at = 0;
	work->stuck = false;
	if (!has_something_for_store(work, now))
		work->refused = false;
	work->worth_trying |= exchange_pauses_end(&work->pauses, now);
	if (!work->registered && !work->leaving)
		join(work);
	/* Settle an unknown transaction before anything else moves commands. */
	if (work->registered && moves_are_unknown(work->queue))
		exchange(work);
	if (!work->stuck && now >= work->period_at && work_looks_at_others(work, now)) {
		look_at_others(work);
		if (work->registered && !work->stuck && !work_is_idle(work))
			look_for_cancelled(work);
		/* Carry on what another process may have left undone. */
		work->exchange.pending |= work->registered && !work->leaving;
		work->period_at = clock_after(work->options->period);
	}
	while (has_something_for_store(work, clock_now()))
		exchange(work);
	if (work->exchange.pending && work->registered && !work->stuck)
		carry_on(work);
	now = clock_now();
	if (!work->stuck && work_asks_whether_drained(work, now) && now >= work->drained_at)
		look_whether_drained(work, now);
}
