/* SPDX-License-Identifier: MIT */
/* Which attempt a process belongs to: the decision, and how launch ids compare. */
#include "group/attempt.h"

#include "unit.h"

static const char *const verdicts[] = {
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
		{"slurm:9:01", "slurm:9:0", LAUNCH_OTHER}, /* not as anybody writes it */
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
	struct attempt_scene scene;
	enum attempt_verdict verdict;
};
#define SCENE(...)                                                                                 \
	{                                                                                          \
		.exists = true, .tasks = 4, __VA_ARGS__                                            \
	}

static void judged(void)
{
	static const struct row rows[] = {
		{"nothing there: open the first", {.exists = false}, ATTEMPT_OPEN},
		{"the newest is closed: open the next", SCENE(.closed = true), ATTEMPT_OPEN},
		{"closed wins over a living process of it",
			SCENE(.closed = true, .slot = SLOT_ALIVE, .others = SLOT_ALIVE),
			ATTEMPT_OPEN},
		{"closed wins over our own place in it", SCENE(.closed = true, .slot = SLOT_OURS),
			ATTEMPT_OPEN},
		{"closed wins over an older launch id",
			SCENE(.closed = true, .launch = LAUNCH_OLDER), ATTEMPT_OPEN},
		{"open and our place is free: join", SCENE(.slot = SLOT_FREE), ATTEMPT_JOIN},
		{"the others being there does not matter",
			SCENE(.slot = SLOT_FREE, .others = SLOT_ALIVE), ATTEMPT_JOIN},
		{"we are in it already", SCENE(.slot = SLOT_OURS), ATTEMPT_JOINED},
		{"we are in it, and it was claimed since",
			SCENE(.slot = SLOT_OURS, .sealed = true, .claimed = true), ATTEMPT_JOINED},
		{"claimed before we joined: leave unstarted",
			SCENE(.sealed = true, .claimed = true, .slot = SLOT_FREE),
			ATTEMPT_TOO_LATE},
		{"broken before we joined: wait for its end",
			SCENE(.sealed = true, .slot = SLOT_FREE), ATTEMPT_WAIT},
		{"claimed before we joined, and nobody of it lives: bury",
			SCENE(.sealed = true, .claimed = true, .slot = SLOT_FREE,
				.others = SLOT_DEAD, .lost = true, .deserted = true),
			ATTEMPT_BURY},
		{"claimed before we joined, a host of the same name has another boot: leave unstarted",
			SCENE(.sealed = true, .claimed = true, .slot = SLOT_FREE,
				.others = SLOT_DEAD),
			ATTEMPT_TOO_LATE},
		{"not complete, a host of the same name has another boot: join",
			SCENE(.slot = SLOT_FREE, .others = SLOT_DEAD), ATTEMPT_JOIN},
		{"the same, but of our launch: leave unstarted",
			SCENE(.sealed = true, .claimed = true, .same_launch = true,
				.slot = SLOT_FREE, .others = SLOT_DEAD, .lost = true,
				.deserted = true),
			ATTEMPT_TOO_LATE},
		{"claimed before we joined, and another still leaves: leave unstarted",
			SCENE(.sealed = true, .claimed = true, .slot = SLOT_FREE,
				.others = SLOT_ALIVE, .lost = true),
			ATTEMPT_TOO_LATE},
		{"not complete, and one who joined is dead: bury",
			SCENE(.slot = SLOT_FREE, .others = SLOT_ALIVE, .lost = true), ATTEMPT_BURY},
		{"the same, but of our launch: join",
			SCENE(.slot = SLOT_FREE, .others = SLOT_ALIVE, .lost = true,
				.same_launch = true),
			ATTEMPT_JOIN},
		{"the others of our launch were preempted and have left: leave unstarted",
			SCENE(.closed = true, .claimed = true, .same_launch = true,
				.slot = SLOT_FREE),
			ATTEMPT_TOO_LATE},
		{"we were among those who were preempted and have left: open the next",
			SCENE(.closed = true, .claimed = true, .same_launch = true,
				.slot = SLOT_LEFT),
			ATTEMPT_OPEN},
		{"a living process has our place", SCENE(.slot = SLOT_ALIVE), ATTEMPT_REFUSE_ALIVE},
		{"the same when sealed", SCENE(.slot = SLOT_ALIVE, .sealed = true, .claimed = true),
			ATTEMPT_REFUSE_ALIVE},
		{"our predecessor has left, the others have not: wait", SCENE(.slot = SLOT_LEFT),
			ATTEMPT_WAIT},
		{"our predecessor is dead: bury", SCENE(.slot = SLOT_DEAD, .others = SLOT_ALIVE),
			ATTEMPT_BURY},
		{"our predecessor cannot be seen from here: wait", SCENE(.slot = SLOT_UNKNOWN),
			ATTEMPT_WAIT},
		{"everybody is through, nobody closed it: open the next",
			SCENE(.all_through = true, .slot = SLOT_LEFT), ATTEMPT_OPEN},
		{"a lingering old script: refused",
			SCENE(.launch = LAUNCH_OLDER, .slot = SLOT_FREE), ATTEMPT_REFUSE_LINGERING},
		{"a lingering old script: refused although all are through",
			SCENE(.launch = LAUNCH_OLDER, .all_through = true, .slot = SLOT_LEFT),
			ATTEMPT_REFUSE_LINGERING},
		{"restarted by the scheduler, the old ones are dead: bury",
			SCENE(.launch = LAUNCH_NEWER, .slot = SLOT_DEAD, .others = SLOT_DEAD),
			ATTEMPT_BURY},
		{"restarted by the scheduler, the old ones cannot be seen: it is surely over",
			SCENE(.launch = LAUNCH_NEWER, .slot = SLOT_UNKNOWN, .others = SLOT_UNKNOWN),
			ATTEMPT_BURY},
		{"restarted by the scheduler, an old one lives and leaves: wait",
			SCENE(.launch = LAUNCH_NEWER, .slot = SLOT_FREE, .others = SLOT_ALIVE,
				.sealed = true, .claimed = true),
			ATTEMPT_WAIT},
		{"restarted by the scheduler, an old one lives and trains: refused",
			SCENE(.launch = LAUNCH_NEWER, .slot = SLOT_FREE, .others = SLOT_ALIVE),
			ATTEMPT_REFUSE_ALIVE},
		{"another launch beside a living one: two jobs, one name",
			SCENE(.launch = LAUNCH_OTHER, .slot = SLOT_FREE, .others = SLOT_ALIVE),
			ATTEMPT_REFUSE_ALIVE},
		{"another launch after a dead one: bury",
			SCENE(.launch = LAUNCH_OTHER, .slot = SLOT_DEAD, .others = SLOT_DEAD),
			ATTEMPT_BURY},
		{"another launch, the old one cannot be seen: wait",
			SCENE(.launch = LAUNCH_OTHER, .slot = SLOT_FREE, .others = SLOT_UNKNOWN),
			ATTEMPT_WAIT},
		{"another launch after one that is through: open the next",
			SCENE(.launch = LAUNCH_OTHER, .all_through = true, .slot = SLOT_LEFT,
				.others = SLOT_LEFT),
			ATTEMPT_OPEN},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum attempt_verdict got = attempt_judge(&rows[i].scene, 4);
		if (!CHECK(got == rows[i].verdict, "%s", rows[i].what))
			printf("# got:    %s\n# wanted: %s\n", verdicts[got],
				verdicts[rows[i].verdict]);
	}
}

static void other_numbers(void)
{
	struct attempt_scene scene = SCENE(.slot = SLOT_FREE);
	CHECK(attempt_judge(&scene, 3) == ATTEMPT_REFUSE_TASKS,
		"another number of tasks is another job: refused");
	scene.sealed = scene.claimed = true;
	CHECK(attempt_judge(&scene, 3) == ATTEMPT_TOO_LATE,
		"claimed, with another number of tasks: too late, not refused");
}

int main(void)
{
	other_numbers();
	launches();
	judged();
	return unit_end();
}
