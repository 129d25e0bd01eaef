/* SPDX-License-Identifier: MIT */
#include "run/identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "run/scheduler.h"

static void warn(struct identity *identity, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void warn(struct identity *identity, const char *format, ...)
{
	size_t used = strlen(identity->warning);
	if (used)
		used += (size_t)snprintf(
			identity->warning + used, sizeof(identity->warning) - used, "; ");
	if (used >= sizeof(identity->warning))
		return;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(identity->warning + used, sizeof(identity->warning) - used, format, arguments);
	va_end(arguments);
}

/* A number of the option, else of its variable. STATUS_NO: neither. */
static enum status given_number(const struct identity_environment *environment, bool given,
	uint64_t option, const char *option_name, const char *variable, uint64_t min, uint64_t max,
	uint64_t *value, const char **source, struct error *err)
{
	enum status status = environment_number(environment, variable, min, max, value, err);
	if (!given) {
		*source = variable;
		return status;
	}
	/* The option table takes the variable as the option's default: name what the user wrote. */
	*source = status == STATUS_OK && *value == option ? variable : option_name;
	if (option < min || option > max)
		return error_set(err, STATUS_USAGE, "%s: %llu is not between %llu and %llu",
			option_name, (unsigned long long)option, (unsigned long long)min,
			(unsigned long long)max);
	*value = option;
	return STATUS_OK;
}

enum status identity_own_task(const struct identity_environment *environment, uint64_t *task,
	const char **source, struct error *err)
{
	uint64_t first, ranks, rank;
	enum status status = environment_number(
		environment, "PREEMPT_TASK", 0, IDENTITY_TASKS_MAX - 1, &first, err);
	if (status != STATUS_OK)
		return status;
	if (source)
		*source = "PREEMPT_TASK";
	*task = first;
	status = environment_number(
		environment, "PREEMPT_RANKS", 1, IDENTITY_TASKS_MAX, &ranks, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	status = environment_number(environment, "LOCAL_RANK", 0, ranks - 1, &rank, err);
	if (status == STATUS_NO)
		return error_set(err, STATUS_USAGE,
			"the agent serves tasks %llu to %llu (PREEMPT_RANKS), but LOCAL_RANK, which "
			"says which of them this is, is not set: give --task I, or start the ranks "
			"with a launcher that sets LOCAL_RANK (torchrun)",
			(unsigned long long)first, (unsigned long long)(first + ranks - 1));
	if (status != STATUS_OK)
		return status;
	if (source)
		*source = "PREEMPT_TASK + LOCAL_RANK";
	*task = first + rank;
	return STATUS_OK;
}

static const struct launcher *launcher_find(const struct identity_environment *environment)
{
	for (const struct launcher *const *l = launchers; *l; l++) {
		bool marked = environment_value(environment, (*l)->marker) != NULL;
		/* If only one of a launcher's two variables is set, report that instead of
		 * trying the next launcher. */
		if (!marked && (*l)->tasks && !strcmp((*l)->marker, (*l)->task))
			marked = environment_value(environment, (*l)->tasks) != NULL;
		if (marked && (!(*l)->present || (*l)->present(environment)))
			return *l;
	}
	return NULL;
}

/* The launcher's own numbers. STATUS_NO: it does not say how many. */
static enum status launcher_numbers(const struct identity_environment *environment,
	const struct launcher *launcher, uint64_t *task, uint64_t *tasks, struct error *err)
{
	if (launcher->numbers)
		return launcher->numbers(environment, task, tasks, err);
	const char *missing = !environment_value(environment, launcher->task) ? launcher->task
			      : launcher->tasks && !environment_value(environment, launcher->tasks)
				      ? launcher->tasks
				      : NULL;
	if (missing)
		return error_set(err, STATUS_USAGE,
			"%s: %s is not set, so this task's number cannot be determined; %s",
			launcher->name, missing, launcher->cure);
	enum status status = environment_number(
		environment, launcher->task, 0, IDENTITY_TASKS_MAX - 1, task, err);
	if (status != STATUS_OK || !launcher->tasks)
		return status == STATUS_OK ? STATUS_NO : status;
	status =
		environment_number(environment, launcher->tasks, 1, IDENTITY_TASKS_MAX, tasks, err);
	if (status == STATUS_OK && *task >= *tasks)
		return error_set(err, STATUS_USAGE,
			"%s: task %s=%llu must be less than "
			"%s=%llu; %s",
			launcher->name, launcher->task, (unsigned long long)*task, launcher->tasks,
			(unsigned long long)*tasks, launcher->cure);
	return status;
}

/*
 * No launcher says that this is a task. Refused where one says that it is none. In a Slurm job, but
 * not in a step: right only for what fits on this machine, and then with care.
 */
static enum status check_outside(const struct identity_environment *environment,
	const struct identity_request *request, struct identity *identity, struct error *err)
{
	struct slurm_shell shell;
	enum status status = tf_config_check(environment, err);
	if (status == STATUS_OK)
		status = slurm_shell_find(environment, &shell, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	unsigned long long job = shell.job, machines = shell.machines, tasks = shell.tasks;
	if (machines > 1)
		return error_set(err, STATUS_USAGE,
			"%s of Slurm job %llu is not a task, and the job has %llu machines: prefix "
			"srun",
			shell.kind, job, machines);
	if (tasks > 1 && !request->local)
		return error_set(err, STATUS_USAGE,
			"%s of Slurm job %llu is not a task: prefix srun for its %llu tasks, or "
			"use preempt-run -n %llu on this one machine",
			shell.kind, job, tasks, tasks);
	warn(identity,
		"this is %s of Slurm job %llu, which Slurm does not signal before the grace time "
		"is over: prefix srun%s",
		shell.kind, job,
		strcmp(shell.kind, "the batch shell") ? ""
						      : ", or submit with --signal=B:TERM@120");
	return STATUS_OK;
}

/* rank, ranks, is_task, task_source. */
static enum status find_task(const struct identity_environment *environment,
	const struct identity_request *request, const struct launcher *launcher,
	struct identity *identity, struct error *err)
{
	uint64_t task = 0, tasks = 1;
	const char *task_source, *tasks_source;
	enum status has_task = given_number(environment, request->task_given, request->task,
		"--task", "PREEMPT_TASK", 0, IDENTITY_TASKS_MAX - 1, &task, &task_source, err);
	/* One of several ranks. A process that is not a rank, such as the launcher itself,
	 * counts as the first. */
	if (has_task == STATUS_OK && !request->task_given && request->need != IDENTITY_START &&
		environment_value(environment, "LOCAL_RANK"))
		has_task = identity_own_task(environment, &task, &task_source, err);
	if (has_task > STATUS_NO)
		return has_task;
	enum status has_tasks = given_number(environment, request->tasks_given, request->tasks,
		"--tasks", "PREEMPT_TASKS", 1, IDENTITY_TASKS_MAX, &tasks, &tasks_source, err);
	if (has_tasks > STATUS_NO)
		return has_tasks;
	bool only_run = request->need == IDENTITY_RUN;

	if (has_task == STATUS_OK) {
		if (has_tasks != STATUS_OK)
			return error_set(err, STATUS_USAGE,
				"%s says which task, but not of how many: give --tasks N or set "
				"PREEMPT_TASKS",
				task_source);
		if (task >= tasks)
			return error_set(err, STATUS_USAGE,
				"task %llu (%s) must be less than %llu (%s): tasks are numbered "
				"from 0",
				(unsigned long long)task, task_source, (unsigned long long)tasks,
				tasks_source);
	} else if (launcher) {
		uint64_t its_tasks = tasks;
		enum status status =
			launcher_numbers(environment, launcher, &task, &its_tasks, err);
		if (status_is_error(status))
			return status;
		if (status == STATUS_NO && has_tasks != STATUS_OK) {
			if (only_run)
				return STATUS_OK;
			return error_set(err, STATUS_USAGE,
				"%s gives %s=%llu, but not how many tasks there are: %s",
				launcher->name, launcher->task, (unsigned long long)task,
				launcher->cure);
		}
		if (status == STATUS_OK && has_tasks == STATUS_OK && tasks != its_tasks)
			return error_set(err, STATUS_USAGE,
				"%s says %llu tasks, but %s says %s=%llu: drop one, or give "
				"--task too",
				tasks_source, (unsigned long long)tasks, launcher->name,
				launcher->tasks, (unsigned long long)its_tasks);
		if (status == STATUS_OK)
			tasks = its_tasks;
		if (task >= tasks)
			return error_set(err, STATUS_USAGE,
				"%s=%llu must be less than %llu "
				"(%s): %s",
				launcher->task, (unsigned long long)task, (unsigned long long)tasks,
				tasks_source, launcher->cure);
		task_source = launcher->name;
	} else if (only_run) {
		return STATUS_OK;
	} else if (has_tasks == STATUS_OK && tasks > 1) {
		/* Report first that this is not a task: that is the likelier mistake. */
		enum status status = check_outside(environment, request, identity, err);
		return status != STATUS_OK
			       ? status
			       : error_set(err, STATUS_USAGE,
					 "%s says %llu tasks, but not which one this is: give "
					 "--task I, or use preempt-run -n %llu for all of "
					 "them on one machine",
					 tasks_source, (unsigned long long)tasks,
					 (unsigned long long)tasks);
	} else {
		if (has_tasks != STATUS_OK) {
			enum status status = check_outside(environment, request, identity, err);
			if (status != STATUS_OK)
				return status;
		}
		uint64_t world;
		if (!request->local && environment_value(environment, "RANK") &&
			environment_number(environment, "WORLD_SIZE", 2, IDENTITY_TASKS_MAX, &world,
				NULL) == STATUS_OK)
			warn(identity,
				"RANK and WORLD_SIZE are set, but not by torchrun, so they are "
				"ignored and this runs as a single task; if it is one of %llu, "
				"give --task $RANK --tasks $WORLD_SIZE",
				(unsigned long long)world);
		task_source = has_tasks == STATUS_OK ? tasks_source : "no launcher";
	}
	identity->rank = task;
	identity->ranks = tasks;
	identity->is_task = true;
	identity->task_source = task_source;
	return STATUS_OK;
}

static enum status find_machines(const struct identity_environment *environment,
	const struct identity_request *request, const struct launcher *launcher,
	struct identity *identity, struct error *err)
{
	uint64_t local_tasks;
	bool its_numbers = launcher && identity->task_source == launcher->name;
	/* PREEMPT_MACHINES overrides the launcher's number, which may be wrong with containers
	 * or several slurmds on one machine. */
	enum status status = environment_number(
		environment, "PREEMPT_MACHINES", 1, IDENTITY_TASKS_MAX, &identity->machines, err);
	if (status == STATUS_OK)
		identity->several_machines = identity->machines > 1;
	if (status != STATUS_NO || !launcher)
		return status == STATUS_NO ? STATUS_OK : status;

	if (launcher->machines)
		status = environment_number(
			environment, launcher->machines, 1, UINT32_MAX, &identity->machines, err);
	if (status == STATUS_OK && launcher->machine)
		status = environment_number(environment, launcher->machine, 0,
			identity->machines - 1, &identity->machine, err);
	if (status_is_error(status))
		return status;
	identity->several_machines = identity->machines > 1;
	if (its_numbers && launcher->local_tasks) {
		status = environment_number(
			environment, launcher->local_tasks, 1, UINT32_MAX, &local_tasks, err);
		if (status_is_error(status))
			return status;
		if (status == STATUS_OK && local_tasks < identity->ranks)
			identity->several_machines = true;
	}
	if (launcher->spread_out && identity->ranks > 1 && launcher->spread_out(environment))
		identity->several_machines = true;
	if (its_numbers && request->local > 1 && identity->machines &&
		identity->ranks > identity->machines)
		warn(identity,
			"%s: %llu agents on %llu machine%s, each with %llu tasks, are %llu tasks in "
			"all; for one agent per machine use srun --ntasks-per-node=1 or the like",
			launcher->name, (unsigned long long)identity->ranks,
			(unsigned long long)identity->machines, identity->machines == 1 ? "" : "s",
			(unsigned long long)request->local, (unsigned long long)identity->tasks);
	return STATUS_OK;
}

static enum status find_run(const struct identity_environment *environment,
	const struct identity_request *request, const struct launcher *launcher,
	const char *scheduler, struct identity *identity, struct error *err)
{
	const char *variable = environment_value(environment, "PREEMPT_RUN");
	const char *run = request->run && *request->run ? request->run : variable;
	if (run) {
		identity->run_source = variable && !strcmp(run, variable) ? "PREEMPT_RUN" : "--run";
		enum status status = parse_name(
			run, identity->run_source[0] == 'P' ? "$PREEMPT_RUN" : "--run", err);
		if (status == STATUS_OK)
			snprintf(identity->run, sizeof(identity->run), "%s", run);
		return status;
	}
	if (*identity->job) {
		/* A torchrun smaller than its Slurm step has siblings in the same job. */
		uint64_t groups, step_tasks;
		if (launcher == &launcher_torchrun && launcher_slurm.present(environment) &&
			environment_number(environment, "GROUP_WORLD_SIZE", 1, UINT32_MAX, &groups,
				NULL) == STATUS_OK &&
			environment_number(environment, "SLURM_STEP_NUM_TASKS", 1, UINT32_MAX,
				&step_tasks, NULL) == STATUS_OK &&
			groups < step_tasks)
			return error_set(err, STATUS_USAGE,
				"this torchrun is %llu of the %llu tasks of its Slurm step, so %s "
				"would name several runs: give each its own --run NAME",
				(unsigned long long)groups, (unsigned long long)step_tasks,
				identity->job);
		memcpy(identity->run, identity->job, sizeof(identity->run));
		identity->run_source = scheduler;
		return STATUS_OK;
	}
	const char *id = environment_value(environment, "TORCHELASTIC_RUN_ID");
	if (launcher == &launcher_torchrun && id && strcmp(id, "none") && strlen(id) <= 100) {
		char name[129];
		snprintf(name, sizeof(name), "torchrun-%s", id);
		if (parse_name(name, "", NULL) == STATUS_OK) {
			memcpy(identity->run, name, sizeof(identity->run));
			identity->run_source = "torchrun";
			return STATUS_OK;
		}
	}
	if (identity->is_task && identity->tasks > 1)
		return error_set(err, STATUS_USAGE,
			"a run of %llu tasks needs a name that no other job uses: give --run "
			"NAME or set PREEMPT_RUN",
			(unsigned long long)identity->tasks);
	if (request->need != IDENTITY_START || !environment->nonce)
		return error_set(
			err, STATUS_USAGE, "no run is named: give --run NAME or set PREEMPT_RUN");
	/*
	 * Not from user, directory or command: a sweep starts the same command many times in one
	 * directory. The price is that a later start does not find this one.
	 */
	snprintf(identity->run, sizeof(identity->run), "solo-%s", environment->nonce);
	identity->run_source = "made up";
	identity->run_is_ours = true;
	return parse_name(identity->run, "run", err);
}

static enum status find_launch(const struct identity_environment *environment,
	const struct launcher *launcher, struct identity *identity, struct error *err)
{
	const char *given = environment_value(environment, "PREEMPT_LAUNCH");
	char slurm[64] = "", own[112] = "";
	uint64_t job = 0, restarts = 0;
	enum status status =
		environment_number(environment, "SLURM_JOB_ID", 1, UINT32_MAX, &job, err);
	if (status == STATUS_OK)
		status = environment_number(
			environment, "SLURM_RESTART_COUNT", 0, UINT32_MAX, &restarts, err);
	if (status_is_error(status))
		return status;
	if (job)
		snprintf(slurm, sizeof(slurm), "slurm:%llu:%llu", (unsigned long long)job,
			(unsigned long long)restarts);
	if (given) {
		/* sbatch passes on all variables: a job submitted by a task has that task's. */
		unsigned long long its_job;
		if (job && sscanf(given, "slurm:%20llu:", &its_job) == 1 && its_job != job)
			return error_set(err, STATUS_USAGE,
				"the PREEMPT_ variables are left over from Slurm job %llu, and this "
				"is job %llu: put `unset ${!PREEMPT_@}` at the top of the batch "
				"script",
				its_job, (unsigned long long)job);
		status = parse_name(given, "$PREEMPT_LAUNCH", err);
		if (status == STATUS_OK)
			snprintf(identity->launch, sizeof(identity->launch), "%s", given);
		return status;
	}
	/* Numbers given by hand may come from many steps: then only the job is common to all. */
	bool its_numbers = identity->is_task && launcher && identity->task_source == launcher->name;
	if (its_numbers && launcher->launch) {
		status = launcher->launch(environment, own, sizeof(own), err);
		if (status != STATUS_OK)
			return status;
	}
	/* The longest are 27 and 91 bytes: all of 118 fit. */
	snprintf(identity->launch, sizeof(identity->launch), "%.40s%s%.87s", slurm,
		*slurm && *own ? "+" : "", own);
	return STATUS_OK;
}

enum status identity_find(const struct identity_environment *environment,
	const struct identity_request *request, struct identity *identity, struct error *err)
{
	struct identity found = {.count = 1};
	const char *scheduler = NULL;
	const struct launcher *launcher = launcher_find(environment);
	enum status status =
		scheduler_job(environment, found.job, sizeof(found.job), &scheduler, err);
	if (status == STATUS_NO)
		found.job[0] = '\0';
	else if (status != STATUS_OK)
		return status;

	status = find_task(environment, request, launcher, &found, err);
	/* Check for leftover variables first: they are the usual cause of wrong numbers. */
	struct error launch_err;
	enum status launch_status = find_launch(environment, launcher, &found, &launch_err);
	if (launch_status != STATUS_OK)
		return error_set(err, launch_status, "%s", launch_err.text);
	if (status != STATUS_OK)
		return status;
	if (found.is_task) {
		struct identity_span span;
		status = identity_spread(
			found.rank, found.ranks, request->local ? request->local : 1, &span, err);
		if (status != STATUS_OK)
			return status;
		found.task = span.first;
		found.count = span.count;
		found.tasks = span.tasks;
	}
	status = find_machines(environment, request, launcher, &found, err);
	if (status == STATUS_OK)
		status = find_run(environment, request, launcher, scheduler, &found, err);
	if (status == STATUS_OK)
		*identity = found;
	return status;
}

enum status identity_spread(uint64_t rank, uint64_t ranks, uint64_t local,
	struct identity_span *span, struct error *err)
{
	if (ranks == 0 || ranks > IDENTITY_TASKS_MAX || local == 0 || local > IDENTITY_TASKS_MAX ||
		ranks * local > IDENTITY_TASKS_MAX)
		return error_set(err, STATUS_USAGE,
			"%llu x %llu tasks: a run has 1 to %d; with -n or --ranks, --tasks counts "
			"agents",
			(unsigned long long)ranks, (unsigned long long)local, IDENTITY_TASKS_MAX);
	if (rank >= ranks)
		return error_set(err, STATUS_USAGE,
			"task %llu must be less than %llu: tasks are numbered from 0",
			(unsigned long long)rank, (unsigned long long)ranks);
	*span = (struct identity_span){rank * local, local, ranks * local};
	return STATUS_OK;
}

enum status identity_check_store(const struct identity *identity, const char *where,
	bool local_filesystem, struct error *err)
{
	if (!local_filesystem || !identity->several_machines)
		return STATUS_OK;
	char machines[40] = "several machines";
	if (identity->machines > 1)
		snprintf(machines, sizeof(machines), "%llu machines",
			(unsigned long long)identity->machines);
	return error_set(err, STATUS_USAGE,
		"the store %s is on a filesystem of this machine only, but the %llu tasks are on "
		"%s: put it on a shared one with --store or PREEMPT_STORE (if they are one machine, "
		"set PREEMPT_MACHINES=1)",
		where, (unsigned long long)identity->tasks, machines);
}
