/* SPDX-License-Identifier: MIT */
#include "queue/worker/resource.h"

#include <ctype.h>
#include <string.h>

#include "queue/template.h"

struct definition {
	char **argv, *directory;
};
#define DEFINITION(member) JSON_MEMBER(struct definition, member)
static const struct json_field definition_fields[] = {
	{"argv", JSON_WORDS, JSON_REQUIRED, DEFINITION(argv)},
	{"directory", JSON_STRING, JSON_REQUIRED, DEFINITION(directory)},
	{0},
};

static bool check_definition(void *record, const struct store_entry *entry)
{
	const struct definition *definition = record;
	(void)entry;
	return definition->argv[0] && *definition->directory == '/';
}

static const struct queue_record resource_record = {
	definition_fields, sizeof(struct definition), check_definition};

static enum status check_name(const char *name, struct error *err)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
	size_t length = strlen(name);
	if (length == 0 || length > RESOURCE_NAME_MAX || strspn(name, allowed) != length ||
		isdigit((unsigned char)name[0]))
		return error_set(err, STATUS_USAGE,
			"\"%s\" cannot be the name of a resource: use letters, digits (not "
			"first) and _, at most %d bytes",
			name, RESOURCE_NAME_MAX);
	return STATUS_OK;
}

enum status resource_define(struct queue *queue, const char *name, char *const *argv,
	const char *directory, struct error *err)
{
	char key[QUEUE_KEY_MAX], **filled = NULL;
	enum status status = check_name(name, err);
	if (status != STATUS_OK)
		return status;
	if (!argv || !argv[0] || !directory || *directory != '/')
		return error_set(err, STATUS_USAGE,
			"resource %s needs a command, and an absolute directory to run it in",
			name);
	status = template_fill_worker(argv, "worker", 0, &filled, err);
	template_free(filled);
	if (status != STATUS_OK)
		return status;
	struct json_object *object = queue_write(
		&resource_record, &(struct definition){(char **)argv, (char *)directory});
	const char *line = json_line(object);
	queue_key(queue, key, "resource/%s", name);
	if (strlen(line) > QUEUE_ITEM_MAX)
		status = error_set(err, STATUS_USAGE,
			"the command of resource %s is longer than %d bytes: put it into a file",
			name, QUEUE_ITEM_MAX);
	else
		status = store_put(queue->store, key, line, NULL, err);
	json_object_put(object);
	return status;
}

enum status resource_find(const struct queue *queue, const char *name, char ***argv,
	char **directory, struct error *err)
{
	char key[QUEUE_KEY_MAX];
	struct definition read;
	struct store_entry entry = {0};
	enum status status = check_name(name, err);
	if (status != STATUS_OK)
		return status;
	queue_key(queue, key, "resource/%s", name);
	status = store_get(queue->store, key, &entry, err);
	if (status == STATUS_NO)
		return error_set(err, STATUS_NO,
			"queue %s has no resource %s: define it with preempt-queue resource",
			queue->name, name);
	if (status != STATUS_OK)
		return status;
	if (queue_read(&resource_record, &entry, &read, NULL) == STATUS_OK) {
		*argv = read.argv;
		*directory = read.directory;
	} else {
		status = error_set(err, STATUS_DAMAGED,
			"key %s cannot be read: define the resource again", key);
	}
	store_entry_release(&entry);
	return status;
}
