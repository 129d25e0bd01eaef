/* SPDX-License-Identifier: MIT */
#include "run/launchers.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/parse.h"

/* Slurm's special step ids (pending, extern, batch, interactive) lie above the real ones. */
#define SLURM_STEP_MAX	       0xfffffff0ull
#define SLURM_STEP_EXTERN      0xfffffffcull
#define SLURM_STEP_INTERACTIVE 0xfffffffaull

const char *environment_value(const struct identity_environment *environment, const char *name)
{
	const char *value = environment->lookup(environment->context, name);
	return value && *value ? value : NULL;
}

enum status environment_number(const struct identity_environment *environment, const char *name,
	uint64_t min, uint64_t max, uint64_t *value, struct error *err)
{
	const char *text = environment_value(environment, name);
	char what[64];
	if (!text)
		return STATUS_NO;
	snprintf(what, sizeof(what), "$%s", name);
	return parse_unsigned(text, min, max, value, what, err);
}

/* Write an id as part of a name: itself if it is short and valid in a name, else its hash. */
static void put_id(char *to, size_t size, const char *id)
{
	size_t length = strlen(id);
	char prefixed[64];
	snprintf(prefixed, sizeof(prefixed), "_%s", id);
	if (length <= 60 && parse_name(prefixed, "", NULL) == STATUS_OK)
		snprintf(to, size, "%s", id);
	else
		snprintf(to, size, "%016llx", (unsigned long long)XXH64(id, length, 0));
}

/* torchrun */

/*
 * TORCHELASTIC_RESTART_COUNT counts failures seen by this machine's torchrun; the torchruns of
 * other machines restart their workers without counting. So on several machines the count differs
 * between tasks of one launch: use the port, which is chosen at each rendezvous and equal for all.
 */
static enum status torchrun_launch(
	const struct identity_environment *environment, char *to, size_t size, struct error *err)
{
	uint64_t groups = 1, number = 0;
	char id[64];
	enum status status = environment_number(
		environment, "GROUP_WORLD_SIZE", 1, IDENTITY_TASKS_MAX, &groups, err);
	if (status_is_error(status))
		return status;
	if (groups > 1)
		status = environment_number(environment, "MASTER_PORT", 1, 65535, &number, err);
	else
		status = environment_number(
			environment, "TORCHELASTIC_RESTART_COUNT", 0, UINT32_MAX, &number, err);
	if (status_is_error(status))
		return status;
	put_id(id, sizeof(id), environment_value(environment, "TORCHELASTIC_RUN_ID"));
	snprintf(to, size, "torchrun:%s:%s%llu", id, groups > 1 ? "port" : "",
		(unsigned long long)number);
	return STATUS_OK;
}

const struct launcher launcher_torchrun = {
	.name = "torchrun",
	.marker = "TORCHELASTIC_RUN_ID",
	.task = "RANK",
	.tasks = "WORLD_SIZE",
	.machines = "GROUP_WORLD_SIZE",
	.local_tasks = "LOCAL_WORLD_SIZE",
	.cure = "start the program with torchrun itself, or give --task and --tasks",
};

/* MPI */

/* False if srun has set the PMI variables (PMI_JOBID is "JOB.STEP"), for this step or another one:
 * the variables of the step itself are used instead. */
static bool pmi_present(const struct identity_environment *environment)
{
	const char *job = environment_value(environment, "PMI_JOBID");
	if (!job || !environment_value(environment, "SLURM_JOB_ID"))
		return true;
	size_t digits = strspn(job, "0123456789");
	return !(digits && job[digits] == '.' &&
		 strspn(job + digits + 1, "0123456789") == strlen(job + digits + 1));
}

static bool pmix_present(const struct identity_environment *environment)
{
	const char *name = environment_value(environment, "PMIX_NAMESPACE");
	return !name || strncmp(name, "slurm.", 6) != 0;
}

static const struct launcher launcher_openmpi = {
	.name = "Open MPI",
	.marker = "OMPI_COMM_WORLD_RANK",
	.task = "OMPI_COMM_WORLD_RANK",
	.tasks = "OMPI_COMM_WORLD_SIZE",
	.local_tasks = "OMPI_COMM_WORLD_LOCAL_SIZE",
	.cure = "start the program with mpirun itself, or give --task and --tasks",
	.launch_prefix = "pmix",
	.launch_variable = "PMIX_NAMESPACE",
};

static const struct launcher launcher_pmi = {
	.name = "PMI",
	.marker = "PMI_RANK",
	.present = pmi_present,
	.task = "PMI_RANK",
	.tasks = "PMI_SIZE",
	.local_tasks = "MPI_LOCALNRANKS",
	.cure = "start the program with mpiexec itself, or give --task and --tasks",
};

static const struct launcher launcher_pmix = {
	.name = "PMIx",
	.marker = "PMIX_RANK",
	.present = pmix_present,
	.task = "PMIX_RANK",
	.cure = "give --tasks N or set PREEMPT_TASKS: the number of processes",
	.launch_prefix = "pmix",
	.launch_variable = "PMIX_NAMESPACE",
};

/* Batch systems' own launchers */

static const struct launcher launcher_flux = {
	.name = "Flux",
	.marker = "FLUX_TASK_RANK",
	.task = "FLUX_TASK_RANK",
	.tasks = "FLUX_JOB_SIZE",
	.machines = "FLUX_JOB_NNODES",
	.cure = "start the program with flux run, or give --task and --tasks",
	.launch_prefix = "flux",
	.launch_variable = "FLUX_JOB_ID",
};

static const struct launcher launcher_jsm = {
	.name = "LSF jsrun",
	.marker = "JSM_NAMESPACE_RANK",
	.task = "JSM_NAMESPACE_RANK",
	.tasks = "JSM_NAMESPACE_SIZE",
	.local_tasks = "JSM_NAMESPACE_LOCAL_SIZE",
	.cure = "start the program with jsrun, or give --task and --tasks",
};

/* Slurm */

enum shell_kind { SHELL_NONE, SHELL_BATCH, SHELL_INTERACTIVE, SHELL_LOGIN, SHELL_SALLOC };
static const char *const shell_words[] = {[SHELL_BATCH] = "the batch shell",
	[SHELL_INTERACTIVE] = "the interactive shell",
	[SHELL_LOGIN] = "a login shell",
	[SHELL_SALLOC] = "the salloc shell"};

/* What kind of shell of a Slurm job this is; SHELL_NONE: SLURM_STEP_ID is a real step. */
static enum shell_kind find_shell_kind(const struct identity_environment *environment)
{
	static const struct {
		const char *step;
		enum shell_kind kind;
	} named[] = {
		{"batch", SHELL_BATCH},
		{"interactive", SHELL_INTERACTIVE},
		{"extern", SHELL_LOGIN},
	};
	const char *above = environment->slurm_step ? strchr(environment->slurm_step, '.') : NULL;
	for (size_t i = 0; above && i < sizeof(named) / sizeof(named[0]); i++)
		if (!strcmp(above + 1, named[i].step))
			return named[i].kind;

	/*
	 * Measured with Slurm 22.05: the batch shell has SLURM_PROCID=0 and no SLURM_STEP_ID; the
	 * shell of salloc on the login node has neither; the interactive step has 4294967290. A
	 * job that was submitted from inside a step keeps that step's SLURM_STEP_* in its batch
	 * shell: environment->slurm_step shows that, and so does a step with more machines than
	 * the job.
	 */
	uint64_t step, step_nodes, job_nodes;
	if (environment_number(environment, "SLURM_STEP_ID", 0, UINT64_MAX, &step, NULL) ==
		STATUS_NO)
		return environment_value(environment, "SLURM_PROCID") ? SHELL_BATCH : SHELL_SALLOC;
	if (environment_number(environment, "SLURM_STEP_ID", SLURM_STEP_MAX, UINT32_MAX, &step,
		    NULL) == STATUS_OK)
		return step == SLURM_STEP_INTERACTIVE ? SHELL_INTERACTIVE
		       : step == SLURM_STEP_EXTERN    ? SHELL_LOGIN
						      : SHELL_BATCH;
	if (environment_number(environment, "SLURM_STEP_NUM_NODES", 1, UINT32_MAX, &step_nodes,
		    NULL) == STATUS_OK &&
		environment_number(environment, "SLURM_JOB_NUM_NODES", 1, UINT32_MAX, &job_nodes,
			NULL) == STATUS_OK &&
		step_nodes > job_nodes)
		return SHELL_BATCH;
	return SHELL_NONE;
}

static bool slurm_present(const struct identity_environment *environment)
{
	return environment_value(environment, "SLURM_JOB_ID") &&
	       find_shell_kind(environment) == SHELL_NONE;
}

const struct launcher launcher_slurm = {
	.name = "Slurm step",
	.marker = "SLURM_STEP_ID",
	.present = slurm_present,
	.task = "SLURM_PROCID",
	.tasks = "SLURM_STEP_NUM_TASKS",
	.machines = "SLURM_STEP_NUM_NODES",
	.cure = "start the program with srun, or give --task and --tasks",
	.launch_prefix = "step",
	.launch_variable = "SLURM_STEP_ID",
	.launch_most = SLURM_STEP_MAX - 1,
};

enum status slurm_start_read(const struct identity_environment *environment,
	struct slurm_start *start, struct error *err)
{
	struct slurm_start found = {0};
	unsigned long long launched = 0;
	const char *launch = environment_value(environment, "PREEMPT_LAUNCH");
	enum status status =
		environment_number(environment, "SLURM_JOB_ID", 1, UINT32_MAX, &found.job, err);
	if (status == STATUS_OK)
		status = environment_number(
			environment, "SLURM_RESTART_COUNT", 0, UINT32_MAX, &found.restarts, err);
	if (status_is_error(status))
		return status;
	if (launch)
		(void)sscanf(launch, "slurm:%20llu:", &launched);
	found.launched = launched;
	*start = found;
	return STATUS_OK;
}

/* sbatch passes on all variables: a job that a task submits has the variables of that task. */
enum status slurm_start_check(const struct slurm_start *start, struct error *err)
{
	if (!start->job || !start->launched || start->launched == start->job)
		return STATUS_OK;
	return error_set(err, STATUS_USAGE,
		"the PREEMPT_ variables are left over from Slurm job %llu, and this is job %llu: "
		"put `unset ${!PREEMPT_@}` at the top of the batch script",
		(unsigned long long)start->launched, (unsigned long long)start->job);
}

enum status slurm_shell_find(const struct identity_environment *environment,
	struct slurm_shell *shell, struct error *err)
{
	struct slurm_shell found = {.machines = 1};
	enum status status =
		environment_number(environment, "SLURM_JOB_ID", 1, UINT32_MAX, &found.job, err);
	if (status != STATUS_OK)
		return status;
	enum shell_kind kind = find_shell_kind(environment);
	if (kind == SHELL_NONE)
		return STATUS_NO;
	found.kind = shell_words[kind];
	found.batch = kind == SHELL_BATCH;
	status = environment_number(
		environment, "SLURM_JOB_NUM_NODES", 1, UINT32_MAX, &found.machines, err);
	if (status_is_error(status))
		return status;
	found.tasks = found.machines; /* srun starts one task on each machine by default */
	status = environment_number(environment, "SLURM_NTASKS", 1, UINT32_MAX, &found.tasks, err);
	if (status_is_error(status))
		return status;
	*shell = found;
	return STATUS_OK;
}

static const struct launcher launcher_kubernetes = {
	.name = "Kubernetes index",
	.marker = "JOB_COMPLETION_INDEX",
	.task = "JOB_COMPLETION_INDEX",
	.spread_out = true,
	.cure = "set PREEMPT_TASKS to the Job's completions, or give --tasks N",
};

/*
 * Launchers that start programs inside a job or a step come before the scheduler's own. Flux and
 * jsrun may also set the variables of Open MPI or PMI, with the same numbers.
 */
const struct launcher *const launchers[] = {&launcher_torchrun, &launcher_flux, &launcher_jsm,
	&launcher_openmpi, &launcher_pmi, &launcher_pmix, &launcher_slurm, &launcher_kubernetes,
	NULL};

enum status launcher_launch(const struct launcher *launcher,
	const struct identity_environment *environment, char *to, size_t size, struct error *err)
{
	char id[64];
	uint64_t number;
	*to = '\0';
	if (launcher == &launcher_torchrun)
		return torchrun_launch(environment, to, size, err);
	const char *variable = launcher->launch_variable;
	const char *value = variable ? environment_value(environment, variable) : NULL;
	if (value && launcher->launch_most) {
		enum status status = environment_number(
			environment, variable, 0, launcher->launch_most, &number, err);
		if (status != STATUS_OK)
			return status;
	}
	if (value) {
		put_id(id, sizeof(id), value);
		snprintf(to, size, "%s:%s", launcher->launch_prefix, id);
	}
	return STATUS_OK;
}
