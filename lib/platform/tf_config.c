/* SPDX-License-Identifier: MIT */
/*
 * TF_CONFIG, which Kubeflow and clouds set for TensorFlow:
 *   {"cluster": {"chief": ["a:2222"], "worker": ["b:2222"]},
 *    "task": {"type": "worker", "index": 0}}
 * The chief (in older versions: the master) is task 0, the workers follow. Evaluators and
 * parameter servers run beside the training and reach no step together with it: they are no tasks.
 */
#include <string.h>

#include "base/json.h"
#include "platform/platform.h"

static enum status refuse(struct error *err, const char *why)
{
	return error_set(err, STATUS_USAGE,
		"TF_CONFIG %s; correct it, unset it, or give --task and --tasks", why);
}

/* The addresses of one type of the cluster. */
struct addresses {
	const char *type;
	size_t count;
};

/*
 * Count the addresses of each type. *several: they are of more than one host. False: the cluster is
 * no list of texts for each type.
 */
static bool count_addresses(
	const struct json_object *cluster, struct addresses *types, size_t count, bool *several)
{
	const char *first = NULL;
	if (!json_object_is_type(cluster, json_type_object))
		return false;
	for (size_t t = 0; t < count; t++) {
		struct json_object *list;
		if (!json_object_object_get_ex(cluster, types[t].type, &list))
			continue;
		if (!json_object_is_type(list, json_type_array))
			return false;
		types[t].count = json_object_array_length(list);
		for (size_t i = 0; i < types[t].count; i++) {
			struct json_object *item = json_object_array_get_idx(list, i);
			if (!json_object_is_type(item, json_type_string))
				return false;
			const char *address = json_object_get_string(item);
			const char *port = strrchr(address, ':');
			size_t length = port ? (size_t)(port - address) : strlen(address);
			first = first ? first : address;
			*several |= strncmp(first, address, length) ||
				    (first[length] && first[length] != ':');
		}
	}
	return true;
}

static enum status find_role(
	const struct json_object *json, struct launched *launched, struct error *err)
{
	enum { CHIEF, MASTER, WORKER, TYPES };
	struct addresses types[TYPES] = {{"chief", 0}, {"master", 0}, {"worker", 0}};
	struct json_object *cluster = NULL, *task = NULL;
	const char *type = NULL;
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
		return index == 0 ? STATUS_NO : refuse(err, "has a task, but no cluster");
	if (!count_addresses(cluster, types, TYPES, &launched->several_machines))
		return refuse(err, "has a cluster that is no list of addresses for each type");
	size_t leaders = types[CHIEF].count + types[MASTER].count, which = 0;
	if (leaders > 1)
		return refuse(err, "has more than one chief or master");
	if (!type || !has_index)
		return refuse(err, "does not say which task of the cluster this is");
	launched->tasks = leaders + types[WORKER].count;
	if (launched->tasks > TASKS_MAX)
		return refuse(err, "has too many tasks");
	while (which < TYPES && strcmp(type, types[which].type) != 0)
		which++;
	if (which == TYPES)
		return refuse(err, "has a task that is neither chief, master nor worker");
	if (index >= types[which].count)
		return refuse(err, "has a task that is not in its cluster");
	launched->task = which == WORKER ? leaders + index : 0;
	return STATUS_OK;
}

enum status tf_config_read(const struct signs *signs, struct launched *launched, struct error *err)
{
	const char *text = signs_value(signs, "TF_CONFIG");
	if (!text)
		return STATUS_NO;
	struct json_object *json = json_parse(text, strlen(text));
	enum status status = find_role(json, launched, err);
	json_object_put(json);
	return status;
}
