/* SPDX-License-Identifier: MIT */
/*
 * The commands that workers run, what they write, and the queue's files: in place of
 * base/process/subprocess.c, queue/output/output.c and queue/output/files.c.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/bell.h"
#include "base/process/subprocess.h"
#include "queue/output/files.h"
#include "sim.h"

#define FIRST_CHILD  10000   /* the numbers of the commands */
#define FIRST_OUTPUT 2000000 /* descriptors */

/* ---- Starting ---- */

static const char *variable(char *const *environment, const char *name)
{
	size_t length = strlen(name);
	for (; *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

/* Which lease this command is started with; each may start one, on the worker whose it is. */
static int find_lease(const struct node *node, char *const *environment)
{
	uint64_t id = strtoull(variable(environment, "PREEMPT_ITEM_ID"), NULL, 10);
	uint64_t number = strtoull(variable(environment, "PREEMPT_ITEM_ATTEMPT"), NULL, 10);
	for (int i = 0; i < world->keys.starts; i++) {
		const struct start *start = &world->keys.start[i];
		if (start->item != (int)id - 1 || start->number != number ||
			strcmp(start->worker, node->self->worker.token) != 0)
			continue;
		if (start->command != NOBODY)
			VIOLATE("one start", "command %" PRIu64 " starts twice with one lease", id);
		return i;
	}
	VIOLATE("lease", "worker %d starts command %" PRIu64 " without a lease", node->number, id);
	return NOBODY;
}

static int64_t draw_length(const struct spec *spec)
{
	return random_in(&kernel.random, 1, spec->duration * MS);
}

static void run_item(struct node *node, struct command *command, char *const *environment)
{
	command->start = find_lease(node, environment);
	if (command->start == NOBODY)
		return;
	struct start *start = &world->keys.start[command->start];
	const struct spec *spec = &world->schedule->spec[world->keys.item[start->item].spec];
	uint64_t nth = start->number <= MOST_CODES ? start->number - 1 : MOST_CODES - 1;
	int number = (int)(command - world->command);
	start->command = number;
	command->code = spec->codes[nth];
	if (spec->uses_resource &&
		(!node->has_resource || !variable(environment, "PREEMPT_RESOURCE_" RESOURCE)))
		VIOLATE("resource", "command %d starts without its resource", start->item + 1);
	world->statistics->started++;
	kernel_at(kernel.now + draw_length(spec), EVENT_COMMAND, number, command->epoch);
	TRACE("command %d starts on worker %d, start %" PRIu64, start->item + 1, node->number,
		start->number);
	world_trigger(AT_RUN, node);
}

static void run_build(struct command *command)
{
	int nth = world->builds < MOST_CODES ? world->builds : MOST_CODES - 1;
	world->builds++;
	command->start = NOBODY;
	command->code = world->schedule->resource_codes[nth];
	kernel_at(kernel.now + random_in(&kernel.random, 1, 200 * MS), EVENT_COMMAND,
		(int)(command - world->command), command->epoch);
}

enum status subprocess_start(
	struct subprocess *child, const struct subprocess_options *asked, struct error *err)
{
	struct node *node = node_current();
	int number = world->commands;
	if (number == MOST_COMMANDS)
		return error_set(err, STATUS_TEMPORARY, "no process can be made");
	world->commands++;
	struct command *command = &world->command[number];
	*command = (struct command){.node = node->process.index, .bell = bell_open()};
	world->output_of[asked->standard[1] - FIRST_OUTPUT] = number;
	world->output_of[asked->standard[2] - FIRST_OUTPUT] = number;
	*child = (struct subprocess){.pid = FIRST_CHILD + number,
		.end = {.descriptor = command->bell, .due = CLOCK_NEVER}};
	if (variable(asked->environment, "PREEMPT_ITEM_ID"))
		run_item(node, command, asked->environment);
	else
		run_build(command);
	return STATUS_OK;
}

/* ---- Ending ---- */

static struct command *command_of(const struct subprocess *child)
{
	return &world->command[child->pid - FIRST_CHILD];
}

void command_end(int number, int code)
{
	struct command *command = &world->command[number];
	if (command->ended)
		return;
	struct node *node = &world->node[command->node];
	command->epoch++;
	command->ended = true;
	command->code = code;
	if (command->start != NOBODY)
		TRACE("command %d ends with %d", world->keys.start[command->start].item + 1, code);
	else if (code == 0)
		node->has_resource = true;
	if (!process_lives(&node->process))
		return;
	bell_ring(command->bell);
	if (command->start != NOBODY)
		world_trigger(AT_ENDED, node);
}

void commands_of_node_end(const struct node *node)
{
	for (int i = 0; i < world->commands; i++)
		if (world->command[i].node == node->process.index)
			command_end(i, 137);
}

enum subprocess_state subprocess_check(struct subprocess *child, int64_t now)
{
	(void)now;
	if (!child->pid)
		return SUBPROCESS_NONE;
	const struct command *command = command_of(child);
	if (!command->ended)
		return SUBPROCESS_RUNS;
	child->how.si_code = command->code > 128 ? CLD_KILLED : CLD_EXITED;
	child->how.si_status = command->code > 128 ? command->code - 128 : command->code;
	return SUBPROCESS_ENDED;
}

enum subprocess_state subprocess_finish(struct subprocess *child, int64_t now)
{
	return subprocess_check(child, now);
}

/* TERM takes a moment; what it makes of it is drawn beforehand. */
static void tell(struct command *command, int number)
{
	const struct start *start = &world->keys.start[command->start];
	const struct spec *spec = &world->schedule->spec[world->keys.item[start->item].spec];
	bool heeds = !command->told && !spec->ignores_term;
	command->told = true;
	if (!heeds)
		return;
	command->code = spec->term_code == 143 ? 128 + number : spec->term_code;
	command->epoch++;
	kernel_at(kernel.now + random_in(&kernel.random, 0, 100 * MS), EVENT_COMMAND,
		(int)(command - world->command), command->epoch);
}

void subprocess_signal(const struct subprocess *child, int number)
{
	struct command *command = command_of(child);
	if (command->ended || number == SIGCONT)
		return;
	if (number == SIGKILL || command->start == NOBODY)
		command_end((int)(command - world->command), 128 + number);
	else
		tell(command, number);
}

void subprocess_reap(struct subprocess *child, bool spare)
{
	struct command *command = command_of(child);
	(void)spare;
	if (!command->ended || command->reaped)
		VIOLATE("children", "one is reaped that has not ended, or twice");
	command->reaped = true;
	close(child->end.descriptor);
	child->end.descriptor = -1;
	child->pid = 0;
}

void subprocess_kill(struct subprocess *child)
{
	subprocess_signal(child, SIGKILL);
	subprocess_reap(child, false);
}

void subprocess_release(struct subprocess *child)
{
	if (child->pid)
		subprocess_kill(child);
}

/* What is left of a group: nothing is. */
int kill(pid_t pid, int number)
{
	(void)pid, (void)number;
	return 0;
}

/* ---- Output: what a start writes names it ---- */

int output_open(struct error *err)
{
	if (world->outputs == MOST_COMMANDS * 2) {
		(void)error_set(err, STATUS_TEMPORARY, "too many files");
		return -1;
	}
	world->output_of[world->outputs] = NOBODY;
	return FIRST_OUTPUT + world->outputs++;
}

static struct file *find_file(uint64_t id, const char *token, enum output_stream stream)
{
	for (int i = 0; i < world->files; i++)
		if (world->file[i].id == id && world->file[i].stream == stream &&
			!strcmp(world->file[i].token, token))
			return &world->file[i];
	return NULL;
}

bool file_is_there(uint64_t id, const char *token, enum output_stream stream)
{
	const struct file *file = find_file(id, token, stream);
	return file && file->there;
}

static void make_file(uint64_t id, const char *token, enum output_stream stream)
{
	struct file *file = find_file(id, token, stream);
	assert(file || world->files < MOST_FILES);
	if (!file)
		file = &world->file[world->files++];
	*file = (struct file){.id = id, .stream = stream, .there = true};
	snprintf(file->token, sizeof(file->token), "%s", token);
}

enum status output_keep(struct output *output, struct error *err)
{
	const struct spec *spec = &world->schedule->spec[world->keys.item[output->id - 1].spec];
	kernel_sleep(random_in(&kernel.random, 0, 5 * MS));
	if (random_chance(&kernel.random, world->closing ? 0 : world->schedule->full_disk))
		return error_set(err, STATUS_TEMPORARY, "no space is left");
	const struct command *command =
		&world->command[world->output_of[output->descriptor - FIRST_OUTPUT]];
	output->filed = spec->has_long_output && output->stream == OUTPUT_OUT;
	output->bytes = NULL;
	output->length = QUEUE_OUTPUT_SHORT + 1;
	if (output->filed)
		make_file(output->id, output->token, output->stream);
	else
		output->length = (uint64_t)asprintf(&output->bytes, "%s of lease %s",
			output->stream == OUTPUT_OUT ? "out" : "err",
			world->keys.start[command->start].token);
	return STATUS_OK;
}

void output_remove(
	const struct queue *queue, uint64_t id, const char *token, enum output_stream stream)
{
	const struct item *item = &world->keys.item[id - 1];
	struct file *file = find_file(id, token, stream);
	(void)queue;
	if (file)
		file->there = false;
	bool is_named = item->place == OVER && !strcmp(item->result.token, token) &&
			(stream == OUTPUT_OUT ? item->result.out_filed : item->result.err_filed);
	if (is_named)
		VIOLATE("output",
			"the output of command %" PRIu64 " is removed, and its result counts", id);
}

void output_remove_both(const struct queue *queue, uint64_t id, const char *token)
{
	output_remove(queue, id, token, OUTPUT_OUT);
	output_remove(queue, id, token, OUTPUT_ERR);
}

void output_last_line(int descriptor, char *line, size_t size)
{
	(void)descriptor, (void)size;
	*line = '\0';
}

enum status output_print(struct queue *queue, uint64_t id, const struct queue_result *result,
	enum output_stream stream, int to, struct error *err)
{
	(void)queue, (void)id, (void)result, (void)stream, (void)to, (void)err;
	return STATUS_OK;
}

/* ---- Files ---- */

enum status files_make(
	const struct queue *queue, const char *below, bool durable, char **path, struct error *err)
{
	(void)below, (void)durable, (void)err;
	*path = strdup(queue->files);
	return STATUS_OK;
}

enum status files_make_item(const struct queue *queue, uint64_t id, char **path, struct error *err)
{
	(void)queue, (void)id, (void)err;
	*path = strdup("/simulated/item");
	return STATUS_OK;
}

void files_remove_item(const struct queue *queue, uint64_t id, bool whole)
{
	(void)queue, (void)id, (void)whole;
}
