/* SPDX-License-Identifier: MIT */
#include "queue/resource.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "queue/template.h"

static enum status check_name(const char *name, struct error *err)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
	size_t length = strlen(name);
	if (length == 0 || length > RESOURCE_NAME_MAX || strspn(name, allowed) != length ||
		isdigit((unsigned char)name[0]))
		return error_set(err, STATUS_USAGE,
			"\"%s\" cannot be the name of a resource: letters, digits (not first) and _, at "
			"most %d",
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
	struct json_object *object = json_object_new_object();
	struct json_object *words = json_object_new_array();
	for (char *const *word = argv; *word; word++)
		json_object_array_add(words, json_object_new_string(*word));
	json_object_object_add(object, "argv", words);
	json_put_text(object, "directory", directory);
	const char *line = json_line(object);
	queue_key(queue, key, "resource/%s", name);
	if (!line)
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
	else if (strlen(line) > QUEUE_ITEM_MAX)
		status = error_set(err, STATUS_USAGE,
			"the command of resource %s is longer than %d bytes: put it into a file",
			name, QUEUE_ITEM_MAX);
	else
		status = store_put(queue->store, key, line, NULL, err);
	json_object_put(object);
	return status;
}

/* A copy of the words of an array; NULL: it is none, or empty, or no memory. */
static char **copy_words(const struct json_object *array)
{
	size_t count =
		json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
	char **words = count ? calloc(count + 1, sizeof(*words)) : NULL;
	for (size_t i = 0; words && i < count; i++) {
		struct json_object *word = json_object_array_get_idx(array, i);
		words[i] = json_object_is_type(word, json_type_string)
				   ? strdup(json_object_get_string(word))
				   : NULL;
		if (!words[i]) {
			template_free(words);
			return NULL;
		}
	}
	return words;
}

enum status resource_find(const struct queue *queue, const char *name, char ***argv,
	char **directory, struct error *err)
{
	char key[QUEUE_KEY_MAX], **words = NULL;
	const char *place;
	struct store_entry entry = {0};
	struct json_object *array;
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
	struct json_object *object = json_parse(entry.value, entry.length);
	if (object && json_object_object_get_ex(object, "argv", &array))
		words = copy_words(array);
	if (words && json_get_text(object, "directory", &place) && *place == '/') {
		*directory = strdup(place);
		if (*directory)
			*argv = words;
		else
			status = error_set(err, STATUS_TEMPORARY, "out of memory");
	} else {
		status = error_set(
			err, STATUS_DAMAGED, "key %s cannot be read: define it again", key);
	}
	if (status != STATUS_OK)
		template_free(words);
	json_object_put(object);
	store_entry_release(&entry);
	return status;
}
