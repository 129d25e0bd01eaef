/* SPDX-License-Identifier: MIT */
/*
 * Who am I: environments as launchers really leave them, and what must come of them. The Slurm ones
 * were recorded from Slurm 22.05 (variables that play no part are left out).
 */
#include "run/identity.h"

#include <stdlib.h>
#include <string.h>

#include "store/url.h"
#include "unit.h"

/* An environment is "NAME=value NAME=value"; a name starting with '@' is a question of ours. */
static const char *lookup(void *context, const char *name)
{
	static char values[8][256];
	static unsigned next;
	size_t length = strlen(name);
	for (const char *s = context; *s; s += strcspn(s, " "), s += *s == ' ')
		if (!strncmp(s, name, length) && s[length] == '=') {
			char *value = values[next++ % 8];
			snprintf(value, sizeof(values[0]), "%.*s",
				(int)strcspn(s + length + 1, " "), s + length + 1);
			return value;
		}
	return NULL;
}

#define TASK(I)	 .request.task_given = true, .request.task = (I)
#define TASKS(N) .request.tasks_given = true, .request.tasks = (N)
#define NEED(K)	 .request.need = IDENTITY_##K
#define RUN(R)	 .request.run = (R)
#define LOCAL(L) .request.local = (L)

struct row {
	const char *title;
	char environment[700];
	struct identity_request request; /* need: IDENTITY_START unless said otherwise */
	const char *slurm_step;
	/* Expected: either words that the refusal must have (up to three), or what is found. */
	const char *refusal[3];
	const char *run;
	uint64_t task, tasks;
	uint64_t count;			       /* 0: 1 */
	const char *source, *launch, *warning; /* NULL: not looked at; warning "": none */
	bool several;
	bool no_task, ours;
};

#define SLURM_JOB(JOB, NODES)                                                                      \
	"SLURM_JOB_ID=" JOB " SLURM_JOBID=" JOB " SLURM_JOB_NUM_NODES=" NODES " "
#define SLURM_BATCH "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 "
#define SLURM_STEP(STEP, PROC, TASKS, NODE, NODES)                                                 \
	"SLURM_PROCID=" PROC " SLURM_LOCALID=0 SLURM_NODEID=" NODE " SLURM_NTASKS=" TASKS          \
	" SLURM_NPROCS=" TASKS " SLURM_STEPID=" STEP " SLURM_STEP_ID=" STEP                        \
	" SLURM_STEP_NUM_NODES=" NODES " SLURM_STEP_NUM_TASKS=" TASKS " "
#define TORCH(ID, RANK, SIZE, GROUP, GROUPS, LOCAL_SIZE, RESTARTS)                                 \
	"TORCHELASTIC_RUN_ID=" ID " RANK=" RANK " WORLD_SIZE=" SIZE " GROUP_RANK=" GROUP           \
	" GROUP_WORLD_SIZE=" GROUPS " LOCAL_WORLD_SIZE=" LOCAL_SIZE                                \
	" TORCHELASTIC_RESTART_COUNT=" RESTARTS " MASTER_ADDR=n1 MASTER_PORT=41001 "
#define TF_CLUSTER                                                                                 \
	"TF_CONFIG={\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:1\",\"c:1\"],"                \
	"\"ps\":[\"d:1\",\"e:1\"]},"
#define TF_WORKERS	     "TF_CONFIG={\"cluster\":{\"worker\":[\"localhost:1\",\"localhost:2\"]},"
#define TF_TASK(TYPE, INDEX) "\"task\":{\"type\":\"" TYPE "\",\"index\":" INDEX "}}"

static const struct row rows[] = {
	/* options and PREEMPT_ */
	{.title = "options alone",
		TASK(2),
		TASKS(4),
		RUN("r"),
		.run = "r",
		.task = 2,
		.tasks = 4,
		.source = "--task",
		.launch = "",
		.warning = ""},
	{.title = "PREEMPT_ alone",
		.environment = "PREEMPT_RUN=r PREEMPT_TASK=3 PREEMPT_TASKS=4 PREEMPT_LAUNCH=abc",
		.run = "r",
		.task = 3,
		.tasks = 4,
		.source = "PREEMPT_TASK",
		.launch = "abc"},
	{.title = "an option beats its variable, one by one",
		.environment = "PREEMPT_RUN=r PREEMPT_TASK=3 PREEMPT_TASKS=4",
		TASK(1),
		RUN("s"),
		.run = "s",
		.task = 1,
		.tasks = 4,
		.source = "--task"},
	{.title = "PREEMPT_ beats a Slurm step, whose step is then no part of the launch",
		.environment = SLURM_JOB("9", "2")
			SLURM_STEP("0", "1", "2", "1", "2") "PREEMPT_TASK=7 PREEMPT_TASKS=16",
		.run = "slurm-9",
		.task = 7,
		.tasks = 16,
		.source = "PREEMPT_TASK",
		.launch = "slurm:9:0",
		.several = true},
	{.title = "PREEMPT_ inside a batch shell needs no srun",
		.environment = SLURM_JOB("9", "2") SLURM_BATCH "PREEMPT_TASK=1 PREEMPT_TASKS=2",
		.run = "slurm-9",
		.task = 1,
		.tasks = 2,
		.warning = ""},
	{.title = "an empty variable is unset",
		.environment = "PREEMPT_RUN= PREEMPT_TASK= PREEMPT_TASKS= SLURM_JOB_ID= ",
		RUN("r"),
		.run = "r",
		.tasks = 1,
		.source = "no launcher"},
	{.title = "PREEMPT_TASK without PREEMPT_TASKS",
		.environment = "PREEMPT_TASK=1",
		RUN("r"),
		.refusal = {"PREEMPT_TASK", "--tasks N", "PREEMPT_TASKS"}},
	{.title = "--task without --tasks, even in a step",
		.environment = SLURM_JOB("9", "1") SLURM_STEP("0", "1", "2", "0", "1"),
		TASK(1),
		.refusal = {"--task", "--tasks N"}},
	{.title = "--tasks without a task",
		TASKS(4),
		RUN("r"),
		.refusal = {"--tasks says 4", "--task I", "preempt-run -n 4"}},
	{.title = "PREEMPT_TASKS=1 is task 0 of 1",
		.environment = "PREEMPT_TASKS=1",
		RUN("r"),
		.run = "r",
		.tasks = 1,
		.source = "PREEMPT_TASKS"},
	{.title = "task not below tasks",
		TASK(4),
		TASKS(4),
		RUN("r"),
		.refusal = {"task 4", "must be less than 4", "from 0"}},
	{.title = "no tasks",
		.environment = "PREEMPT_TASK=0 PREEMPT_TASKS=0",
		RUN("r"),
		.refusal = {"$PREEMPT_TASKS", "between 1 and 65536"}},
	{.title = "too many tasks",
		TASK(0),
		TASKS(65537),
		RUN("r"),
		.refusal = {"--tasks", "65536"}},
	{.title = "below an agent of several ranks PREEMPT_TASK is the first, LOCAL_RANK which",
		.environment = "PREEMPT_RUN=r PREEMPT_TASK=4 PREEMPT_TASKS=8 PREEMPT_RANKS=4 "
			       "LOCAL_RANK=3",
		NEED(TASK),
		.run = "r",
		.task = 7,
		.tasks = 8,
		.source = "PREEMPT_TASK + LOCAL_RANK"},
	{.title = "what is no rank speaks for the first",
		.environment = "PREEMPT_RUN=r PREEMPT_TASK=4 PREEMPT_TASKS=8 PREEMPT_RANKS=4",
		NEED(TASK),
		.run = "r",
		.task = 4,
		.tasks = 8,
		.source = "PREEMPT_TASK"},
	{.title = "--task stands, whatever the rank",
		.environment = "PREEMPT_RUN=r PREEMPT_TASK=4 PREEMPT_TASKS=8 PREEMPT_RANKS=4 "
			       "LOCAL_RANK=3",
		NEED(TASK),
		TASK(5),
		.run = "r",
		.task = 5,
		.tasks = 8,
		.source = "--task"},
	{.title = "LOCAL_RANK without PREEMPT_RANKS is another launcher's",
		.environment = "PREEMPT_RUN=r PREEMPT_TASK=1 PREEMPT_TASKS=2 LOCAL_RANK=1",
		NEED(TASK),
		.run = "r",
		.task = 1,
		.tasks = 2,
		.source = "PREEMPT_TASK"},
	{.title = "a LOCAL_RANK that is too great",
		.environment = "PREEMPT_TASK=4 PREEMPT_TASKS=8 PREEMPT_RANKS=4 LOCAL_RANK=4",
		NEED(TASK),
		RUN("r"),
		.refusal = {"$LOCAL_RANK", "between 0 and 3"}},
	{.title = "garbage in PREEMPT_TASK",
		.environment = "PREEMPT_TASK=1x PREEMPT_TASKS=2",
		RUN("r"),
		.refusal = {"$PREEMPT_TASK", "1x"}},
	{.title = "a negative PREEMPT_TASK",
		.environment = "PREEMPT_TASK=-1 PREEMPT_TASKS=2",
		RUN("r"),
		.refusal = {"$PREEMPT_TASK", "-1"}},
	{.title = "a run that is no name",
		.environment = "PREEMPT_RUN=../x",
		.refusal = {"$PREEMPT_RUN", "not a name"}},
	{.title = "a launch that is no name",
		.environment = "PREEMPT_LAUNCH=a/b",
		RUN("r"),
		.refusal = {"$PREEMPT_LAUNCH", "not a name"}},

	/* Slurm steps */
	{.title = "a Slurm step",
		.slurm_step = "9.0",
		.environment = SLURM_JOB("9", "3") SLURM_STEP("0", "2", "3", "2", "3"),
		.run = "slurm-9",
		.task = 2,
		.tasks = 3,
		.source = "Slurm step",
		.launch = "slurm:9:0+step:0",
		.several = true,
		.warning = ""},
	{.title = "a Slurm step on one machine after a requeue",
		.environment = SLURM_JOB("9", "1")
			SLURM_STEP("4", "1", "2", "0", "1") "SLURM_RESTART_COUNT=2",
		.run = "slurm-9",
		.task = 1,
		.tasks = 2,
		.launch = "slurm:9:2+step:4"},
	{.title = "a Slurm array: the run has the array's job and index, the launch the own job",
		.environment = SLURM_JOB("12", "1") SLURM_STEP(
			"0", "0", "2", "0", "1") "SLURM_ARRAY_JOB_ID=10 SLURM_ARRAY_TASK_ID=7",
		.run = "slurm-10_7",
		.tasks = 2,
		.launch = "slurm:12:0+step:0"},
	{.title = "a step smaller than its job counts the step's tasks",
		.environment = SLURM_JOB("1", "3") SLURM_STEP("1", "1", "2", "1", "2"),
		.run = "slurm-1",
		.task = 1,
		.tasks = 2,
		.several = true},
	{.title = "srun's own PMI is not another launcher",
		.slurm_step = "3.1",
		.environment = SLURM_JOB("3", "2") SLURM_STEP(
			"1", "1", "2", "1", "2") "PMI_FD=11 PMI_JOBID=3.1 PMI_RANK=1 PMI_SIZE=2",
		.run = "slurm-3",
		.task = 1,
		.tasks = 2,
		.source = "Slurm step",
		.launch = "slurm:3:0+step:1",
		.several = true},
	{.title = "PMI of another job's step, passed on by sbatch, is ignored",
		.environment = SLURM_JOB("10", "2")
			SLURM_STEP("0", "0", "2", "0", "2") "PMI_JOBID=9.0 PMI_RANK=1 PMI_SIZE=4",
		.run = "slurm-10",
		.tasks = 2,
		.source = "Slurm step",
		.several = true},
	{.title = "srun's own PMIx is not another launcher",
		.environment = SLURM_JOB("3", "1") SLURM_STEP(
			"0", "1", "2", "0", "1") "PMIX_RANK=1 PMIX_NAMESPACE=slurm.pmix.3.0",
		.run = "slurm-3",
		.task = 1,
		.tasks = 2,
		.source = "Slurm step"},
	{.title = "--tasks that agrees with the step",
		.environment = SLURM_JOB("9", "1") SLURM_STEP("0", "1", "2", "0", "1"),
		TASKS(2),
		.run = "slurm-9",
		.task = 1,
		.tasks = 2,
		.source = "Slurm step"},
	{.title = "--tasks that does not agree with the step",
		.environment = SLURM_JOB("9", "1") SLURM_STEP("0", "1", "2", "0", "1"),
		TASKS(4),
		.refusal = {"--tasks says 4", "SLURM_STEP_NUM_TASKS=2"}},
	{.title = "a step without its size",
		.environment = SLURM_JOB("9", "1") "SLURM_STEP_ID=0 SLURM_PROCID=1",
		.refusal = {"SLURM_STEP_NUM_TASKS is not set", "srun"}},
	{.title = "garbage in SLURM_PROCID",
		.environment = SLURM_JOB("9", "1") SLURM_STEP("0", "one", "2", "0", "1"),
		.refusal = {"$SLURM_PROCID", "one"}},
	{.title = "garbage in SLURM_STEP_ID",
		.environment = SLURM_JOB("9", "1") SLURM_STEP("zero", "1", "2", "0", "1"),
		.refusal = {"$SLURM_STEP_ID", "zero"}},
	{.title = "garbage in SLURM_RESTART_COUNT",
		.environment = SLURM_JOB("9", "1")
			SLURM_STEP("0", "1", "2", "0", "1") "SLURM_RESTART_COUNT=-1",
		.refusal = {"$SLURM_RESTART_COUNT"}},
	{.title = "a step's task not below its size",
		.environment = SLURM_JOB("9", "1") SLURM_STEP("0", "2", "2", "0", "1"),
		.refusal = {"SLURM_PROCID=2", "SLURM_STEP_NUM_TASKS=2"}},

	/* Slurm shells */
	{.title = "the batch shell of three tasks is not a task",
		.slurm_step = "1.batch",
		.environment = SLURM_JOB("1", "3") SLURM_BATCH "SLURM_NTASKS=3",
		.refusal = {"the batch shell", "not a task", "prefix srun"}},
	{.title = "sbatch -N2 without -n has no SLURM_NTASKS",
		.environment = SLURM_JOB("3", "2") SLURM_BATCH,
		.refusal = {"the batch shell", "2 machines", "prefix srun"}},
	{.title = "the batch shell of several tasks on one machine: both cures",
		.environment = SLURM_JOB("5", "1") SLURM_BATCH "SLURM_NTASKS=2",
		.refusal = {"the batch shell", "prefix srun", "preempt-run -n 2"}},
	{.title = "the batch shell of one task: allowed, with a warning",
		.environment = SLURM_JOB("2", "1") SLURM_BATCH,
		.run = "slurm-2",
		.tasks = 1,
		.launch = "slurm:2:0",
		.warning = "--signal=B:TERM"},
	{.title = "preempt-run -n 4 in a batch shell of one machine: allowed, with a warning",
		.environment = SLURM_JOB("5", "1") SLURM_BATCH "SLURM_NTASKS=4",
		LOCAL(4),
		.run = "slurm-5",
		.tasks = 4,
		.count = 4,
		.warning = "prefix srun"},
	{.title = "preempt-run -n 4 in a batch shell of two machines",
		.environment = SLURM_JOB("5", "2") SLURM_BATCH "SLURM_NTASKS=8",
		LOCAL(4),
		.refusal = {"the batch shell", "2 machines", "prefix srun"}},
	{.title = "--tasks 4 in a batch shell",
		.environment = SLURM_JOB("5", "1") SLURM_BATCH "SLURM_NTASKS=4",
		TASKS(4),
		.refusal = {"the batch shell", "not a task", "prefix srun"}},
	{.title = "the shell of salloc has no SLURM_PROCID",
		.environment = SLURM_JOB("6", "1") "SLURM_NTASKS=2",
		.refusal = {"the salloc shell", "not a task", "prefix srun"}},
	{.title = "the interactive step is not a task",
		.slurm_step = "7.interactive",
		.environment = SLURM_JOB(
			"7", "1") "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=4294967290 "
				  "SLURM_STEP_NUM_TASKS=1 SLURM_STEP_NUM_NODES=1",
		.refusal = {"the interactive shell", "not a task", "prefix srun"}},
	{.title = "the interactive step, without seeing slurmstepd",
		.environment = SLURM_JOB(
			"7", "1") "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=4294967290 "
				  "SLURM_STEP_NUM_TASKS=1 SLURM_STEP_NUM_NODES=1",
		.refusal = {"the interactive shell"}},
	{.title = "the batch step's number is not a real step",
		.environment = SLURM_JOB(
			"7", "1") "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=4294967291 "
				  "SLURM_STEP_NUM_TASKS=2",
		.refusal = {"the batch shell"}},
	{.title = "the extern step is not a task",
		.environment = SLURM_JOB(
			"7", "1") "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_ID=4294967292 "
				  "SLURM_STEP_NUM_TASKS=2",
		.refusal = {"a login shell"}},
	{.title = "a job submitted from inside a step has that step's variables: not a task",
		.slurm_step = "10.batch",
		.environment = SLURM_JOB("10", "1") SLURM_STEP("0", "0", "2", "0", "1"),
		.refusal = {"the batch shell of Slurm job 10", "prefix srun"}},
	{.title = "the same where slurmstepd is not to be seen, by a step larger than the job",
		.environment = SLURM_JOB("10", "1") SLURM_STEP("0", "0", "2", "0", "2"),
		.refusal = {"the batch shell of Slurm job 10", "prefix srun"}},
	{.title = "a heterogeneous job's second slurmstepd names another job: a task all the same",
		.slurm_step = "17.0",
		.environment = SLURM_JOB("16", "2") SLURM_STEP("0", "1", "2", "1", "2"),
		.run = "slurm-16",
		.task = 1,
		.tasks = 2,
		.source = "Slurm step",
		.several = true},
	{.title = "a batch shell may ask for the run only",
		.environment = SLURM_JOB("1", "3") SLURM_BATCH "SLURM_NTASKS=3",
		NEED(RUN),
		.run = "slurm-1",
		.no_task = true,
		.warning = ""},
	{.title = "a step that asks for the run only is a task too",
		.environment = SLURM_JOB("1", "3") SLURM_STEP("0", "2", "3", "2", "3"),
		NEED(RUN),
		.run = "slurm-1",
		.task = 2,
		.tasks = 3,
		.several = true},
	{.title = "PREEMPT_ variables left over from the job that submitted this one",
		.environment = SLURM_JOB("10", "1") SLURM_BATCH
		"PREEMPT_TASK=1 PREEMPT_TASKS=2 PREEMPT_LAUNCH=slurm:9:0+step:0",
		.refusal = {"left over from Slurm job 9", "job 10", "unset"}},
	{.title = "PREEMPT_LAUNCH of this very job",
		.environment = SLURM_JOB("9", "1") SLURM_BATCH
		"PREEMPT_TASK=1 PREEMPT_TASKS=2 PREEMPT_LAUNCH=slurm:9:0+step:0",
		.run = "slurm-9",
		.task = 1,
		.tasks = 2,
		.launch = "slurm:9:0+step:0"},

	/* torchrun */
	{.title = "torchrun",
		.environment = TORCH("jobx", "5", "8", "0", "1", "8", "3"),
		.run = "torchrun-jobx",
		.task = 5,
		.tasks = 8,
		.source = "torchrun",
		.launch = "torchrun:jobx:3"},
	{.title = "torchrun on two machines: the restart count is not alike on both",
		.environment = TORCH("jobx", "5", "8", "1", "2", "4", "3"),
		.run = "torchrun-jobx",
		.task = 5,
		.tasks = 8,
		.launch = "torchrun:jobx:port41001",
		.several = true},
	{.title = "torchrun under srun: the inner one counts, the job names the run",
		.environment = SLURM_JOB("9", "2") SLURM_STEP("0", "1", "2", "1", "2")
			TORCH("9", "5", "8", "1", "2", "4", "0"),
		.run = "slurm-9",
		.task = 5,
		.tasks = 8,
		.source = "torchrun",
		.launch = "slurm:9:0+torchrun:9:port41001",
		.several = true},
	{.title = "torchruns started by one srun each: the step is no part of the launch",
		.environment = SLURM_JOB("9", "2") SLURM_STEP("3", "0", "1", "0", "1")
			TORCH("9", "5", "8", "1", "2", "4", "0"),
		.run = "slurm-9",
		.task = 5,
		.tasks = 8,
		.launch = "slurm:9:0+torchrun:9:port41001",
		.several = true},
	{.title = "torchrun in a batch shell needs no srun",
		.environment = SLURM_JOB("9", "1") SLURM_BATCH
		"SLURM_NTASKS=8 " TORCH("none", "5", "8", "0", "1", "8", "0"),
		.run = "slurm-9",
		.task = 5,
		.tasks = 8,
		.source = "torchrun",
		.warning = ""},
	{.title = "several torchruns in one step must not share its name",
		.environment = SLURM_JOB("9", "1") SLURM_STEP("0", "1", "4", "0", "1")
			TORCH("a1", "1", "2", "0", "1", "2", "0"),
		.refusal = {"1 of the 4 tasks", "slurm-9", "--run"}},
	{.title = "several torchruns in one step, each with its run",
		.environment = SLURM_JOB("9", "1") SLURM_STEP("0", "1", "4", "0", "1")
			TORCH("a1", "1", "2", "0", "1", "2", "0"),
		RUN("sweep-1"),
		.run = "sweep-1",
		.task = 1,
		.tasks = 2},
	{.title = "torchrun's id \"none\" names nothing",
		.environment = TORCH("none", "5", "8", "0", "1", "8", "0"),
		.refusal = {"8 tasks", "--run NAME", "PREEMPT_RUN"}},
	{.title = "torchrun's id that is no name names nothing",
		.environment = TORCH("a/b", "5", "8", "0", "1", "8", "0"),
		.refusal = {"--run NAME"}},
	{.title = "torchrun's RANK without WORLD_SIZE",
		.environment = "TORCHELASTIC_RUN_ID=x RANK=1",
		.refusal = {"WORLD_SIZE is not set", "torchrun"}},
	{.title = "torchrun without RANK",
		.environment = "TORCHELASTIC_RUN_ID=x WORLD_SIZE=1",
		.refusal = {"RANK is not set", "torchrun"}},
	{.title = "bare RANK and WORLD_SIZE do not count, and it says so",
		.environment = "RANK=1 WORLD_SIZE=8",
		RUN("r"),
		.run = "r",
		.tasks = 1,
		.source = "no launcher",
		.warning = "--task $RANK"},

	/* MPI and others */
	{.title = "Open MPI on one machine",
		.environment = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 "
			       "OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_RANK=1 PMIX_NAMESPACE=1234",
		RUN("r"),
		.run = "r",
		.task = 1,
		.tasks = 4,
		.source = "Open MPI",
		.launch = "pmix:1234"},
	{.title = "Open MPI on several machines, with a name space that is hashed",
		.environment = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 "
			       "OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=a/b",
		RUN("r"),
		.run = "r",
		.task = 1,
		.tasks = 4,
		.several = true,
		.launch = "pmix:828712809a185aae"},
	{.title = "mpirun inside a Slurm job: the step belongs to its daemons",
		.environment = SLURM_JOB("9", "3") SLURM_STEP(
			"0", "1", "2", "1", "2") "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=6 "
						 "OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=77",
		.run = "slurm-9",
		.task = 5,
		.tasks = 6,
		.source = "Open MPI",
		.launch = "slurm:9:0+pmix:77",
		.several = true},
	{.title = "Open MPI's rank without size",
		.environment = "OMPI_COMM_WORLD_RANK=1",
		RUN("r"),
		.refusal = {"OMPI_COMM_WORLD_SIZE is not set", "mpirun"}},
	{.title = "Open MPI's size without rank",
		.environment = "OMPI_COMM_WORLD_SIZE=4",
		RUN("r"),
		.refusal = {"OMPI_COMM_WORLD_RANK is not set", "mpirun"}},
	{.title = "several tasks of mpirun need a name",
		.environment = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4",
		.refusal = {"4 tasks", "--run NAME"}},
	{.title = "PMI",
		.environment = "PMI_RANK=2 PMI_SIZE=4 MPI_LOCALNRANKS=2",
		RUN("r"),
		.run = "r",
		.task = 2,
		.tasks = 4,
		.source = "PMI",
		.launch = "",
		.several = true},
	{.title = "mpiexec of PMI inside a Slurm step counts before it",
		.environment = SLURM_JOB("9", "2")
			SLURM_STEP("0", "1", "2", "1", "2") "PMI_RANK=3 PMI_SIZE=4",
		.run = "slurm-9",
		.task = 3,
		.tasks = 4,
		.source = "PMI",
		.launch = "slurm:9:0"},
	{.title = "PMIx says no size: it must be given",
		.environment = "PMIX_RANK=2",
		RUN("r"),
		.refusal = {"PMIX_RANK=2", "how many", "--tasks N"}},
	{.title = "PMIx with its size given",
		.environment = "PMIX_RANK=2 PREEMPT_TASKS=4 PMIX_NAMESPACE=ns",
		RUN("r"),
		.run = "r",
		.task = 2,
		.tasks = 4,
		.source = "PMIx",
		.launch = "pmix:ns"},
	{.title = "Flux",
		.environment = "FLUX_JOB_ID=f23 FLUX_TASK_RANK=1 FLUX_JOB_SIZE=2 FLUX_JOB_NNODES=2 "
			       "PMI_RANK=1 PMI_SIZE=2",
		.run = "flux-f23",
		.task = 1,
		.tasks = 2,
		.source = "Flux",
		.launch = "flux:f23",
		.several = true},
	{.title = "jsrun under LSF",
		.environment = "LSB_JOBID=55 LSB_JOBINDEX=0 JSM_NAMESPACE_RANK=1 "
			       "JSM_NAMESPACE_SIZE=4 JSM_NAMESPACE_LOCAL_SIZE=2 "
			       "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4",
		.run = "lsf-55",
		.task = 1,
		.tasks = 4,
		.source = "LSF jsrun",
		.several = true},
	{.title = "an LSF array",
		.environment = "LSB_JOBID=55 LSB_JOBINDEX=3",
		.run = "lsf-55_3",
		.tasks = 1},
	{.title = "PBS",
		.environment = "PBS_JOBID=123[4].server",
		.run = "pbs-123_4_.server",
		.tasks = 1},
	{.title = "Grid Engine",
		.environment = "SGE_ROOT=/sge JOB_ID=8 SGE_TASK_ID=undefined",
		.run = "sge-8",
		.tasks = 1},
	{.title = "JOB_ID alone is not Grid Engine",
		.environment = "JOB_ID=8",
		.run = "solo-n0nce",
		.tasks = 1,
		.ours = true},
	{.title = "a Kubernetes index has no size",
		.environment = "JOB_COMPLETION_INDEX=3",
		.refusal = {"JOB_COMPLETION_INDEX=3", "PREEMPT_TASKS", "completions"}},
	{.title = "a Kubernetes index with its size and name",
		.environment = "JOB_COMPLETION_INDEX=3 PREEMPT_TASKS=4 HOSTNAME=train-7b-3",
		.run = "k8s-train-7b",
		.task = 3,
		.tasks = 4,
		.source = "Kubernetes index",
		.launch = "",
		.several = true},
	{.title = "a Kubernetes index under a host name that does not tell",
		.environment = "JOB_COMPLETION_INDEX=3 PREEMPT_TASKS=4 HOSTNAME=node12",
		.refusal = {"4 tasks", "--run NAME"}},
	{.title = "a Kubernetes index not below its size",
		.environment = "JOB_COMPLETION_INDEX=4 PREEMPT_TASKS=4 HOSTNAME=train-4",
		.refusal = {"JOB_COMPLETION_INDEX=4", "must be less than 4"}},
	{.title = "claim inside a pod needs no size",
		.environment = "JOB_COMPLETION_INDEX=3 HOSTNAME=train-3",
		NEED(RUN),
		.run = "k8s-train",
		.no_task = true},

	/* TF_CONFIG */
	{.title = "a worker of TF_CONFIG behind a chief",
		.environment = TF_CLUSTER TF_TASK("worker", "1"),
		RUN("r"),
		.run = "r",
		.task = 2,
		.tasks = 3,
		.source = "TF_CONFIG",
		.launch = "",
		.warning = "",
		.several = true},
	{.title = "the chief of TF_CONFIG is task 0",
		.environment = TF_CLUSTER TF_TASK("chief", "0"),
		RUN("r"),
		.run = "r",
		.tasks = 3,
		.source = "TF_CONFIG",
		.several = true},
	{.title = "the master of TF_CONFIG is task 0",
		.environment =
			"TF_CONFIG={\"cluster\":{\"master\":[\"a:1\"],\"worker\":[\"b:1\"]}," TF_TASK(
				"master", "0"),
		RUN("r"),
		.run = "r",
		.tasks = 2,
		.several = true},
	{.title = "workers of TF_CONFIG without a chief, on one machine",
		.environment = TF_WORKERS TF_TASK("worker", "1"),
		RUN("r"),
		.run = "r",
		.task = 1,
		.tasks = 2,
		.source = "TF_CONFIG"},
	{.title = "two workers of TF_CONFIG never become two jobs of one task",
		.environment = TF_WORKERS TF_TASK("worker", "1"),
		.refusal = {"2 tasks", "--run NAME"}},
	{.title = "a job of one machine has an empty cluster",
		.environment = "TF_CONFIG={\"cluster\":{},\"task\":{}}",
		.run = "solo-n0nce",
		.tasks = 1,
		.source = "no launcher",
		.ours = true},
	{.title = "a task of TF_CONFIG without a cluster",
		.environment = "TF_CONFIG={" TF_TASK("worker", "1"),
		.refusal = {"TF_CONFIG has a task, but no cluster", "--task and --tasks"}},
	{.title = "an evaluator is no task",
		.environment = TF_CLUSTER TF_TASK("evaluator", "0"),
		RUN("r"),
		.refusal = {"TF_CONFIG", "an evaluator", "not a task of the run"}},
	{.title = "an evaluator is no task, whatever says how many there are",
		.environment = TF_CLUSTER TF_TASK("evaluator", "0") " PREEMPT_TASKS=3",
		RUN("r"),
		.refusal = {"TF_CONFIG", "an evaluator"}},
	{.title = "a parameter server is no task",
		.environment = TF_CLUSTER TF_TASK("ps", "0"),
		RUN("r"),
		.refusal = {"TF_CONFIG", "parameter server", "not a task of the run"}},
	{.title = "an evaluator may look at the run",
		.environment = TF_CLUSTER TF_TASK("evaluator", "0"),
		NEED(RUN),
		RUN("r"),
		.run = "r",
		.no_task = true},
	{.title = "options beat TF_CONFIG, garbage too",
		.environment = "TF_CONFIG=garbage",
		TASK(1),
		TASKS(2),
		RUN("r"),
		.run = "r",
		.task = 1,
		.tasks = 2,
		.source = "--task"},
	{.title = "another number of tasks than TF_CONFIG says",
		.environment = TF_WORKERS TF_TASK("worker", "1"),
		TASKS(3),
		RUN("r"),
		.refusal = {"--tasks says 3", "TF_CONFIG says tasks=2"}},
	{.title = "TF_CONFIG that is no JSON",
		.environment = "TF_CONFIG={\"cluster\":",
		.refusal = {"TF_CONFIG is not a JSON object"}},
	{.title = "TF_CONFIG that is a list",
		.environment = "TF_CONFIG=[]",
		.refusal = {"TF_CONFIG is not a JSON object"}},
	{.title = "TF_CONFIG whose cluster is a list",
		.environment = "TF_CONFIG={\"cluster\":[1]," TF_TASK("worker", "0"),
		.refusal = {"TF_CONFIG has a cluster that is no list"}},
	{.title = "TF_CONFIG whose workers are no list",
		.environment = "TF_CONFIG={\"cluster\":{\"worker\":2}," TF_TASK("worker", "0"),
		.refusal = {"TF_CONFIG has a cluster that is no list"}},
	{.title = "TF_CONFIG whose workers are no addresses",
		.environment = "TF_CONFIG={\"cluster\":{\"worker\":[1,2]}," TF_TASK("worker", "0"),
		.refusal = {"TF_CONFIG has a cluster that is no list"}},
	{.title = "TF_CONFIG with two chiefs",
		.environment =
			"TF_CONFIG={\"cluster\":{\"chief\":[\"a:1\"],\"master\":[\"b:1\"]}," TF_TASK(
				"chief", "0"),
		.refusal = {"TF_CONFIG has more than one chief or master"}},
	{.title = "TF_CONFIG without a task",
		.environment = TF_WORKERS "\"task\":{}}",
		.refusal = {"TF_CONFIG does not say which task"}},
	{.title = "a negative task of TF_CONFIG",
		.environment = TF_WORKERS TF_TASK("worker", "-1"),
		.refusal = {"TF_CONFIG does not say which task"}},
	{.title = "a task that is not in the cluster of TF_CONFIG",
		.environment = TF_WORKERS TF_TASK("worker", "2"),
		.refusal = {"TF_CONFIG has a task that is not in its cluster"}},
	{.title = "a chief that is not in the cluster of TF_CONFIG",
		.environment = TF_WORKERS TF_TASK("chief", "0"),
		.refusal = {"TF_CONFIG has a task that is not in its cluster"}},
	{.title = "a task of another type in TF_CONFIG",
		.environment = TF_WORKERS TF_TASK("trainer", "0"),
		.refusal = {"TF_CONFIG has a task that is neither chief, master nor worker"}},

	/* no launcher; names */
	{.title = "nothing at all: a name that no other task has",
		.run = "solo-n0nce",
		.tasks = 1,
		.source = "no launcher",
		.launch = "",
		.ours = true,
		.warning = ""},
	{.title = "nothing at all, -n 4: a name is asked for",
		LOCAL(4),
		.refusal = {"4 tasks", "--run NAME", "PREEMPT_RUN"}},
	{.title = "-n 4 with a name", LOCAL(4), RUN("r"), .run = "r", .tasks = 4, .count = 4},
	{.title = "ack makes no name up", NEED(TASK), .refusal = {"--run NAME", "PREEMPT_RUN"}},
	{.title = "claim makes no name up", NEED(RUN), .refusal = {"--run NAME", "PREEMPT_RUN"}},
	{.title = "claim by hand", NEED(RUN), RUN("r"), .run = "r", .no_task = true},

	/* machines */
	{.title = "several slurmds on one machine, said by hand",
		.environment = SLURM_JOB("9", "2")
			SLURM_STEP("0", "1", "2", "1", "2") "PREEMPT_MACHINES=1",
		.run = "slurm-9",
		.task = 1,
		.tasks = 2},
	{.title = "several machines without a launcher, said by hand",
		.environment = "PREEMPT_MACHINES=2",
		TASK(1),
		TASKS(2),
		RUN("r"),
		.run = "r",
		.task = 1,
		.tasks = 2,
		.several = true},
	{.title = "garbage in PREEMPT_MACHINES",
		.environment = "PREEMPT_MACHINES=two",
		RUN("r"),
		.refusal = {"$PREEMPT_MACHINES", "two"}},

	/* many tasks per agent */
	{.title = "one agent per machine in a step",
		.environment = SLURM_JOB("9", "2") SLURM_STEP("0", "1", "2", "1", "2"),
		LOCAL(4),
		.run = "slurm-9",
		.task = 4,
		.tasks = 8,
		.count = 4,
		.several = true,
		.warning = ""},
	{.title = "one agent per task, and each with four: said aloud",
		.environment = SLURM_JOB("9", "1") SLURM_STEP("0", "1", "2", "0", "1"),
		LOCAL(4),
		.run = "slurm-9",
		.task = 4,
		.tasks = 8,
		.count = 4,
		.warning = "2 agents on 1 machine, each with 4"},
	{.title = "8 agents by option, each with 8",
		TASK(3),
		TASKS(8),
		RUN("r"),
		LOCAL(8),
		.run = "r",
		.task = 24,
		.tasks = 64,
		.count = 8},
	{.title = "the last of the most tasks that a run may have",
		TASK(65535),
		TASKS(65536),
		RUN("r"),
		.run = "r",
		.task = 65535,
		.tasks = 65536},
	{.title = "twice the most tasks that a run may have",
		TASK(0),
		TASKS(65536),
		RUN("r"),
		LOCAL(2),
		.refusal = {"65536 x 2 tasks"}},
	{.title = "more tasks than can be multiplied",
		TASK(0),
		TASKS(4),
		RUN("r"),
		LOCAL(UINT64_MAX / 2),
		.refusal = {"4 x 9223372036854775807 tasks"}},
	{.title = "more tasks than a run may have",
		TASK(0),
		TASKS(1024),
		RUN("r"),
		LOCAL(128),
		.refusal = {"1024 x 128", "65536", "counts agents"}},
};

static void check_row(const struct row *row)
{
	struct identity_environment environment = {
		lookup, (void *)row->environment, row->slurm_step, "n0nce"};
	struct identity_request request = row->request;
	struct identity identity;
	struct error err = {0};
	bool fine = true;
	memset(&identity, 0x5a, sizeof(identity));
	enum status status = identity_find(&environment, &request, &identity, &err);
	if (row->refusal[0]) {
		fine = status == STATUS_USAGE && err.status == STATUS_USAGE;
		for (int i = 0; i < 3; i++)
			if (row->refusal[i] && !strstr(err.text, row->refusal[i]))
				fine = false;
		fine = fine && (unsigned char)identity.run[0] == 0x5a;
		if (!CHECK(fine, "refused: %s", row->title))
			printf("# %d: %s\n", status, err.text);
		return;
	}
	if (status == STATUS_OK) {
		fine = !strcmp(identity.run, row->run) && identity.is_task == !row->no_task &&
		       identity.run_is_ours == row->ours &&
		       identity.several_machines == row->several;
		if (!row->no_task)
			fine = fine && identity.task == row->task && identity.tasks == row->tasks &&
			       identity.count == (row->count ? row->count : 1);
		if (row->source)
			fine = fine && identity.task_source &&
			       !strcmp(identity.task_source, row->source);
		if (row->launch)
			fine = fine && !strcmp(identity.launch, row->launch);
		if (row->warning)
			fine = fine &&
			       (*row->warning ? strstr(identity.warning, row->warning) != NULL
					      : !*identity.warning);
	}
	if (!CHECK(status == STATUS_OK && fine, "%s", row->title)) {
		if (status != STATUS_OK)
			printf("# %d: %s\n", status, err.text);
		else
			printf("# run %s (%s) task %llu+%llu of %llu (%s) launch \"%s\" several %d "
			       "warning \"%s\"\n",
				identity.run, identity.run_source,
				(unsigned long long)identity.task,
				(unsigned long long)identity.count,
				(unsigned long long)identity.tasks,
				identity.task_source ? identity.task_source : "-", identity.launch,
				identity.several_machines, identity.warning);
	}
}

static void check_alike(void)
{
	/* All tasks of a launch have one launch id; another launch has another. */
	static const char *const pairs[][3] = {
		{SLURM_JOB("9", "2") SLURM_STEP("0", "0", "2", "0", "2"),
			SLURM_JOB("9", "2") SLURM_STEP("0", "1", "2", "1", "2"),
			SLURM_JOB("9", "2") SLURM_STEP("1", "1", "2", "1", "2")},
		{SLURM_JOB("9", "2") SLURM_STEP("0", "0", "2", "0", "2"),
			SLURM_JOB("9", "2") SLURM_STEP("0", "1", "2", "1", "2"),
			SLURM_JOB("9", "2")
				SLURM_STEP("0", "1", "2", "1", "2") "SLURM_RESTART_COUNT=1"},
		{TORCH("j", "0", "8", "0", "2", "4", "1"), TORCH("j", "5", "8", "1", "2", "4", "0"),
			TORCH("k", "5", "8", "1", "2", "4", "0")},
		{TORCH("j", "0", "4", "0", "1", "4", "1"), TORCH("j", "3", "4", "0", "1", "4", "1"),
			TORCH("j", "3", "4", "0", "1", "4", "2")},
	};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct identity found[3];
		struct identity_request request = {.need = IDENTITY_START, .run = "r"};
		bool fine = true;
		for (int k = 0; k < 3; k++) {
			struct identity_environment environment = {
				.lookup = lookup, .context = (void *)(uintptr_t)pairs[i][k]};
			fine = fine &&
			       identity_find(&environment, &request, &found[k], NULL) == STATUS_OK;
		}
		CHECK(fine && !strcmp(found[0].launch, found[1].launch) &&
				strcmp(found[0].launch, found[2].launch) != 0,
			"launch ids: two tasks of one launch and one of another, %zu", i);
	}
}

static void check_store(void)
{
	static const struct {
		const char *run, *state, *home, *path, *refusal;
	} stores[] = {
		{"r", NULL, "/home/u", "/home/u/.local/state/preempt/r.db", NULL},
		{"r", "/s", "/home/u", "/s/preempt/r.db", NULL},
		{"r", "s", "/home/u", "/home/u/.local/state/preempt/r.db", NULL},
		{"r", "/s", NULL, "/s/preempt/r.db", NULL},
		{"r", NULL, "", NULL, "HOME is not set"},
		{"r", NULL, "/a?b", NULL, "--store"},
		{"r", "/a?b", "/home/u", NULL, "--store"},
		{"a/b", NULL, "/home/u", NULL, "run"},
	};
	struct error err;
	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		struct text path = {0};
		enum status status = store_default_path(
			stores[i].run, stores[i].state, stores[i].home, &path, &err);
		CHECK(stores[i].path
				? status == STATUS_OK && !strcmp(text_string(&path), stores[i].path)
				: status == STATUS_USAGE && strstr(err.text, stores[i].refusal),
			"default store: %zu", i);
		text_release(&path);
	}
	struct identity wide = {.tasks = 8, .machines = 4, .several_machines = true};
	struct identity narrow = {.tasks = 8};
	CHECK(identity_check_store(&wide, "/tmp/r.db", true, &err) == STATUS_USAGE &&
			strstr(err.text, "/tmp/r.db") && strstr(err.text, "4 machines") &&
			strstr(err.text, "--store"),
		"a local store is refused for several machines");
	CHECK(identity_check_store(&wide, "/shared/r.db", false, &err) == STATUS_OK,
		"a shared store is right for several machines");
	CHECK(identity_check_store(&narrow, "/tmp/r.db", true, &err) == STATUS_OK,
		"a local store is right for one machine");
}

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct row row = rows[i];
		check_row(&row);
	}
	check_alike();
	check_store();
	return unit_end();
}
