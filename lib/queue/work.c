/* SPDX-License-Identifier: MIT */
/*
 * The loop of a worker: look for notices and signals, look at the slots, talk to the store, wait.
 *
 *	OUTSIDE --- registered --> TAKES --- a notice, a signal, --> LEAVES ---> GONE
 *	   ^                         |       nothing to do
 *	   `------- fenced ----------'
 *
 *	OUTSIDE: it is not registered: not yet, or because others have declared it dead.
 *	TAKES:	 it takes commands as slots become free (slot.h), and hands in what has ended.
 *	LEAVES:	 it takes none, and hands in what ends until work->until. After a notice or a signal
 *		 its commands are told to end, and get KILL at work->kill_at.
 *
 * All that it wants of the store, but beats and the watch on other workers, is one call,
 * queue_exchange. While that fails, commands go on and results are kept (struct trouble).
 */
#include "queue/work.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/message.h"
#include "base/process/ending.h"
#include "base/xalloc.h"
#include "queue/output.h"
#include "queue/rules.h"
#include "queue/say.h"
#include "queue/slot.h"
#include "store/access.h"

#define PATIENCE       5000 /* ms that an answer of the store may take; a notice may wait as long */
#define PATIENCE_LEAVE 1000 /* the same while we leave */
#define AGAIN_FIRST    100  /* ms until a failed call is repeated; it doubles */
#define AGAIN_MOST     5000 /* ms */
#define KEEP_RESULTS   600000 /* ms during which we try again although the error looks permanent */
#define HAND_IN	       3000   /* ms before a deadline, reserved for handing in results */
#define LEAVE_TIME     30000  /* ms for leaving when no command runs */
#define WITHOUT	       60000  /* ms for handing in results after a notice without a deadline */
#define LONG_GRACE     10000  /* ms; with less time left until KILL we look at no other worker */
#define PAUSE_FIRST    1000   /* ms without a command after a fault of the machine; it doubles */
#define PAUSE_MOST     30000  /* ms */
#define FAULTS	       3      /* of the machine, after which we leave */
#define HEAR_EVERY     350 /* ms between two looks whether another machine has cancelled a command */
#define PROGRESS       1000 /* ms between two lines of progress */

enum work_state { WORK_OUTSIDE, WORK_TAKES, WORK_LEAVES, WORK_GONE };

/* The store does not answer. Nothing but the exchange is tried until it answers again. */
struct trouble {
	unsigned count; /* failures in a row; 0: it answers */
	int64_t since, again;
	bool said;
};

struct work {
	struct queue *queue;
	const struct queue_work *options;
	enum work_state state;
	struct queue_worker worker; /* token "": not registered */
	struct queue_beater *beater;
	struct queue_ring ring;
	struct slot_context place;
	struct reaper reaper;
	char *resources;
	struct slot *slots;
	struct loop loop;

	struct queue_exchange exchange; /* nonce not "": it has not been answered */
	struct queue_ended *ended;
	struct slot **sent; /* whose ends are in the exchange */
	struct trouble trouble;
	store_revision seen; /* the last answer is of this revision */
	bool ask;	     /* the queue has changed since, or it is time to ask again */
	int64_t asked_at;    /* when the last exchange began */
	int64_t look_at;     /* when to look at the other workers */
	int64_t progress_at;
	uint64_t said_failure, said_unfit;

	int64_t not_before; /* take nothing until then: staggered start, or a fault; 0: never yet */
	int64_t rest_until; /* when to ask for commands that we have put back ourselves */
	unsigned refused;   /* how often in a row this machine could not run commands */
	bool pauses;	    /* what the exchange hands in ended in a pause: it is known already */
	uint64_t faults;    /* of struct queue_exchange, when a command last succeeded here */
	int64_t drained_since; /* 0: it is not */

	int code, ended_by; /* the exit code; the signal that ends us, or 0 */
	bool signalled;	    /* such a signal has come */
	int64_t kill_at, until;
};

static size_t count_slots(const struct work *work, enum slot_state state)
{
	size_t count = 0;
	for (size_t i = 0; i < work->options->slots; i++)
		count += work->slots[i].state == state;
	return count;
}

static bool is_idle(const struct work *work)
{
	return count_slots(work, SLOT_FREE) == work->options->slots;
}

/* No command runs, but some may have to be handed in. */
static bool runs_nothing(const struct work *work)
{
	return count_slots(work, SLOT_FREE) + count_slots(work, SLOT_ENDED) == work->options->slots;
}

static int64_t doubled(int64_t first, unsigned times, int64_t most)
{
	while (times-- && first < most)
		first *= 2;
	return first < most ? first : most;
}

/* ---- Notices, signals, and leaving ---- */

/*
 * Take no more commands. kill_at: tell the running ones to end, and when they get KILL;
 * CLOCK_NEVER: they may end by themselves. In a repeated call the earlier times count.
 */
static void leave(struct work *work, int code, int64_t kill_at, int64_t until)
{
	if (work->state != WORK_LEAVES)
		work->code = code;
	work->state = WORK_LEAVES;
	work->kill_at = clock_earlier(work->kill_at, kill_at);
	work->until = clock_earlier(work->until, until);
	store_set_patience(work->queue->store, PATIENCE_LEAVE);
	for (size_t i = 0; i < work->options->slots && work->kill_at != CLOCK_NEVER; i++)
		slot_tell(&work->slots[i], ENDING_PREEMPTED, work->options->term_signal,
			work->kill_at);
}

int64_t queue_work_share(int64_t left)
{
	int64_t kept = left / 4 < HAND_IN ? left / 4 : HAND_IN;
	return left > 0 ? left - kept : 0;
}

static void take_notice(struct work *work, const struct notice *notice)
{
	int64_t now = clock_now(), kill_at, until;
	if (notice->deadline > notice->received && notice->deadline != CLOCK_NEVER) {
		kill_at = now + queue_work_share(notice->deadline - now);
		until = notice->deadline;
	} else {
		int64_t grace =
			work->options->grace < 0 ? work->options->kill_after : work->options->grace;
		kill_at = now + grace;
		until = kill_at + WITHOUT;
	}
	if (work->state != WORK_LEAVES || until < work->until)
		message_info("notice: %s%s%s", notice->source, *notice->reason ? ": " : "",
			notice->reason);
	leave(work, CODE_SAVED, kill_at, until);
}

static void take_notices(struct work *work)
{
	struct source_set *watch = work->options->watch;
	struct notice notice;
	while (source_set_take(watch, &notice))
		take_notice(work, &notice);
}

/* Take also notices that a source has caught but keeps until it knows more. */
static void take_held_notices(struct work *work)
{
	struct notice notice;
	while (source_set_take_held(work->options->watch, &notice))
		take_notice(work, &notice);
}

static void take_signals(struct work *work)
{
	for (int number; (number = loop_take_signal(&work->loop, NULL));) {
		/* A second signal kills the commands at once. */
		int64_t grace = work->signalled ? 0 : work->options->kill_after;
		int64_t kill_at = clock_after(grace);
		work->signalled = true;
		/* If a notice came first, its exit code stays. */
		if (work->state != WORK_LEAVES || work->code != CODE_SAVED)
			work->ended_by = number;
		if (work->state != WORK_LEAVES && !runs_nothing(work))
			message_info("%s: stopping the running commands and putting them back; "
				     "a second signal kills them",
				strsignal(number));
		leave(work, 128 + number, kill_at, kill_at + WITHOUT);
	}
}

/* ---- Trouble with the store ---- */

/* Note the outcome of a call; a permanent error makes us leave. */
static void note_answer(struct work *work, enum status status, const struct error *err)
{
	struct trouble *trouble = &work->trouble;
	if (!status_is_error(status)) {
		if (trouble->said)
			message_info("the store answers again");
		if (trouble->count)
			work->look_at = 0;
		*trouble = (struct trouble){0};
		return;
	}
	if (!trouble->count++)
		trouble->since = clock_now();
	/* Commands go on, and results are kept. After a permanent error leave at once if there is
	 * neither; else once no command runs and KEEP_RESULTS have passed since the first failure.
	 */
	bool passes = status == STATUS_TEMPORARY || status == STATUS_TIMEOUT;
	bool idle = is_idle(work);
	bool long_enough = runs_nothing(work) && clock_now() - trouble->since > KEEP_RESULTS;
	if (!passes && work->state != WORK_LEAVES && (idle || long_enough)) {
		message_error("%s", err->text);
		trouble->said = true;
		leave(work, (int)status, clock_now(), clock_after(idle ? 0 : LEAVE_TIME));
	}
	/* Report it only if it lasts. */
	if (trouble->count == 3 && !trouble->said) {
		message_error(
			"cannot ask the store: %s; running commands go on; retrying", err->text);
		trouble->said = true;
	}
	trouble->again =
		clock_after(clock_jitter(doubled(AGAIN_FIRST, trouble->count - 1, AGAIN_MOST)));
}

/* ---- Registering, and being declared dead ---- */

/* How long a command may run here. */
static int64_t time_left(const struct work *work)
{
	int64_t at = source_set_expects(work->options->watch), now = clock_now();
	if (at == CLOCK_NEVER)
		return CLOCK_NEVER;
	return at > now ? at - now : 0;
}

static int64_t start_delay(const struct work *work)
{
	int64_t each = work->options->start_delay, most = work->options->start_delay_max;
	if (each <= 0)
		return 0;
	return work->worker.index < (uint64_t)(most / each) ? (int64_t)work->worker.index * each
							    : most;
}

static void enter(struct work *work)
{
	struct error err;
	int64_t left = time_left(work);
	say_name(work->options, &work->worker);
	work->worker.life = left == CLOCK_NEVER ? 0 : left + 1;
	enum status status = queue_register(work->queue, &work->worker, &err);
	if (status == STATUS_OK)
		status = queue_beater_start(
			&work->beater, work->options->url, work->queue, &work->worker, &err);
	note_answer(work, status, &err);
	if (status != STATUS_OK)
		return;
	work->exchange.worker = work->worker.token;
	work->ask = true;
	work->look_at = 0; /* look at once for workers that died on this machine */
	work->faults = 0;
	if (work->state == WORK_OUTSIDE)
		work->state = WORK_TAKES;
	if (work->not_before)
		return;
	work->not_before = clock_after(start_delay(work));
	message_detail("worker %s (%s) has registered%s", work->worker.name, work->worker.token,
		start_delay(work) ? " and delays its start (--start-delay)" : "");
}

/* End all commands, and drop their output. unanswered: the results in the exchange may have been
 * accepted, so their output stays. */
static void drop_commands(struct work *work, bool unanswered)
{
	int64_t now = clock_now();
	for (size_t i = 0; i < work->exchange.ended_count && unanswered; i++)
		slot_clear(work->sent[i], true, QUEUE_FAILED);
	for (size_t i = 0; i < work->options->slots; i++)
		slot_tell(&work->slots[i], ENDING_CANCELLED, SIGKILL, now);
	for (size_t i = 0; i < work->options->slots; i++)
		slot_clear(&work->slots[i], false, QUEUE_WAITING);
	queue_exchange_release(&work->exchange);
	work->exchange.ended_count = 0;
	*work->exchange.nonce = '\0';
}

/* Our commands were given to other workers: end them here, and register again. */
static void start_over(struct work *work, bool unanswered)
{
	message_error("this worker was silent for so long that it was declared dead: its "
		      "commands were given to other workers and are ended here%s",
		work->state == WORK_LEAVES ? "" : "; registering again");
	drop_commands(work, unanswered);
	*work->worker.token = '\0';
	queue_ring_release(&work->ring);
	queue_beater_stop(work->beater);
	work->beater = NULL;
	if (work->state == WORK_TAKES)
		work->state = WORK_OUTSIDE;
}

/* ---- The exchange: what we say ---- */

static void say_pause(struct work *work, const char *why)
{
	work->not_before = clock_after(doubled(PAUSE_FIRST, work->refused, PAUSE_MOST));
	if (!work->refused)
		message_error("commands cannot be run here now: %s; this worker takes nothing for "
			      "a while",
			why);
}

/* Whether to ask for commands. */
static bool may_take(struct work *work)
{
	struct error err;
	if (work->state != WORK_TAKES || clock_now() < work->not_before)
		return false;
	/* If a command died of a signal that may belong to a notice, take no more: that notice
	 * would end the next one, too. */
	if (count_slots(work, SLOT_HIT))
		return false;
	/* On a full disk all would fail: we go on when there is room. */
	if (work->refused && output_room(work->queue, &err) == STATUS_NO) {
		say_pause(work, err.text);
		return false;
	}
	return true;
}

/* Make what has ended durable, and put it into the exchange. False: this is to be tried again. */
static bool add_ended(struct work *work)
{
	struct queue_exchange *x = &work->exchange;
	struct error err;
	bool some = false, named = false;
	const char *fault = NULL;
	work->pauses = clock_now() < work->not_before;
	x->ended_count = 0;
	for (size_t i = 0; i < work->options->slots && x->ended_count < QUEUE_BATCH; i++)
		if (work->slots[i].state == SLOT_ENDED) {
			some |= slot_has_output(&work->slots[i]);
			work->sent[x->ended_count++] = &work->slots[i];
		}
	enum status room = some ? output_room(work->queue, &err) : STATUS_OK;
	if (status_is_error(room)) { /* where the files are, the store is, too */
		note_answer(work, room, &err);
		x->ended_count = 0;
		return false;
	}
	for (size_t i = 0; i < work->options->slots && room != STATUS_OK; i++)
		work->slots[i].doubted = true; /* a free one: until it is filled */
	for (size_t i = 0; i < x->ended_count; i++) {
		slot_keep(work->sent[i], room == STATUS_OK ? NULL : &err);
		named |= work->sent[i]->result.out || work->sent[i]->result.err;
	}
	if (room == STATUS_OK && named &&
		file_sync_directory(work->queue->files, &err) != STATUS_OK)
		for (size_t i = 0; i < x->ended_count; i++)
			slot_keep(work->sent[i], &err);
	for (size_t i = 0; i < x->ended_count; i++) {
		const struct slot *slot = work->sent[i];
		const struct queue_ending *ending = &slot->result.ending;
		work->ended[i] = (struct queue_ended){
			.id = slot->run.item.id, .token = slot->run.token, .result = slot->result};
		if (ending->kind == ENDING_MACHINE)
			fault = ending->text;
	}
	if (fault && !work->pauses)
		say_pause(work, fault);
	return true;
}

static bool begin_exchange(struct work *work)
{
	struct queue_exchange *x = &work->exchange;
	if (!add_ended(work))
		return false;
	x->ended = work->ended;
	x->want = may_take(work) ? count_slots(work, SLOT_FREE) + x->ended_count : 0;
	x->left = time_left(work);
	work->asked_at = clock_now();
	work->ask = false;
	return true;
}

/* ---- The exchange: what we hear ---- */

/* Note whether this machine could run a command that others can. Returns the fault, or NULL. */
static const char *note_result(struct work *work, const struct queue_ended *ended)
{
	const struct queue_ending *ending = &ended->result.ending;
	if (rules_is_refusal(ending) && ended->state == QUEUE_WAITING)
		return ending->text;
	if (ending->kind != ENDING_PREEMPTED && ending->kind != ENDING_CANCELLED)
		work->refused = 0;
	if (ended->state == QUEUE_SUCCEEDED)
		work->faults = work->exchange.faults;
	return NULL;
}

static void leave_machine(struct work *work, const char *why)
{
	if (work->state == WORK_LEAVES)
		return;
	message_error("%s: this worker leaves, and others run the commands", why);
	leave(work, CODE_TEMPORARY, CLOCK_NEVER, CLOCK_NEVER);
}

/* Free the slots whose results have been taken or refused. */
static void take_results(struct work *work)
{
	const struct queue_exchange *x = &work->exchange;
	char why[sizeof(x->ended->result.ending.text) + 80];
	const char *fault = NULL;
	for (size_t i = 0; i < x->ended_count; i++) {
		const struct queue_ended *ended = &x->ended[i];
		struct slot *slot = work->sent[i];
		if (!ended->accepted) {
			message_info("the result of command %" PRIu64 " was refused: the command "
				     "was given to another worker",
				ended->id);
		} else {
			message_detail("command %" PRIu64 ": %s", ended->id,
				queue_state_word(ended->state));
			const char *its = note_result(work, ended);
			fault = its ? its : fault;
		}
		slot_clear(slot, ended->accepted, ended->state);
	}
	if (fault && !work->pauses && ++work->refused >= FAULTS) {
		snprintf(why, sizeof(why), "%d times in a row a command could not be run here: %s",
			FAULTS, fault);
		leave_machine(work, why);
	}
	if (x->faults >= work->faults + FAULTS)
		leave_machine(work, "commands have failed here and then succeeded elsewhere");
}

static void end_told(struct work *work, const struct queue_told *told)
{
	for (size_t i = 0; i < work->options->slots; i++) {
		struct slot *slot = &work->slots[i];
		if (slot->state != SLOT_FREE && slot->run.item.id == told->id &&
			!strcmp(slot->run.token, told->token))
			slot_tell(slot, ENDING_CANCELLED, SIGTERM,
				clock_after(work->options->kill_after));
	}
}

static void start_taken(struct work *work)
{
	struct queue_exchange *x = &work->exchange;
	struct slot *slot = work->slots;
	for (size_t i = 0; i < x->taken_count; i++) {
		while (slot->state != SLOT_FREE)
			slot++;
		message_detail("command %" PRIu64 " starts", x->taken[i].item.id);
		if (work->state == WORK_TAKES)
			slot_start(slot, &x->taken[i]);
		else /* the answer of a call from before we left came late */
			slot_refuse(slot, &x->taken[i], ENDING_PREEMPTED,
				"its worker had to leave before it started");
	}
}

static void say_what_waits(struct work *work)
{
	const struct queue_exchange *x = &work->exchange;
	if (x->failure && x->failure != work->said_failure)
		message_info("command %" PRIu64 " has failed: nothing is taken until the failure "
			     "is reported (preempt-queue join)",
			x->failure);
	work->said_failure = x->failure;
	if (x->unfit && x->unfit != work->said_unfit)
		message_info("command %" PRIu64 " needs more time than is left here (%" PRId64
			     " s): it is left to other workers",
			x->unfit, x->left / 1000);
	if (x->unfit)
		work->said_unfit = x->unfit;
}

/* --idle-exit */
static void note_drained(struct work *work)
{
	const struct queue_exchange *x = &work->exchange;
	int64_t now = clock_now();
	bool over = is_idle(work) && (x->drained || x->failure) && now >= work->not_before;
	if (!over || work->options->idle_exit < 0 || work->state != WORK_TAKES) {
		work->drained_since = 0;
		return;
	}
	if (!work->drained_since)
		work->drained_since = now;
	if (now - work->drained_since >= work->options->idle_exit)
		leave(work, x->drained ? CODE_OK : CODE_BROKEN, now, clock_after(LEAVE_TIME));
}

static void exchange(struct work *work)
{
	struct queue_exchange *x = &work->exchange;
	struct error err;
	bool again = *x->nonce;
	if (!again && !begin_exchange(work))
		return;
	enum status status = queue_exchange(work->queue, x, &err);
	note_answer(work, status, &err);
	if (status == STATUS_NO)
		start_over(work, again);
	if (status != STATUS_OK)
		return;
	work->seen = work->queue->revision;
	work->rest_until = x->rest == CLOCK_NEVER ? CLOCK_NEVER : clock_after(x->rest);
	take_results(work);
	x->ended_count = 0;
	for (size_t i = 0; i < x->told_count; i++)
		end_told(work, &x->told[i]);
	start_taken(work);
	say_what_waits(work);
	note_drained(work);
	queue_exchange_release(x);
}

/* ---- Other requests ---- */

static void look_at_others(struct work *work)
{
	struct error err, why;
	uint64_t back = 0;
	bool trouble;
	uint64_t written = queue_beater_written(work->beater, &trouble, &why);
	if (trouble)
		message_detail("cannot beat: %s", why.text);
	enum status status =
		queue_ring_look(&work->ring, work->queue, &work->worker, written, &back, &err);
	if (back)
		message_info("a worker is gone: %" PRIu64 " command%s that ran there wait%s again",
			back, back == 1 ? "" : "s", back == 1 ? "s" : "");
	note_answer(work, status, &err);
	if (status == STATUS_NO)
		start_over(work, *work->exchange.nonce);
	work->look_at = clock_after(work->options->period);
}

/*
 * Whether we still look for dead workers: others may rely on us while we beat. So this goes on
 * while we leave, until no command runs here, or KILL is near.
 */
static bool looks_at_others(const struct work *work, int64_t now)
{
	if (work->state == WORK_LEAVES && (runs_nothing(work) || work->kill_at - now < LONG_GRACE))
		return false;
	return *work->worker.token;
}

/* Unregister when all is handed in. */
static void try_to_leave(struct work *work)
{
	struct error err;
	enum status status = STATUS_OK;
	if (*work->worker.token) {
		status = queue_leave(work->queue, work->worker.token, &err);
		note_answer(work, status, &err);
	}
	if (!status_is_error(status))
		work->state = WORK_GONE;
}

static bool has_something_to_say(const struct work *work)
{
	return *work->worker.token && !work->trouble.count &&
	       (work->ask || count_slots(work, SLOT_ENDED) || *work->exchange.nonce);
}

static void show_progress(struct work *work)
{
	const struct queue_selection all = {0};
	struct queue_outcome outcome = {0};
	if (queue_outcome(work->queue, &all, &outcome, NULL) == STATUS_OK)
		say_progress(outcome.in, 0, 0);
}

static void ask_store(struct work *work)
{
	int64_t now = clock_now();
	if (now < work->trouble.again)
		return;
	if (work->state == WORK_OUTSIDE)
		enter(work);
	else if (work->trouble.count && *work->worker.token)
		exchange(work); /* it shows whether the store answers again */
	if (!work->trouble.count && looks_at_others(work, now) && now >= work->look_at)
		look_at_others(work);
	while (has_something_to_say(work))
		exchange(work);
	if (work->state == WORK_TAKES && !work->trouble.count && now >= work->progress_at) {
		show_progress(work);
		work->progress_at = now + PROGRESS;
	}
	if (work->state == WORK_LEAVES && is_idle(work) && !*work->exchange.nonce)
		try_to_leave(work);
}

/* ---- Waiting ---- */

/* What is due although nothing has happened. */
static void note_time(struct work *work, int64_t now)
{
	if (work->state == WORK_LEAVES && now >= work->until) {
		if (work->beater)
			message_error("no time is left to hand in what has ended: other workers "
				      "declare this one dead, and run its commands again");
		if (work->code == CODE_OK || work->code == CODE_SAVED)
			work->code = CODE_TEMPORARY;
		work->state = WORK_GONE;
		return;
	}
	work->ask |= now >= work->rest_until;
	work->ask |= work->asked_at < work->not_before && now >= work->not_before;
	work->ask |= work->drained_since && now >= work->drained_since + work->options->idle_exit;
}

static int64_t due(const struct work *work)
{
	int64_t now = clock_now(), at = CLOCK_NEVER;
	for (size_t i = 0; i < work->options->slots; i++)
		at = clock_earlier(at, slot_due(&work->slots[i]));
	if (work->state == WORK_LEAVES)
		at = clock_earlier(at, work->until);
	if (work->trouble.count)
		return clock_earlier(at, work->trouble.again);
	if (work->state == WORK_OUTSIDE)
		return now;
	if (looks_at_others(work, now))
		at = clock_earlier(at, work->look_at);
	if (work->state != WORK_TAKES)
		return at;
	if (work->not_before > now)
		at = clock_earlier(at, work->not_before);
	at = clock_earlier(at, work->rest_until);
	if (work->drained_since)
		at = clock_earlier(at, work->drained_since + work->options->idle_exit);
	return clock_earlier(at, work->progress_at);
}

static void wait_for_something(struct work *work)
{
	struct error err;
	struct loop *loop = &work->loop;
	source_set_watch(work->options->watch, loop);
	loop_wake_at(loop, due(work));
	if (!runs_nothing(work) && !store_is_local(work->queue->store))
		loop_wake_at(loop, clock_after(HEAR_EVERY));
	if (work->trouble.count || !*work->worker.token) {
		loop_wait(loop);
		return;
	}
	/* An idle worker also waits for the end of what runs elsewhere, after which it may exit. */
	bool idle = work->options->idle_exit >= 0 && is_idle(work);
	enum status status = queue_wait(work->queue, idle ? QUEUE_ANY : QUEUE_WORK, &work->seen,
		loop_take_due(loop), loop->descriptor, &err);
	if (status == STATUS_OK) {
		work->ask = true;
		work->drained_since = 0;
	} else if (status != STATUS_NO && status != STATUS_TIMEOUT) {
		note_answer(work, status, &err);
	}
}

static void look_at_slots(struct work *work, int64_t now)
{
	for (size_t i = 0; i < work->options->slots; i++) {
		struct slot *slot = &work->slots[i];
		if (slot->state == SLOT_HIT && now >= slot->at)
			take_held_notices(work);
		slot_tick(slot, now);
	}
}

static int loop(struct work *work)
{
	while (work->state != WORK_GONE) {
		int64_t now = clock_now(); /* all notices until then will be known */
		take_signals(work);
		take_notices(work);
		if (reaper_keep(&work->reaper))
			loop_watch(&work->loop, work->reaper.socket);
		look_at_slots(work, now);
		note_time(work, now);
		if (work->state != WORK_GONE)
			ask_store(work);
		if (work->state != WORK_GONE)
			wait_for_something(work);
	}
	return work->code;
}

/* ---- Beginning and end ---- */

/* We run what the queue says, so no other user may be able to write to it. */
static enum status check_access(const struct work *work, struct error *err)
{
	struct stat st;
	enum status status = store_check_private(work->queue->store, err);
	/* If it is not there yet, we shall make it. */
	if (status == STATUS_OK && stat(work->queue->files, &st) == 0)
		status = access_check(work->queue->files, &st, false, err);
	return status;
}

static enum status begin(struct work *work, struct error *err)
{
	enum status status = check_access(work, err);
	if (status == STATUS_OK)
		status = reaper_start(&work->reaper, err);
	if (status != STATUS_OK)
		return status;
	ending_catch();
	status = loop_open(&work->loop, err);
	work->loop.signals = ending_descriptor();
	if (work->loop.signals < 0)
		return error_set(err, STATUS_TEMPORARY, "cannot receive signals");
	loop_watch(&work->loop, work->loop.signals);
	loop_watch(&work->loop, work->reaper.socket); /* readable when the reaper is gone */
	store_set_patience(work->queue->store, PATIENCE);
	return status;
}

static void end(struct work *work)
{
	drop_commands(work, *work->exchange.nonce);
	message_progress(NULL);
	queue_beater_stop(work->beater);
	queue_ring_release(&work->ring);
	if (work->resources)
		(void)file_remove_tree(work->resources, NULL);
	reaper_stop(&work->reaper);
	free(work->resources);
	free(work->slots);
	free(work->ended);
	free(work->sent);
	loop_close(&work->loop);
	/* ended_by ends us, not a caught PIPE (the reader of stderr is gone). */
	ending_set(work->ended_by);
}

int queue_work(struct queue *queue, const struct queue_work *options)
{
	struct error err;
	struct work work = {.queue = queue,
		.options = options,
		.loop = LOOP_CLOSED,
		.slots = xcalloc(options->slots, sizeof(*work.slots)),
		.ended = xcalloc(options->slots, sizeof(*work.ended)),
		.sent = xcalloc(options->slots, sizeof(*work.sent)),
		.progress_at = isatty(STDERR_FILENO) && !message_is_quiet() ? 0 : CLOCK_NEVER,
		.rest_until = CLOCK_NEVER,
		.kill_at = CLOCK_NEVER,
		.until = CLOCK_NEVER};
	work.place = (struct slot_context){.queue = queue,
		.worker = &work.worker,
		.reaper = &work.reaper,
		.loop = &work.loop,
		.devices = options->devices,
		.resources = &work.resources,
		.kill_after = options->kill_after};
	for (size_t i = 0; i < options->slots; i++)
		work.slots[i] = (struct slot){.place = &work.place, .number = i};
	int code = begin(&work, &err) == STATUS_OK ? loop(&work) : message_fail(&err);
	end(&work);
	return code;
}
