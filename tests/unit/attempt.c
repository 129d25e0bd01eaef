/* SPDX-License-Identifier: MIT */
/* Which attempt a process belongs to: the decision, and how launch ids compare. */
#include "run/attempt.h"

#include "unit.h"

static const char *const decisions[] = {
	"open", "join", "joined", "wait", "bury", "too late", "alive", "lingering", "tasks"};

static void launches(void)
{
	static const struct {
		const char *ours, *theirs;
		enum launch_order order;
	} rows[] = {
		{"", "", LAUNCH_SAME},
		{"slurm:9:0", "", LAUNCH_SAME},
		{"", "slurm:9:0", LAUNCH_SAME},
		{"slurm:9:0", "slurm:9:0", LAUNCH_SAME},
		{"slurm:9:1", "slurm:9:0", LAUNCH_NEWER},
		{"slurm:9:0", "slurm:9:1", LAUNCH_OLDER},
		{"slurm:9:10", "slurm:9:9", LAUNCH_NEWER}, /* a number, not text */
		{"slurm:9:1+step:0", "slurm:9:0+step:0", LAUNCH_NEWER},
		{"slurm:9:0+step:3", "slurm:9:1+step:0", LAUNCH_OLDER}, /* the restart counts */
		{"slurm:9:1+step:1", "slurm:9:1+step:0", LAUNCH_OTHER}, /* two steps of one job */
		{"slurm:9:1", "slurm:8:0", LAUNCH_OTHER},
		{"slurm:9:1", "slurm:91:0", LAUNCH_OTHER},
		{"torchrun:abc:1", "slurm:9:0", LAUNCH_OTHER},
		{"torchrun:abc:1", "torchrun:abc:0", LAUNCH_NEWER},
		{"nonce", "other", LAUNCH_OTHER},
		{"slurm:9:x", "slurm:9:0", LAUNCH_OTHER},
		{"slurm:9:", "slurm:9:0", LAUNCH_OTHER},
		{"slurm:9:01", "slurm:9:0", LAUNCH_OTHER}, /* not as any task writes it */
		{"slurm:9:99999999999999999999", "slurm:9:0", LAUNCH_OTHER},
		{":", ":", LAUNCH_SAME},
		{"+", "::+", LAUNCH_OTHER},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK(attempt_compare_launch(rows[i].ours, rows[i].theirs) == rows[i].order,
			"launch \"%s\" beside \"%s\"", rows[i].ours, rows[i].theirs);
}

/* An attempt of 4 tasks, and a process that says so, too. */
struct row {
	const char *what;
	struct attempt_join_state state;
	enum attempt_join_decision decision;
};
#define STATE(...)                                                                                 \
	{                                                                                          \
		.exists = true, .tasks = 4, __VA_ARGS__                                            \
	}

static void judged(void)
{
	static const struct row rows[] = {
		{"nothing there: open the first", {.exists = false}, ATTEMPT_OPEN},
		{"the newest is closed: open the next", STATE(.closed = true), ATTEMPT_OPEN},
		{"closed wins over a living process of it",
			STATE(.closed = true, .membership = MEMBERSHIP_ALIVE,
				.others = MEMBERSHIP_ALIVE),
			ATTEMPT_OPEN},
		{"closed wins over our own place in it",
			STATE(.closed = true, .membership = MEMBERSHIP_OURS), ATTEMPT_OPEN},
		{"closed wins over an older launch id",
			STATE(.closed = true, .launch = LAUNCH_OLDER), ATTEMPT_OPEN},
		{"open and our place is free: join", STATE(.membership = MEMBERSHIP_FREE),
			ATTEMPT_JOIN},
		{"the others being there does not matter",
			STATE(.membership = MEMBERSHIP_FREE, .others = MEMBERSHIP_ALIVE),
			ATTEMPT_JOIN},
		{"we are in it already", STATE(.membership = MEMBERSHIP_OURS), ATTEMPT_JOINED},
		{"we are in it, and it was claimed since",
			STATE(.membership = MEMBERSHIP_OURS, .sealed = true, .claimed = true),
			ATTEMPT_JOINED},
		{"claimed before we joined: leave unstarted",
			STATE(.sealed = true, .claimed = true, .membership = MEMBERSHIP_FREE),
			ATTEMPT_TOO_LATE},
		{"broken before we joined: wait for its end",
			STATE(.sealed = true, .membership = MEMBERSHIP_FREE), ATTEMPT_WAIT},
		{"claimed before we joined, and no task of it lives: bury",
			STATE(.sealed = true, .claimed = true, .membership = MEMBERSHIP_FREE,
				.others = MEMBERSHIP_DEAD, .lost = true, .deserted = true),
			ATTEMPT_DECLARE_DEAD},
		{"claimed before we joined, a host of the same name has another boot: leave unstarted",
			STATE(.sealed = true, .claimed = true, .membership = MEMBERSHIP_FREE,
				.others = MEMBERSHIP_DEAD),
			ATTEMPT_TOO_LATE},
		{"not complete, a host of the same name has another boot: join",
			STATE(.membership = MEMBERSHIP_FREE, .others = MEMBERSHIP_DEAD),
			ATTEMPT_JOIN},
		{"the same, but of our launch: leave unstarted",
			STATE(.sealed = true, .claimed = true, .same_launch = true,
				.membership = MEMBERSHIP_FREE, .others = MEMBERSHIP_DEAD,
				.lost = true, .deserted = true),
			ATTEMPT_TOO_LATE},
		{"claimed before we joined, and another still leaves: leave unstarted",
			STATE(.sealed = true, .claimed = true, .membership = MEMBERSHIP_FREE,
				.others = MEMBERSHIP_ALIVE, .lost = true),
			ATTEMPT_TOO_LATE},
		{"not complete, and one that joined is dead: bury",
			STATE(.membership = MEMBERSHIP_FREE, .others = MEMBERSHIP_ALIVE,
				.lost = true),
			ATTEMPT_DECLARE_DEAD},
		{"the same, but of our launch: join",
			STATE(.membership = MEMBERSHIP_FREE, .others = MEMBERSHIP_ALIVE,
				.lost = true, .same_launch = true),
			ATTEMPT_JOIN},
		{"the others of our launch were preempted and have left: leave unstarted",
			STATE(.closed = true, .claimed = true, .same_launch = true,
				.membership = MEMBERSHIP_FREE),
			ATTEMPT_TOO_LATE},
		{"we were among those that were preempted and have left: open the next",
			STATE(.closed = true, .claimed = true, .same_launch = true,
				.membership = MEMBERSHIP_LEFT),
			ATTEMPT_OPEN},
		{"a living process has our place", STATE(.membership = MEMBERSHIP_ALIVE),
			ATTEMPT_REFUSE_ALIVE},
		{"the same when sealed",
			STATE(.membership = MEMBERSHIP_ALIVE, .sealed = true, .claimed = true),
			ATTEMPT_REFUSE_ALIVE},
		{"our predecessor has left, the others have not: wait",
			STATE(.membership = MEMBERSHIP_LEFT), ATTEMPT_WAIT},
		{"our predecessor is dead: bury",
			STATE(.membership = MEMBERSHIP_DEAD, .others = MEMBERSHIP_ALIVE),
			ATTEMPT_DECLARE_DEAD},
		{"our predecessor cannot be seen from here: wait",
			STATE(.membership = MEMBERSHIP_UNKNOWN), ATTEMPT_WAIT},
		{"every task has finished, no task closed it: open the next",
			STATE(.all_through = true, .membership = MEMBERSHIP_LEFT), ATTEMPT_OPEN},
		{"a lingering old script: refused",
			STATE(.launch = LAUNCH_OLDER, .membership = MEMBERSHIP_FREE),
			ATTEMPT_REFUSE_LINGERING},
		{"a lingering old script: refused although all have finished",
			STATE(.launch = LAUNCH_OLDER, .all_through = true,
				.membership = MEMBERSHIP_LEFT),
			ATTEMPT_REFUSE_LINGERING},
		{"restarted by the scheduler, the old ones are dead: bury",
			STATE(.launch = LAUNCH_NEWER, .membership = MEMBERSHIP_DEAD,
				.others = MEMBERSHIP_DEAD),
			ATTEMPT_DECLARE_DEAD},
		{"restarted by the scheduler, the old ones cannot be seen: it is surely over",
			STATE(.launch = LAUNCH_NEWER, .membership = MEMBERSHIP_UNKNOWN,
				.others = MEMBERSHIP_UNKNOWN),
			ATTEMPT_DECLARE_DEAD},
		{"restarted by the scheduler, an old one lives and leaves: wait",
			STATE(.launch = LAUNCH_NEWER, .membership = MEMBERSHIP_FREE,
				.others = MEMBERSHIP_ALIVE, .sealed = true, .claimed = true),
			ATTEMPT_WAIT},
		{"restarted by the scheduler, an old one lives and trains: refused",
			STATE(.launch = LAUNCH_NEWER, .membership = MEMBERSHIP_FREE,
				.others = MEMBERSHIP_ALIVE),
			ATTEMPT_REFUSE_ALIVE},
		{"another launch beside a living one: two jobs, one name",
			STATE(.launch = LAUNCH_OTHER, .membership = MEMBERSHIP_FREE,
				.others = MEMBERSHIP_ALIVE),
			ATTEMPT_REFUSE_ALIVE},
		{"another launch after a dead one: bury",
			STATE(.launch = LAUNCH_OTHER, .membership = MEMBERSHIP_DEAD,
				.others = MEMBERSHIP_DEAD),
			ATTEMPT_DECLARE_DEAD},
		{"another launch, the old one cannot be seen: wait",
			STATE(.launch = LAUNCH_OTHER, .membership = MEMBERSHIP_FREE,
				.others = MEMBERSHIP_UNKNOWN),
			ATTEMPT_WAIT},
		{"another launch after one that has finished: open the next",
			STATE(.launch = LAUNCH_OTHER, .all_through = true,
				.membership = MEMBERSHIP_LEFT, .others = MEMBERSHIP_LEFT),
			ATTEMPT_OPEN},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum attempt_join_decision got = attempt_decide_join(&rows[i].state, 4);
		if (!CHECK(got == rows[i].decision, "%s", rows[i].what))
			printf("# got:    %s\n# wanted: %s\n", decisions[got],
				decisions[rows[i].decision]);
	}
}

static void other_numbers(void)
{
	struct attempt_join_state state = STATE(.membership = MEMBERSHIP_FREE);
	CHECK(attempt_decide_join(&state, 3) == ATTEMPT_REFUSE_TASKS,
		"another number of tasks is another job: refused");
	state.sealed = state.claimed = true;
	CHECK(attempt_decide_join(&state, 3) == ATTEMPT_TOO_LATE,
		"claimed, with another number of tasks: too late, not refused");
}

int main(void)
{
	other_numbers();
	launches();
	judged();
	return unit_end();
}
