/* SPDX-License-Identifier: MIT */
/*
 * preempt-queue COMMAND: a durable queue of commands, run by preemptible workers. The commands are
 * in src/preempt-queue/.
 */
#include "preempt-queue/client.h"

static const struct args_command commands[] = {
	{"schedule", "[OPTION...] [-- COMMAND [ARG...]]",
		"put a command, or one for each line of stdin, into the queue; print the ids",
		schedule_options, client_place, 0, 0, true, false, run_schedule},
	{"set", "[--halt WHEN | --keep-going]",
		"set --halt for commands scheduled later; or print it", set_options, client_place,
		0, 0, false, false, run_set},
	{"work", "[OPTION...]", "take commands and run them; exit 0: none left, 42: preempted",
		work_options, client_place, 0, 0, false, false, run_work},
	{"join", "[ID... | --tag T] [OPTION...]",
		"wait until all commands, or these, are over; exit 44: one has failed",
		join_options, client_wait, 0, 4096, false, false, run_join},
	{"done", "[ID... | --tag T]",
		"are all, or these, over? exit 0: yes, 1: not yet, 44: yes, and one has failed",
		done_options, client_place, 0, 4096, false, false, run_done},
	{"fetch", "ID... [--wait | --follow] [--stderr] [--exit-status]",
		"print the output of commands that are over; exit 1: not yet", fetch_options,
		client_wait, 1, 4096, false, false, run_fetch},
	{"list", "[OPTION...]", "print the commands, one per line", list_options, client_common, 0,
		0, false, false, run_list},
	{"show", "ID...", "print everything about commands", NULL, client_json, 1, 4096, false,
		false, run_show},
	{"cancel", "ID... | --all | --tag T", "cancel waiting commands, end running ones",
		cancel_options, client_place, 0, 4096, false, false, run_cancel},
	{"retry", "ID... | [--failed] [--cancelled] [--tag T]",
		"put finished commands back into the queue", retry_options, client_place, 0, 4096,
		false, false, run_retry},
	{"forget", "ID... | --finished [--older-than D] [--tag T]",
		"remove commands that are over, with their output", forget_options, client_place, 0,
		4096, false, false, run_forget},
	{"workers", "", "print the registered workers", NULL, client_json, 0, 0, false, false,
		run_workers},
	{"resource", "NAME -- COMMAND [ARG...]", "define how each worker builds a resource, once",
		NULL, client_place, 1, 1, true, true, run_resource},
	{0},
};

static const struct args_program program = {
	.name = "preempt-queue",
	.summary = "A durable queue of commands, run by workers that may be preempted.",
	.commands = commands,
};

int main(int argc, char **argv)
{
	return args_main(&program, argc, argv);
}
