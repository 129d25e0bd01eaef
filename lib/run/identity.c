/* SPDX-License-Identifier: MIT */
#include "run/identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "platform/slurm.h"

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

/* What identity_find has found so far. */
struct finding {
	const struct signs *signs;
	const struct identity_request *request;
	const struct launcher *launcher; /* NULL: none */
	struct launched launched;
	struct error unknown; /* not STATUS_OK: what is wrong with the launcher's numbers */
	char job[129];	      /* "slurm-9"; empty: none */
	const char *scheduler;
	bool by_launcher;     /* the number of the task is the launcher's */
	uint64_t rank, ranks; /* task and tasks, or, with request->local, agent and agents */
	struct identity identity;
};

/* A task, or the number of tasks: where the user gives it, its range, and what was found. */
struct number {
	const char *option, *variable;
	uint64_t least, most, value;
	const char *source; /* static text */
	bool given;
};

/* Take the number from the option, if it is given, else from the variable. */
static enum status read_number(const struct signs *signs, bool is_option, uint64_t option,
	struct number *number, struct error *err)
{
	uint64_t value = 0;
	enum status status =
		signs_number(signs, number->variable, number->least, number->most, &value, err);
	if (!is_option && status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	if (is_option && (option < number->least || option > number->most))
		return error_set(err, STATUS_USAGE, "%s: %llu is not between %llu and %llu",
			number->option, (unsigned long long)option,
			(unsigned long long)number->least, (unsigned long long)number->most);
	number->given = true;
	number->value = is_option ? option : value;
	/* The option may only have its default, the variable's value: name what the user wrote. */
	number->source =
		status == STATUS_OK && value == number->value ? number->variable : number->option;
	return STATUS_OK;
}

enum status identity_own_task(
	const struct signs *signs, uint64_t *task, const char **source, struct error *err)
{
	uint64_t first, ranks, rank;
	enum status status = signs_number(signs, "PREEMPT_TASK", 0, TASKS_MAX - 1, &first, err);
	if (status != STATUS_OK)
		return status;
	*source = "PREEMPT_TASK";
	*task = first;
	status = signs_number(signs, "PREEMPT_RANKS", 1, TASKS_MAX, &ranks, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	status = signs_number(signs, "LOCAL_RANK", 0, ranks - 1, &rank, err);
	if (status == STATUS_NO)
		return error_set(err, STATUS_USAGE,
			"the agent serves tasks %llu to %llu (PREEMPT_RANKS), but LOCAL_RANK, which "
			"says which of them this is, is not set: give --task I, or start the ranks "
			"with a launcher that sets LOCAL_RANK (torchrun)",
			(unsigned long long)first, (unsigned long long)(first + ranks - 1));
	if (status != STATUS_OK)
		return status;
	*source = "PREEMPT_TASK + LOCAL_RANK";
	*task = first + rank;
	return STATUS_OK;
}

/*
 * No launcher says that this is a task. STATUS_USAGE: TF_CONFIG says that it is not a task, or this
 * is a shell of a Slurm job with several machines or tasks. In a shell of a smaller job: warn.
 */
static enum status check_outside(struct finding *f, struct error *err)
{
	struct slurm_shell shell;
	if (f->unknown.status != STATUS_OK)
		return error_set(err, f->unknown.status, "%s", f->unknown.text);
	enum status status = slurm_shell_find(f->signs, &shell, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	unsigned long long job = shell.job, machines = shell.machines, tasks = shell.tasks;
	if (machines > 1)
		return error_set(err, STATUS_USAGE,
			"%s of Slurm job %llu is not a task, and the job has %llu machines: prefix "
			"srun",
			shell.kind, job, machines);
	if (tasks > 1 && !f->request->local)
		return error_set(err, STATUS_USAGE,
			"%s of Slurm job %llu is not a task: prefix srun for its %llu tasks, or "
			"use preempt-run -n %llu on this one machine",
			shell.kind, job, tasks, tasks);
	warn(&f->identity,
		"this is %s of Slurm job %llu, which Slurm does not signal before the grace time "
		"is over: prefix srun%s",
		shell.kind, job, shell.batch ? ", or submit with --signal=B:TERM@120" : "");
	return STATUS_OK;
}

/* If an option or a variable gives the task, one must give the number of tasks, too. */
static enum status check_given(
	const struct number *task, const struct number *tasks, struct error *err)
{
	if (!tasks->given)
		return error_set(err, STATUS_USAGE,
			"%s says which task, but not of how many: give --tasks N or set "
			"PREEMPT_TASKS",
			task->source);
	if (task->value >= tasks->value)
		return error_set(err, STATUS_USAGE,
			"task %llu (%s) must be less than %llu (%s): tasks are numbered from 0",
			(unsigned long long)task->value, task->source,
			(unsigned long long)tasks->value, tasks->source);
	return STATUS_OK;
}

/* STATUS_NO: only the run is asked for, and the launcher does not give all numbers. */
static enum status take_from_launcher(
	struct finding *f, struct number *task, struct number *tasks, struct error *err)
{
	const struct launcher *launcher = f->launcher;
	uint64_t its_tasks = f->launched.tasks;
	if (f->unknown.status != STATUS_OK)
		return error_set(err, f->unknown.status, "%s", f->unknown.text);
	task->value = f->launched.task;
	if (!its_tasks && !tasks->given && f->request->need == IDENTITY_RUN)
		return STATUS_NO;
	if (!its_tasks && !tasks->given)
		return error_set(err, STATUS_USAGE,
			"%s gives %s=%llu, but not how many tasks there are: %s", launcher->name,
			launcher->task, (unsigned long long)task->value, launcher->cure);
	if (its_tasks && tasks->given && tasks->value != its_tasks)
		return error_set(err, STATUS_USAGE,
			"%s says %llu tasks, but %s says %s=%llu: drop one, or give --task too",
			tasks->source, (unsigned long long)tasks->value, launcher->name,
			launcher->tasks, (unsigned long long)its_tasks);
	if (its_tasks)
		tasks->value = its_tasks;
	if (task->value >= tasks->value)
		return error_set(err, STATUS_USAGE, "%s=%llu must be less than %llu (%s=%llu): %s",
			launcher->task, (unsigned long long)task->value,
			(unsigned long long)tasks->value,
			its_tasks ? launcher->tasks : tasks->source,
			(unsigned long long)tasks->value, launcher->cure);
	task->source = launcher->name;
	f->by_launcher = true;
	return STATUS_OK;
}

/* Neither an option nor a launcher numbers this task: it must be the only one. */
static enum status take_as_single(
	struct finding *f, struct number *task, const struct number *tasks, struct error *err)
{
	unsigned long long count = tasks->value;
	uint64_t world;
	enum status status = STATUS_OK;
	if (f->request->need == IDENTITY_RUN)
		return STATUS_NO;
	/* Report first that this is not a task: that is the likelier mistake. */
	if (!tasks->given || count > 1)
		status = check_outside(f, err);
	if (status != STATUS_OK)
		return status;
	if (count > 1)
		return error_set(err, STATUS_USAGE,
			"%s says %llu tasks, but not which one this is: give --task I, or use "
			"preempt-run -n %llu for all of them on one machine",
			tasks->source, count, count);
	if (!f->request->local && signs_value(f->signs, "RANK") &&
		signs_number(f->signs, "WORLD_SIZE", 2, TASKS_MAX, &world, NULL) == STATUS_OK)
		warn(&f->identity,
			"RANK and WORLD_SIZE are set, but not by torchrun, so they are ignored and "
			"this runs as a single task; if it is one of %llu, give --task $RANK "
			"--tasks $WORLD_SIZE",
			(unsigned long long)world);
	task->source = tasks->given ? tasks->source : "no launcher";
	return STATUS_OK;
}

static enum status find_task(struct finding *f, struct error *err)
{
	const struct identity_request *request = f->request;
	const struct signs *signs = f->signs;
	struct number task = {"--task", "PREEMPT_TASK", .most = TASKS_MAX - 1};
	struct number tasks = {
		"--tasks", "PREEMPT_TASKS", .least = 1, .most = TASKS_MAX, .value = 1};
	enum status status = read_number(signs, request->task_given, request->task, &task, err);
	/* PREEMPT_TASK is the first of several ranks: add LOCAL_RANK. A process that is not a rank,
	 * such as the launcher itself, counts as the first. */
	if (status == STATUS_OK && task.given && !request->task_given &&
		request->need != IDENTITY_START && signs_value(signs, "LOCAL_RANK"))
		status = identity_own_task(signs, &task.value, &task.source, err);
	if (status == STATUS_OK)
		status = read_number(signs, request->tasks_given, request->tasks, &tasks, err);
	if (status == STATUS_OK)
		status = task.given    ? check_given(&task, &tasks, err)
			 : f->launcher ? take_from_launcher(f, &task, &tasks, err)
				       : take_as_single(f, &task, &tasks, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	f->rank = task.value;
	f->ranks = tasks.value;
	f->identity.is_task = true;
	f->identity.task_source = task.source;
	return STATUS_OK;
}

/* Set the tasks of this agent and the number of tasks: request->local for each rank. */
static enum status find_span(struct finding *f, struct error *err)
{
	uint64_t local = f->request->local ? f->request->local : 1;
	if (local > TASKS_MAX || f->ranks * local > TASKS_MAX)
		return error_set(err, STATUS_USAGE,
			"%llu x %llu tasks: a run has 1 to %d; with -n or --ranks, --tasks counts "
			"agents",
			(unsigned long long)f->ranks, (unsigned long long)local, TASKS_MAX);
	f->identity.task = f->rank * local;
	f->identity.count = local;
	f->identity.tasks = f->ranks * local;
	return STATUS_OK;
}

static enum status find_machines(struct finding *f, struct error *err)
{
	const struct launcher *launcher = f->launcher;
	struct identity *identity = &f->identity;
	uint64_t local_tasks, local = f->request->local;
	/* PREEMPT_MACHINES overrides the launcher's number, which may be wrong with containers
	 * or several slurmds on one machine. */
	enum status status =
		signs_number(f->signs, "PREEMPT_MACHINES", 1, TASKS_MAX, &identity->machines, err);
	if (status == STATUS_OK)
		identity->several_machines = identity->machines > 1;
	if (status != STATUS_NO || !launcher)
		return status == STATUS_NO ? STATUS_OK : status;

	if (launcher->machines)
		status = signs_number(
			f->signs, launcher->machines, 1, UINT32_MAX, &identity->machines, err);
	if (status_is_error(status))
		return status;
	identity->several_machines =
		identity->machines > 1 ||
		(f->ranks > 1 && (launcher->spread_out || f->launched.several_machines));
	if (f->by_launcher && launcher->local_tasks) {
		status = signs_number(
			f->signs, launcher->local_tasks, 1, UINT32_MAX, &local_tasks, err);
		if (status_is_error(status))
			return status;
		identity->several_machines |= status == STATUS_OK && local_tasks < f->ranks;
	}
	if (f->by_launcher && local > 1 && identity->machines && f->ranks > identity->machines)
		warn(identity,
			"%s: %llu agents on %llu machine%s, each with %llu tasks, are %llu tasks in "
			"all; for one agent per machine use srun --ntasks-per-node=1 or the like",
			launcher->name, (unsigned long long)f->ranks,
			(unsigned long long)identity->machines, identity->machines == 1 ? "" : "s",
			(unsigned long long)local, (unsigned long long)identity->tasks);
	return STATUS_OK;
}

/* Name the run `name`, if that is a name. */
static enum status take_run(struct finding *f, const char *name, const char *source,
	const char *what, struct error *err)
{
	enum status status = parse_name(name, what, err);
	if (status != STATUS_OK)
		return status;
	strcpy(f->identity.run, name); /* a name has at most 128 bytes */
	f->identity.run_source = source;
	return STATUS_OK;
}

/* A torchrun smaller than its Slurm step has siblings in the same job. */
static enum status check_siblings(const struct finding *f, struct error *err)
{
	uint64_t groups, step_tasks;
	if (f->launcher && f->launcher->run && slurm_is_task(f->signs) &&
		signs_number(f->signs, f->launcher->machines, 1, UINT32_MAX, &groups, NULL) ==
			STATUS_OK &&
		signs_number(f->signs, "SLURM_STEP_NUM_TASKS", 1, UINT32_MAX, &step_tasks, NULL) ==
			STATUS_OK &&
		groups < step_tasks)
		return error_set(err, STATUS_USAGE,
			"this %s is %llu of the %llu tasks of its Slurm step, so %s would name "
			"several runs: give each its own --run NAME",
			f->launcher->name, (unsigned long long)groups,
			(unsigned long long)step_tasks, f->job);
	return STATUS_OK;
}

static enum status find_run(struct finding *f, struct error *err)
{
	const struct launcher *launcher = f->launcher;
	struct identity *identity = &f->identity;
	char name[160];
	const char *variable = signs_value(f->signs, "PREEMPT_RUN");
	const char *run = f->request->run && *f->request->run ? f->request->run : variable;
	if (run && variable && !strcmp(run, variable))
		return take_run(f, run, "PREEMPT_RUN", "$PREEMPT_RUN", err);
	if (run)
		return take_run(f, run, "--run", "--run", err);
	if (*f->job && check_siblings(f, err) != STATUS_OK)
		return STATUS_USAGE;
	if (*f->job)
		return take_run(f, f->job, f->scheduler, "run", err);
	const char *id = launcher && launcher->run ? signs_value(f->signs, launcher->run) : NULL;
	if (id && strcmp(id, "none") && strlen(id) <= 100) {
		snprintf(name, sizeof(name), "%s-%s", launcher->name, id);
		if (take_run(f, name, launcher->name, "", NULL) == STATUS_OK)
			return STATUS_OK;
	}
	if (identity->is_task && identity->tasks > 1)
		return error_set(err, STATUS_USAGE,
			"a run of %llu tasks needs a name that no other job uses: give --run "
			"NAME or set PREEMPT_RUN",
			(unsigned long long)identity->tasks);
	if (f->request->need != IDENTITY_START || !f->request->nonce)
		return error_set(
			err, STATUS_USAGE, "no run is named: give --run NAME or set PREEMPT_RUN");
	/*
	 * Do not derive the name from user, directory or command: a sweep starts the same command
	 * many times in one directory. So a later start does not find this run.
	 */
	snprintf(name, sizeof(name), "solo-%s", f->request->nonce);
	identity->run_is_ours = true;
	return take_run(f, name, "made up", "run", err);
}

static enum status find_launch(struct finding *f, struct error *err)
{
	struct identity *identity = &f->identity;
	const char *given = signs_value(f->signs, "PREEMPT_LAUNCH");
	char slurm[32], own[96] = "";
	enum status status = slurm_launch(f->signs, slurm, err);
	if (status == STATUS_OK && given)
		status = parse_name(given, "$PREEMPT_LAUNCH", err);
	/* If the user gives the numbers, tasks may be in several steps, and share only the job. */
	else if (status == STATUS_OK && f->by_launcher)
		status = platform_launch(f->launcher, f->signs, own, sizeof(own), err);
	if (status != STATUS_OK)
		return status;
	if (given)
		snprintf(identity->launch, sizeof(identity->launch), "%s", given);
	else
		snprintf(identity->launch, sizeof(identity->launch), "%s%s%s", slurm,
			*slurm && *own ? "+" : "", own);
	return STATUS_OK;
}

enum status identity_find(const struct signs *signs, const struct identity_request *request,
	struct identity *identity, struct error *err)
{
	struct finding f = {.signs = signs, .request = request, .identity = {.count = 1}};
	enum status status = platform_job(signs, f.job, sizeof(f.job), &f.scheduler, err);
	if (status_is_error(status))
		return status;
	if (status == STATUS_NO)
		f.job[0] = '\0';
	f.unknown.status = platform_launched(signs, &f.launched, &f.unknown);
	f.launcher = f.launched.launcher;

	status = find_task(&f, err);
	/* Report leftover variables first: they are the usual cause of wrong numbers. */
	struct error launch_err;
	enum status launch_status = find_launch(&f, &launch_err);
	if (launch_status != STATUS_OK)
		return error_set(err, launch_status, "%s", launch_err.text);
	if (status == STATUS_OK && f.identity.is_task)
		status = find_span(&f, err);
	if (status == STATUS_OK)
		status = find_machines(&f, err);
	if (status == STATUS_OK)
		status = find_run(&f, err);
	if (status == STATUS_OK)
		*identity = f.identity;
	return status;
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
