/* SPDX-License-Identifier: MIT */
/* The agent's heartbeat: its tasks beat, and one whose training hangs is declared by its own agent.
 */
#include "base/clock.h"
#include "base/message.h"
#include "group/agent_inside.h"

enum status agent_start_pulse(
	const struct agent_options *options, struct pulse **pulse, struct error *err)
{
	struct process_identity self;
	struct pulse_options how = {.store = options->store,
		.rules = options->beats,
		.first = options->identity->task,
		.count = options->identity->count,
		.who = &self};
	if (options->beats.period == 0)
		return STATUS_OK;
	enum status status = process_identify(0, &self, err);
	return status == STATUS_OK ? pulse_start(pulse, &how, err) : status;
}

enum status agent_open_pulse(struct agent *agent, struct error *err)
{
	agent->group.progress = agent->options->progress;
	return agent_start_pulse(agent->options, &agent->group.pulse, err);
}

/* Only time in which it could advance and the store answers is held against it. */
static bool time_counts(const struct agent *agent, const struct seat *seat)
{
	const struct pulse *pulse = agent->group.pulse;
	bool answered = pulse ? pulse_is_answered(pulse) : !agent->store_away;
	return answered && seat->command->running && !seat->command->ending &&
	       seat->agreement.told.order == ORDER_RUN && !seat->finished;
}

static void declare_hung(struct agent *agent, struct seat *seat)
{
	struct group *group = &agent->group;
	const struct progress *p = &seat->progress;
	struct death death = {.task = seat->task,
		.cause = DEATH_HUNG,
		.since_utc = clock_utc() - p->standing,
		.has_step = p->started,
		.step = p->step,
		.section = p->section};
	struct write write;
	if (!seat->hung)
		message_error("task %llu hangs: no progress for %lld s, the limit is %lld s",
			(unsigned long long)seat->task, (long long)p->standing / 1000,
			(long long)progress_limit(p, &group->progress) / 1000);
	seat->hung = true;
	write_build_deaths(&write, &group->view, seat->task, &death, 1);
	worker_write(group->worker, &write);
}

static void look_at_progress(struct agent *agent, struct seat *seat, int64_t now)
{
	struct progress_rules *rules = &agent->group.progress;
	struct board_section section = {0};
	if (!progress_is_wanted(rules) || board_read_section(&seat->board, &section) != STATUS_OK)
		return;
	struct progress_look look = {.now = now,
		.counts = time_counts(agent, seat),
		.started = seat->tempo.seen,
		.step = seat->tempo.step,
		.section = section.name,
		.written = section.written};
	bool dead = agent->group.view.agreement.peers[seat->task].dead;
	if (progress_look(&seat->progress, rules, &look) && !dead && look.counts)
		declare_hung(agent, seat);
}

void agent_look_for_hangs(struct agent *agent, int64_t now)
{
	for (size_t i = 0; i < agent->seat_count; i++) {
		struct seat *seat = &agent->seats[i];
		if (seat->tempo.seen)
			pulse_tell_step(agent->group.pulse, i, seat->tempo.step);
		if (!seat->agreement.ended)
			look_at_progress(agent, seat, now);
	}
}

/* The round waits for its report or for its save. */
static bool is_awaited(const struct agent *agent, uint64_t task)
{
	const struct agreement_view *view = &agent->group.view.agreement;
	const struct agreement_peer *peer = &view->peers[task];
	if (!view->round || !agreement_counts(view, task))
		return false;
	return view->decided ? peer->member && !peer->saved : !peer->reported;
}

bool agent_declare_gone(struct agent *agent, bool awaited_only)
{
	struct group *group = &agent->group;
	const struct view *view = &group->view;
	uint64_t first = agent->options->identity->task;
	bool found = false;
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		bool ours = i >= first && i < first + agent->seat_count;
		bool asked =
			awaited_only ? is_awaited(agent, i) : agreement_counts(&view->agreement, i);
		if (ours || !asked || !view->members[i].joined ||
			process_look(&view->members[i].agent) != PROCESS_GONE)
			continue;
		struct death death = {.task = i, .cause = DEATH_GONE, .since_utc = clock_utc()};
		struct write write;
		write_build_deaths(&write, view, first, &death, 1);
		worker_write(group->worker, &write);
		found = true;
	}
	return found;
}
