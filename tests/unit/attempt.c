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
#define LAUNCH(order) .launch = LAUNCH_##order
#define OURS(place)   .membership = MEMBERSHIP_##place
#define OTHERS(place) .others = MEMBERSHIP_##place
#define SEALED	      .sealed = true
#define CLAIMED	      .claimed = true
#define CLOSED	      .closed = true
#define LOST	      .lost = true
#define SAME_LAUNCH   .same_launch = true
#define DESERTED      .deserted = true
#define ALL_THROUGH   .all_through = true

static void judged(void)
{
	static const struct row rows[] = {
		{"nothing there: open the first", {.exists = false}, ATTEMPT_OPEN},
		{"the newest is closed: open the next", STATE(CLOSED), ATTEMPT_OPEN},
		{"closed wins over a living process of it",
			STATE(CLOSED, OURS(ALIVE), OTHERS(ALIVE)), ATTEMPT_OPEN},
		{"closed wins over our own place in it", STATE(CLOSED, OURS(OURS)), ATTEMPT_OPEN},
		{"closed wins over an older launch id", STATE(CLOSED, LAUNCH(OLDER)), ATTEMPT_OPEN},
		{"open and our place is free: join", STATE(OURS(FREE)), ATTEMPT_JOIN},
		{"the others being there does not matter", STATE(OURS(FREE), OTHERS(ALIVE)),
			ATTEMPT_JOIN},
		{"we are in it already", STATE(OURS(OURS)), ATTEMPT_JOINED},
		{"we are in it, and it was claimed since", STATE(OURS(OURS), SEALED, CLAIMED),
			ATTEMPT_JOINED},
		{"claimed before we joined: leave unstarted", STATE(SEALED, CLAIMED, OURS(FREE)),
			ATTEMPT_TOO_LATE},
		{"broken before we joined: wait for its end", STATE(SEALED, OURS(FREE)),
			ATTEMPT_WAIT},
		{"claimed before we joined, and no task of it lives: bury",
			STATE(SEALED, CLAIMED, OURS(FREE), OTHERS(DEAD), LOST, DESERTED),
			ATTEMPT_DECLARE_DEAD},
		{"claimed before we joined, a host of the same name has another boot: leave unstarted",
			STATE(SEALED, CLAIMED, OURS(FREE), OTHERS(DEAD)), ATTEMPT_TOO_LATE},
		{"not complete, a host of the same name has another boot: join",
			STATE(OURS(FREE), OTHERS(DEAD)), ATTEMPT_JOIN},
		{"the same, but of our launch: leave unstarted",
			STATE(SEALED, CLAIMED, SAME_LAUNCH, OURS(FREE), OTHERS(DEAD), LOST,
				DESERTED),
			ATTEMPT_TOO_LATE},
		{"claimed before we joined, and another still leaves: leave unstarted",
			STATE(SEALED, CLAIMED, OURS(FREE), OTHERS(ALIVE), LOST), ATTEMPT_TOO_LATE},
		{"not complete, and one that joined is dead: bury",
			STATE(OURS(FREE), OTHERS(ALIVE), LOST), ATTEMPT_DECLARE_DEAD},
		{"the same, but of our launch: join",
			STATE(OURS(FREE), OTHERS(ALIVE), LOST, SAME_LAUNCH), ATTEMPT_JOIN},
		{"the others of our launch were preempted and have left: leave unstarted",
			STATE(CLOSED, CLAIMED, SAME_LAUNCH, OURS(FREE)), ATTEMPT_TOO_LATE},
		{"we were among those that were preempted and have left: open the next",
			STATE(CLOSED, CLAIMED, SAME_LAUNCH, OURS(LEFT)), ATTEMPT_OPEN},
		{"a living process has our place", STATE(OURS(ALIVE)), ATTEMPT_REFUSE_ALIVE},
		{"the same when sealed", STATE(OURS(ALIVE), SEALED, CLAIMED), ATTEMPT_REFUSE_ALIVE},
		{"our predecessor has left, the others have not: wait", STATE(OURS(LEFT)),
			ATTEMPT_WAIT},
		{"our predecessor is dead: bury", STATE(OURS(DEAD), OTHERS(ALIVE)),
			ATTEMPT_DECLARE_DEAD},
		{"our predecessor cannot be seen from here: wait", STATE(OURS(UNKNOWN)),
			ATTEMPT_WAIT},
		{"every task has finished, no task closed it: open the next",
			STATE(ALL_THROUGH, OURS(LEFT)), ATTEMPT_OPEN},
		{"a lingering old script: refused", STATE(LAUNCH(OLDER), OURS(FREE)),
			ATTEMPT_REFUSE_LINGERING},
		{"a lingering old script: refused although all have finished",
			STATE(LAUNCH(OLDER), ALL_THROUGH, OURS(LEFT)), ATTEMPT_REFUSE_LINGERING},
		{"restarted by the scheduler, the old ones are dead: bury",
			STATE(LAUNCH(NEWER), OURS(DEAD), OTHERS(DEAD)), ATTEMPT_DECLARE_DEAD},
		{"restarted by the scheduler, the old ones cannot be seen: it is surely over",
			STATE(LAUNCH(NEWER), OURS(UNKNOWN), OTHERS(UNKNOWN)), ATTEMPT_DECLARE_DEAD},
		{"restarted by the scheduler, an old one lives and leaves: wait",
			STATE(LAUNCH(NEWER), OURS(FREE), OTHERS(ALIVE), SEALED, CLAIMED),
			ATTEMPT_WAIT},
		{"restarted by the scheduler, an old one lives and trains: refused",
			STATE(LAUNCH(NEWER), OURS(FREE), OTHERS(ALIVE)), ATTEMPT_REFUSE_ALIVE},
		{"another launch beside a living one: two jobs, one name",
			STATE(LAUNCH(OTHER), OURS(FREE), OTHERS(ALIVE)), ATTEMPT_REFUSE_ALIVE},
		{"another launch after a dead one: bury",
			STATE(LAUNCH(OTHER), OURS(DEAD), OTHERS(DEAD)), ATTEMPT_DECLARE_DEAD},
		{"another launch, the old one cannot be seen: wait",
			STATE(LAUNCH(OTHER), OURS(FREE), OTHERS(UNKNOWN)), ATTEMPT_WAIT},
		{"another launch after one that has finished: open the next",
			STATE(LAUNCH(OTHER), ALL_THROUGH, OURS(LEFT), OTHERS(LEFT)), ATTEMPT_OPEN},
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
	struct attempt_join_state state = STATE(OURS(FREE));
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
