/* SPDX-License-Identifier: MIT */
#include "doctor.h"

#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/process/ending.h"
#include "doctor/doctor.h"
#include "run/options.h"

static const char *other, *session;
static uint64_t nodes, node;
static bool node_given;
static bool quick, shared;

const struct args_option doctor_options[] = {
	{"other", "PATH", "the same directory through another mount: check one against the other",
		ARGS_TEXT, .target = &other},
	{"nodes", "N", "this same command runs on N machines: check them against each other",
		ARGS_UNSIGNED, .target = &nodes, .min = 2, .max = 64},
	{"node", "I", "with --nodes: which of the N this is, from 0 (default: the launcher's task)",
		ARGS_UNSIGNED, .target = &node, .max = 63, .given = &node_given},
	{"session", "NAME", "with --nodes: the same on all N (default: the launcher's job step)",
		ARGS_NAME, .target = &session},
	{"shared", NULL, "check it for use by several machines, not only by this one", ARGS_FLAG,
		.target = &shared},
	{"quick", NULL, "at most 3 seconds after all nodes have come, for a prolog", ARGS_FLAG,
		.target = &quick},
	{0},
};

/* Find the number of this node and the session: from the options, otherwise from the launcher. */
static enum status find_node(
	struct doctor_request *request, struct identity *identity, struct error *err)
{
	/* group_identify needs some name of a run. */
	if (!group_options.run)
		group_options.run = "doctor";
	if (group_identify(IDENTITY_RUN, 0, identity, NULL) != STATUS_OK || !identity->is_task)
		*identity = (struct identity){0};
	request->node = node_given ? node : identity->task;
	request->session = session ? session : identity->launch;
	if (!*request->session || (!node_given && !identity->tasks))
		return error_set(err, STATUS_USAGE,
			"no launcher numbers these nodes: give --node 0 and --session NAME on the first, "
			"--node 1 and the same --session on the second, and so on; or start it with "
			"srun");
	if (!node_given && identity->tasks != nodes)
		return error_set(err, STATUS_USAGE,
			"--nodes %llu, but the launcher started %llu tasks: start as many, or give "
			"--node and --session",
			(unsigned long long)nodes, (unsigned long long)identity->tasks);
	if (request->node >= nodes)
		return error_set(err, STATUS_USAGE,
			"--node %llu: with --nodes %llu, nodes are numbered from 0 to %llu",
			(unsigned long long)node, (unsigned long long)nodes,
			(unsigned long long)nodes - 1);
	return STATUS_OK;
}

int doctor_command(const struct args_rest *rest)
{
	struct error err = {0};
	struct identity identity = {0};
	struct doctor_report report = {0};
	struct text url = {0};
	const char *word = rest->count ? rest->words[0] : NULL;
	bool is_url = word && !strncmp(word, "etcd:", 5);
	struct doctor_request request = {.directory = is_url ? NULL : word,
		.other = other,
		.nodes = nodes,
		.quick = quick,
		.shared = shared,
		.timeout = group_timeout(quick && !nodes ? 2400 : 60000)};
	enum status status = STATUS_OK;
	if (other && nodes)
		status = error_set(&err, STATUS_USAGE, "--other and --nodes exclude each other");
	else if ((session || node_given) && !nodes)
		status = error_set(&err, STATUS_USAGE, "--node and --session are for --nodes");
	else if (word && args_is_typed("store"))
		status = error_set(&err, STATUS_USAGE,
			"--store and a DIRECTORY exclude each other: leave one out");
	else if (is_url)
		text_add(&url, word);
	else if (!request.directory)
		status = find_store_url(&url, &err);
	if (!request.directory)
		request.url = text_string(&url);
	if (status == STATUS_OK && nodes)
		status = find_node(&request, &identity, &err);
	if (status == STATUS_OK && nodes)
		message_progress("waiting for the other nodes");
	if (status == STATUS_OK && request.url && !strncmp(request.url, "etcd:", 5))
		status = doctor_run_etcd(&request, &report, &err);
	else if (status == STATUS_OK)
		status = doctor_run(&request, &report, &err);
	message_progress(NULL);
	if (status == STATUS_OK)
		fputs(text_string(group_options.json ? &report.json : &report.text), stdout);
	int code_to_return = status == STATUS_OK ? (int)report.status : message_fail(&err);
	doctor_report_release(&report);
	text_release(&url);
	return ending_signal() ? ending_die(ending_signal()) : code_to_return;
}
