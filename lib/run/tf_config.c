/* SPDX-License-Identifier: MIT */
/*
 * TF_CONFIG, which Kubeflow and clouds set for TensorFlow:
 *   {"cluster": {"chief": ["a:2222"], "worker": ["b:2222"]},
 *    "task": {"type": "worker", "index": 0}}
 * The chief (in older versions: the master) is task 0, the workers follow. Evaluators and
 * parameter servers run beside the training and reach no step together with it: they are no tasks.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "run/launchers.h"

static enum status refuse(struct error *err, const char *why)
{
	return error_set(err, STATUS_USAGE,
		"TF_CONFIG %s; correct it, unset it, or give --task and --tasks", why);
}

/* The addresses of one type of the cluster. False: they are not a list of texts. */
static bool find_addresses(const struct json_object *cluster, const char *type,
	struct json_object **list, size_t *count)
{
	*list = NULL;
	*count = 0;
	if (!json_object_object_get_ex(cluster, type, list))
		return true;
	if (!json_object_is_type(*list, json_type_array))
		return false;
	*count = json_object_array_length(*list);
	for (size_t i = 0; i < *count; i++)
		if (!json_object_is_type(json_object_array_get_idx(*list, i), json_type_string))
			return false;
	return true;
}

/* Whether the list has another host than *first, the first address of all (NULL: none yet). */
static bool has_other_host(struct json_object *list, size_t count, const char **first)
{
	for (size_t i = 0; i < count; i++) {
		const char *address = json_object_get_string(json_object_array_get_idx(list, i));
		const char *port = strrchr(address, ':');
		size_t length = port ? (size_t)(port - address) : strlen(address);
		if (!*first)
			*first = address;
		if (strncmp(*first, address, length) ||
			((*first)[length] && (*first)[length] != ':'))
			return true;
	}
	return false;
}

static enum status find_role(
	const struct json_object *json, struct tf_role *role, struct error *err)
{
	struct json_object *cluster = NULL, *task = NULL, *chief, *master, *workers;
	size_t chiefs, masters, worker_count;
	const char *type = NULL, *host = NULL;
	uint64_t index = 0;
	if (!json_object_is_type(json, json_type_object))
		return refuse(err, "is not a JSON object");
	(void)json_object_object_get_ex(json, "cluster", &cluster);
	(void)json_object_object_get_ex(json, "task", &task);
	(void)json_get_text(task, "type", &type);
	bool has_index = json_get_unsigned(task, "index", &index);
	if (type && (!strcmp(type, "evaluator") || !strcmp(type, "ps")))
		return error_set(err, STATUS_USAGE,
			"TF_CONFIG says that this is %s, which is not a task of the run because "
			"it does not train in step with the others; start it without preempt-run",
			*type == 'e' ? "an evaluator" : "a parameter server (ps)");
	/* A job of one machine has no cluster. */
	if (!cluster || (json_object_is_type(cluster, json_type_object) &&
				json_object_object_length(cluster) == 0))
		return index == 0 ? STATUS_OK : refuse(err, "has a task, but no cluster");
	if (!json_object_is_type(cluster, json_type_object) ||
		!find_addresses(cluster, "chief", &chief, &chiefs) ||
		!find_addresses(cluster, "master", &master, &masters) ||
		!find_addresses(cluster, "worker", &workers, &worker_count))
		return refuse(err, "has a cluster that is no list of addresses for each type");
	if (chiefs + masters > 1)
		return refuse(err, "has more than one chief or master");
	if (!type || !has_index)
		return refuse(err, "does not say which task of the cluster this is");
	if (chiefs + masters + worker_count > IDENTITY_TASKS_MAX)
		return refuse(err, "has too many tasks");
	bool leads = !strcmp(type, "chief") || !strcmp(type, "master");
	if (!leads && strcmp(type, "worker") != 0)
		return refuse(err, "has a task that is neither chief, master nor worker");
	if (index >= (leads ? *type == 'c' ? chiefs : masters : worker_count))
		return refuse(err, "has a task that is not in its cluster");
	*role = (struct tf_role){.is_task = true,
		.task = leads ? 0 : chiefs + masters + index,
		.tasks = chiefs + masters + worker_count};
	role->several_hosts = has_other_host(chief, chiefs, &host) ||
			      has_other_host(master, masters, &host) ||
			      has_other_host(workers, worker_count, &host);
	return STATUS_OK;
}

enum status tf_config_read(
	const struct identity_environment *environment, struct tf_role *role, struct error *err)
{
	const char *text = environment_value(environment, "TF_CONFIG");
	*role = (struct tf_role){0};
	if (!text)
		return STATUS_OK;
	struct json_object *json = json_parse(text, strlen(text));
	enum status status = find_role(json, role, err);
	json_object_put(json);
	return status;
}

const struct launcher launcher_tf_config = {
	.name = "TF_CONFIG",
	.task = "task",
	.tasks = "tasks",
	.cure = "correct TF_CONFIG, or give --task and --tasks",
};
