/* SPDX-License-Identifier: MIT */
#include "queue/resource.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "queue/template.h"

#define SCRIPT_MAX (120 * 1024) /* bytes; the kernel takes 128 KiB in one word */

/*
 * need NAME BUILD: $D/NAME.done says that directory $D/NAME is built; $D/NAME.failed has a line for
 * each build that failed. Who has waited for the lock while a build failed does not try again. Many
 * machines remove from /tmp what was not used for days, so $D/NAME itself is looked for, too.
 */
static const char script[] =
	"need() {\n"
	"	failed=$(cat \"$D/$1.failed\" 2>/dev/null)\n"
	"	exec 9>>\"$D/$1.lock\" && flock 9 || exit 75\n"
	"	[ -e \"$D/$1.done\" ] && [ -d \"$D/$1\" ] && { exec 9>&-; return; }\n"
	"	code=1\n"
	"	if [ \"$failed\" = \"$(cat \"$D/$1.failed\" 2>/dev/null)\" ]; then\n"
	"		rm -rf \"$D/$1\" && mkdir \"$D/$1\" || exit 75\n"
	"		(PREEMPT_RESOURCE=$1 PREEMPT_RESOURCE_DIR=$D/$1\n"
	"		export PREEMPT_RESOURCE PREEMPT_RESOURCE_DIR\n"
	"		\"$2\") 9>&- </dev/null >&2\n"
	"		code=$?\n"
	"		[ $code = 0 ] && : >\"$D/$1.done\" && { exec 9>&-; return; }\n"
	"		rm -rf \"$D/$1\"\n"
	"		echo $code $$ >>\"$D/$1.failed\"\n"
	"	else\n"
	"		code=$(tail -n 1 \"$D/$1.failed\"); code=${code% *}\n"
	"	fi\n"
	"	echo \"resource $1: its build ended with $code\" >&2\n"
	"	case $code in 42 | 43) exit 1 ;; *) exit \"$code\" ;; esac\n"
	"}\n";

enum status resource_check_name(const char *name, struct error *err)
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

/* Add to the script how a resource is built: "b0() { cd DIR && exec WORDS; }", and that it is
 * needed. */
static enum status add(struct queue *queue, const struct queue_worker *worker, const char *name,
	size_t number, struct text *text, struct error *err)
{
	struct queue_item item = {0};
	char **words = NULL;
	enum status status = resource_check_name(name, err);
	if (status == STATUS_OK)
		status = queue_resource_get(queue, name, &item, err);
	if (status == STATUS_NO)
		error_set(err, STATUS_NO,
			"queue %s has no resource %s: define it with preempt-queue resource",
			queue->name, name);
	if (status == STATUS_OK)
		status = template_fill_worker(item.argv, worker->name, worker->index, &words, err);
	if (status == STATUS_OK) {
		text_addf(text, "b%zu() { cd ", number);
		text_add_shell_word(text, item.directory);
		text_add(text, " && exec");
		for (size_t i = 0; words[i]; i++) {
			text_add(text, " ");
			text_add_shell_word(text, words[i]);
		}
		text_addf(text, "; }\nneed %s b%zu\n", name, number);
		template_free(words);
	}
	queue_item_release(&item);
	return status;
}

static enum status make_directory(const struct reaper *reaper, char **directory, struct error *err)
{
	const char *above = getenv("TMPDIR");
	if (*directory && access(*directory, F_OK) == 0)
		return STATUS_OK;
	free(*directory);
	if (!above || !*above)
		above = "/tmp";
	*directory = reaper_make_directory(reaper, above, "preempt-resources.");
	return *directory ? STATUS_OK : error_errno(err, errno, "make a directory in %s", above);
}

enum status resource_wrap(struct queue *queue, const struct queue_worker *worker,
	const struct reaper *reaper, char **directory, char *const *names, char *const *words,
	struct variables *variables, char ***wrapped, struct error *err)
{
	struct text text = {.limit = SCRIPT_MAX};
	enum status status = make_directory(reaper, directory, err);
	if (status != STATUS_OK)
		return status;
	text_add(&text, "D=");
	text_add_shell_word(&text, *directory);
	text_add(&text, "\n");
	text_add(&text, script);
	for (size_t i = 0; names[i] && status == STATUS_OK; i++)
		status = add(queue, worker, names[i], i, &text, err);
	text_add(&text, "exec \"$@\"\n");
	if (status == STATUS_OK && text.too_long)
		status = error_set(err, STATUS_NO, "its resources have commands that are too long");
	if (status == STATUS_OK) {
		*wrapped = template_for_shell(text_string(&text), words);
		for (size_t i = 0; names[i]; i++) {
			char name[sizeof("PREEMPT_RESOURCE_") + RESOURCE_NAME_MAX];
			char *path = xprintf("%s/%s", *directory, names[i]);
			snprintf(name, sizeof(name), "PREEMPT_RESOURCE_%s", names[i]);
			variables_set(variables, name, path);
			free(path);
		}
	}
	text_release(&text);
	return status;
}
