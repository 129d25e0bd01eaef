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

/* What identity_find has found so far. */
struct finding {
	const struct identity_environment *environment;
	const struct identity_request *request;
	const struct launcher *launcher; /* NULL: none */
	struct tf_role tf;
	enum status tf_status; /* of reading TF_CONFIG; not STATUS_OK: tf_err says why */
	struct error tf_err;
	char job[129]; /* "slurm-9"; empty: none */
	const char *scheduler;
	bool by_launcher;     /* the number of the task is the launcher's */
	uint64_t rank, ranks; /* task and tasks, or, with request->local, agent and agents */
	struct identity identity;
};

/* The option and the variable that give a task, or the number of tasks, and its range. */
struct number_source {
	const char *option, *variable;
	uint64_t least, most;
};
static const struct number_source task_source = {
	"--task", "PREEMPT_TASK", 0, IDENTITY_TASKS_MAX - 1};
static const struct number_source tasks_source = {
	"--tasks", "PREEMPT_TASKS", 1, IDENTITY_TASKS_MAX};

struct number {
	uint64_t value;
	const char *source; /* static text */
	bool given;
};

/* Take the number from the option (NULL: not given), else from the variable. */
static enum status read_number(const struct identity_environment *environment,
	const struct number_source *from, const uint64_t *option, struct number *number,
	struct error *err)
{
	uint64_t value = 0;
	enum status status = environment_number(
		environment, from->variable, from->least, from->most, &value, err);
	if (!option && status_is_error(status))
		return status;
	if (option && (*option < from->least || *option > from->most))
		return error_set(err, STATUS_USAGE, "%s: %llu is not between %llu and %llu",
			from->option, (unsigned long long)*option, (unsigned long long)from->least,
			(unsigned long long)from->most);
	if (!option && status == STATUS_NO)
		return STATUS_OK;
	/* The option may only have its default, the variable's value: name what the user wrote. */
	bool by_variable = status == STATUS_OK && (!option || value == *option);
	*number = (struct number){.value = option ? *option : value,
		.source = by_variable ? from->variable : from->option,
		.given = true};
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

static const struct launcher *launcher_find(const struct finding *f)
{
	for (const struct launcher *const *l = launchers; *l; l++) {
		bool marked = environment_value(f->environment, (*l)->marker) != NULL;
		/* If only one of a launcher's two variables is set, report that instead of
		 * trying the next launcher. */
		if (!marked && (*l)->tasks && !strcmp((*l)->marker, (*l)->task))
			marked = environment_value(f->environment, (*l)->tasks) != NULL;
		if (marked && (!(*l)->present || (*l)->present(f->environment)))
			return *l;
	}
	return f->tf_status == STATUS_OK && f->tf.is_task ? &launcher_tf_config : NULL;
}

/* Get the launcher's own numbers; *tasks is 0 if it does not give the number of tasks. */
static enum status launcher_numbers(
	const struct finding *f, uint64_t *task, uint64_t *tasks, struct error *err)
{
	const struct identity_environment *environment = f->environment;
	const struct launcher *launcher = f->launcher;
	*tasks = 0;
	if (launcher == &launcher_tf_config) {
		*task = f->tf.task;
		*tasks = f->tf.tasks;
		return STATUS_OK;
	}
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
		return status;
	status =
		environment_number(environment, launcher->tasks, 1, IDENTITY_TASKS_MAX, tasks, err);
	if (status == STATUS_OK && *task >= *tasks)
		return error_set(err, STATUS_USAGE,
			"%s: task %s=%llu must be less than %s=%llu; %s", launcher->name,
			launcher->task, (unsigned long long)*task, launcher->tasks,
			(unsigned long long)*tasks, launcher->cure);
	return status;
}

/*
 * No launcher says that this is a task. STATUS_USAGE: TF_CONFIG says that it is not a task, or this
 * is a shell of a Slurm job with several machines or tasks. In a shell of a smaller job: warn.
 */
static enum status check_outside(struct finding *f, struct error *err)
{
	struct slurm_shell shell;
	if (f->tf_status != STATUS_OK)
		return error_set(err, f->tf_status, "%s", f->tf_err.text);
	enum status status = slurm_shell_find(f->environment, &shell, err);
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
	uint64_t its_tasks;
	enum status status = launcher_numbers(f, &task->value, &its_tasks, err);
	if (status != STATUS_OK)
		return status;
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
		return error_set(err, STATUS_USAGE, "%s=%llu must be less than %llu (%s): %s",
			launcher->task, (unsigned long long)task->value,
			(unsigned long long)tasks->value, tasks->source, launcher->cure);
	task->source = launcher->name;
	f->by_launcher = true;
	return STATUS_OK;
}

/* Neither an option nor a launcher numbers this task: it must be the only one. */
static enum status take_as_single(
	struct finding *f, struct number *task, const struct number *tasks, struct error *err)
{
	const struct identity_environment *environment = f->environment;
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
	if (!f->request->local && environment_value(environment, "RANK") &&
		environment_number(environment, "WORLD_SIZE", 2, IDENTITY_TASKS_MAX, &world,
			NULL) == STATUS_OK)
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
	struct number task = {0}, tasks = {.value = 1};
	enum status status = read_number(f->environment, &task_source,
		request->task_given ? &request->task : NULL, &task, err);
	/* PREEMPT_TASK is the first of several ranks: add LOCAL_RANK. A process that is not a rank,
	 * such as the launcher itself, counts as the first. */
	if (status == STATUS_OK && task.given && !request->task_given &&
		request->need != IDENTITY_START && environment_value(f->environment, "LOCAL_RANK"))
		status = identity_own_task(f->environment, &task.value, &task.source, err);
	if (status == STATUS_OK)
		status = read_number(f->environment, &tasks_source,
			request->tasks_given ? &request->tasks : NULL, &tasks, err);
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
	if (local > IDENTITY_TASKS_MAX || f->ranks * local > IDENTITY_TASKS_MAX)
		return error_set(err, STATUS_USAGE,
			"%llu x %llu tasks: a run has 1 to %d; with -n or --ranks, --tasks counts "
			"agents",
			(unsigned long long)f->ranks, (unsigned long long)local,
			IDENTITY_TASKS_MAX);
	f->identity.task = f->rank * local;
	f->identity.count = local;
	f->identity.tasks = f->ranks * local;
	return STATUS_OK;
}

static enum status find_machines(struct finding *f, struct error *err)
{
	const struct identity_environment *environment = f->environment;
	const struct launcher *launcher = f->launcher;
	struct identity *identity = &f->identity;
	uint64_t local_tasks, local = f->request->local;
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
	if (status_is_error(status))
		return status;
	identity->several_machines = identity->machines > 1;
	if (f->by_launcher && launcher->local_tasks) {
		status = environment_number(
			environment, launcher->local_tasks, 1, UINT32_MAX, &local_tasks, err);
		if (status_is_error(status))
			return status;
		if (status == STATUS_OK && local_tasks < f->ranks)
			identity->several_machines = true;
	}
	if (f->ranks > 1 &&
		(launcher->spread_out || (launcher == &launcher_tf_config && f->tf.several_hosts)))
		identity->several_machines = true;
	if (f->by_launcher && local > 1 && identity->machines && f->ranks > identity->machines)
		warn(identity,
			"%s: %llu agents on %llu machine%s, each with %llu tasks, are %llu tasks in "
			"all; for one agent per machine use srun --ntasks-per-node=1 or the like",
			launcher->name, (unsigned long long)f->ranks,
			(unsigned long long)identity->machines, identity->machines == 1 ? "" : "s",
			(unsigned long long)local, (unsigned long long)identity->tasks);
	return STATUS_OK;
}

static enum status find_run(struct finding *f, struct error *err)
{
	const struct identity_environment *environment = f->environment;
	const struct launcher *launcher = f->launcher;
	struct identity *identity = &f->identity;
	const char *variable = environment_value(environment, "PREEMPT_RUN");
	const char *run = f->request->run && *f->request->run ? f->request->run : variable;
	if (run) {
		bool by_variable = variable && !strcmp(run, variable);
		identity->run_source = by_variable ? "PREEMPT_RUN" : "--run";
		enum status status = parse_name(run, by_variable ? "$PREEMPT_RUN" : "--run", err);
		if (status == STATUS_OK)
			snprintf(identity->run, sizeof(identity->run), "%s", run);
		return status;
	}
	if (*f->job) {
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
				(unsigned long long)groups, (unsigned long long)step_tasks, f->job);
		memcpy(identity->run, f->job, sizeof(identity->run));
		identity->run_source = f->scheduler;
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
	if (f->request->need != IDENTITY_START || !environment->nonce)
		return error_set(
			err, STATUS_USAGE, "no run is named: give --run NAME or set PREEMPT_RUN");
	/*
	 * Do not derive the name from user, directory or command: a sweep starts the same command
	 * many times in one directory. So a later start does not find this run.
	 */
	snprintf(identity->run, sizeof(identity->run), "solo-%s", environment->nonce);
	identity->run_source = "made up";
	identity->run_is_ours = true;
	return parse_name(identity->run, "run", err);
}

static enum status find_launch(struct finding *f, struct error *err)
{
	struct identity *identity = &f->identity;
	const char *given = environment_value(f->environment, "PREEMPT_LAUNCH");
	char slurm[64] = "", own[112] = "";
	struct slurm_start start;
	enum status status = slurm_start_read(f->environment, &start, err);
	if (status == STATUS_OK)
		status = slurm_start_check(&start, err);
	if (status != STATUS_OK)
		return status;
	if (given) {
		status = parse_name(given, "$PREEMPT_LAUNCH", err);
		if (status == STATUS_OK)
			snprintf(identity->launch, sizeof(identity->launch), "%s", given);
		return status;
	}
	if (start.job)
		snprintf(slurm, sizeof(slurm), "slurm:%llu:%llu", (unsigned long long)start.job,
			(unsigned long long)start.restarts);
	/* If the user gives the numbers, tasks may be in several steps, and share only the job. */
	if (f->by_launcher)
		status = launcher_launch(f->launcher, f->environment, own, sizeof(own), err);
	if (status != STATUS_OK)
		return status;
	/* slurm has at most 27 bytes and own 91: both fit. */
	snprintf(identity->launch, sizeof(identity->launch), "%.40s%s%.87s", slurm,
		*slurm && *own ? "+" : "", own);
	return STATUS_OK;
}

enum status identity_find(const struct identity_environment *environment,
	const struct identity_request *request, struct identity *identity, struct error *err)
{
	struct finding f = {
		.environment = environment, .request = request, .identity = {.count = 1}};
	enum status status = scheduler_job(environment, f.job, sizeof(f.job), &f.scheduler, err);
	if (status == STATUS_NO)
		f.job[0] = '\0';
	else if (status != STATUS_OK)
		return status;
	f.tf_status = tf_config_read(environment, &f.tf, &f.tf_err);
	f.launcher = launcher_find(&f);

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
