/* SPDX-License-Identifier: MIT */
/* The rows of the table of platforms, and what only one row needs. */
#include <string.h>

#include "platform/platform.h"
#include "platform/slurm.h"

/* Whether srun has set the PMI variables (PMI_JOBID is "JOB.STEP"), for this step or another one:
 * then the variables of the step itself are used. */
static bool pmi_present(const struct signs *signs)
{
	const char *job = signs_value(signs, "PMI_JOBID");
	if (!job || !signs_value(signs, "SLURM_JOB_ID"))
		return true;
	size_t digits = strspn(job, "0123456789");
	return !(digits && job[digits] == '.' &&
		 strspn(job + digits + 1, "0123456789") == strlen(job + digits + 1));
}

static bool pmix_present(const struct signs *signs)
{
	const char *name = signs_value(signs, "PMIX_NAMESPACE");
	return !name || strncmp(name, "slurm.", 6) != 0;
}

/*
 * Launchers that start programs inside a job or a step come before the scheduler's own. Flux and
 * jsrun may also set the variables of Open MPI or PMI, with the same numbers.
 */
const struct platform platforms[] = {
	{.name = "generic"},
	{.launcher = {.name = "torchrun",
		 .marker = "TORCHELASTIC_RUN_ID",
		 .task = "RANK",
		 .tasks = "WORLD_SIZE",
		 .machines = "GROUP_WORLD_SIZE",
		 .local_tasks = "LOCAL_WORLD_SIZE",
		 .cure = "start the program with torchrun itself, or give --task and --tasks",
		 .launch_prefix = "torchrun",
		 .launch_variable = "TORCHELASTIC_RUN_ID",
		 /* The count is of failures seen by this machine's torchrun; the torchruns of other
		  * machines restart their workers without counting. */
		 .restarts = "TORCHELASTIC_RESTART_COUNT",
		 .port = "MASTER_PORT",
		 .run = "TORCHELASTIC_RUN_ID"}},
	{.name = "flux",
		.title = "Flux",
		.variable = "FLUX_JOB_ID",
		.launcher = {.name = "Flux",
			.task = "FLUX_TASK_RANK",
			.tasks = "FLUX_JOB_SIZE",
			.machines = "FLUX_JOB_NNODES",
			.cure = "start the program with flux run, or give --task and --tasks",
			.launch_prefix = "flux",
			.launch_variable = "FLUX_JOB_ID"},
		.prefix = "flux"},
	{.launcher = {.name = "LSF jsrun",
		 .task = "JSM_NAMESPACE_RANK",
		 .tasks = "JSM_NAMESPACE_SIZE",
		 .local_tasks = "JSM_NAMESPACE_LOCAL_SIZE",
		 .cure = "start the program with jsrun, or give --task and --tasks"}},
	{.launcher = {.name = "Open MPI",
		 .task = "OMPI_COMM_WORLD_RANK",
		 .tasks = "OMPI_COMM_WORLD_SIZE",
		 .local_tasks = "OMPI_COMM_WORLD_LOCAL_SIZE",
		 .cure = "start the program with mpirun itself, or give --task and --tasks",
		 .launch_prefix = "pmix",
		 .launch_variable = "PMIX_NAMESPACE"}},
	{.launcher = {.name = "PMI",
		 .present = pmi_present,
		 .task = "PMI_RANK",
		 .tasks = "PMI_SIZE",
		 .local_tasks = "MPI_LOCALNRANKS",
		 .cure = "start the program with mpiexec itself, or give --task and --tasks"}},
	{.launcher = {.name = "PMIx",
		 .present = pmix_present,
		 .task = "PMIX_RANK",
		 .cure = "give --tasks N or set PREEMPT_TASKS: the number of processes",
		 .launch_prefix = "pmix",
		 .launch_variable = "PMIX_NAMESPACE"}},
	{.name = "slurm",
		.title = "Slurm",
		.variable = "SLURM_JOB_ID",
		.launcher = {.name = "Slurm step",
			.marker = "SLURM_STEP_ID",
			.present = slurm_is_task,
			.task = "SLURM_PROCID",
			.tasks = "SLURM_STEP_NUM_TASKS",
			.machines = "SLURM_STEP_NUM_NODES",
			.cure = "start the program with srun, or give --task and --tasks",
			.launch_prefix = "step",
			.launch_variable = "SLURM_STEP_ID"},
		.source = "slurm",
		.prefix = "slurm",
		.index = "SLURM_ARRAY_TASK_ID",
		.array_job = "SLURM_ARRAY_JOB_ID",
		.scontrol = true,
		.restarts = "SLURM_RESTART_COUNT",
		.note = "submit with --requeue"},
	{.name = "pbs",
		.title = "PBS",
		.variable = "PBS_JOBID",
		.prefix = "pbs",
		.rerun = "qrerun \"$PBS_JOBID\"",
		.note = "submit with -r y"},
	{.name = "lsf",
		.title = "LSF",
		.variable = "LSB_JOBID",
		.signal = "INT",
		.grace = 20000, /* to end a job: INT, 10 s later TERM, 10 s later KILL */
		.prefix = "lsf",
		.index = "LSB_JOBINDEX",
		.no_index = "0",
		.exit_code = 42,
		.note = "submit with -Q \"42\", or have 42 in REQUEUE_EXIT_VALUES"},
	{.name = "sge",
		.title = "Grid Engine",
		.variable = "JOB_ID",
		.also = "SGE_ROOT",
		.prefix = "sge",
		.index = "SGE_TASK_ID",
		.no_index = "undefined",
		.exit_code = 99,
		.restarts = "RESTARTED",
		.note = "submit with -r y; the queue must not forbid rerun"},
	{.name = "condor",
		.variable = "_CONDOR_JOB_AD",
		.exit_code = 85,
		.note = "put checkpoint_exit_code = 85 into the submit file"},
	{.name = "gce",
		.dmi = DMI_PRODUCT,
		.dmi_text = "Google Compute Engine",
		.source = "gce",
		.exit_code = 143},
	{.name = "aws", .dmi = DMI_VENDOR, .dmi_text = "Amazon EC2", .source = "aws"},
	{.name = "azure",
		.dmi = DMI_ASSET_TAG, /* the vendor is the same for any Hyper-V */
		.dmi_text = "7783-7084-3265-9085-8269-3286-77",
		.source = "azure"},
	{.name = "alibaba", .dmi = DMI_PRODUCT, .dmi_text = "Alibaba Cloud", .source = "alibaba"},
	{.name = "k8s",
		.title = "Kubernetes",
		.variable = "KUBERNETES_SERVICE_HOST",
		.launcher = {.name = "Kubernetes index",
			.task = "JOB_COMPLETION_INDEX",
			.spread_out = true,
			.cure = "set PREEMPT_TASKS to the Job's completions, or give --tasks N"},
		.grace = 30000,
		.prefix = "k8s",
		.index = "JOB_COMPLETION_INDEX",
		.host = "HOSTNAME",
		.exit_code = 42,
		.note = "let podFailurePolicy ignore exit code 42 and fail the Job on 93 (the example in "
			"the documentation of Kubernetes fails it on 42)"},
	{.launcher = {.name = "TF_CONFIG",
		 .task = "task",
		 .tasks = "tasks",
		 .cure = "correct TF_CONFIG, or give --task and --tasks",
		 .read = tf_config_read}},
};
const struct platform *const platforms_end = platforms + sizeof(platforms) / sizeof(platforms[0]);
