/* SPDX-License-Identifier: MIT */
#include "fault.h"

#include <inttypes.h>

static void say_name(struct text *text, operation_name name)
{
	text_addf(text, "%u.%u.%u", NAME_PROCESS(name), NAME_LIFE(name), NAME_NUMBER(name));
}

static void say_instant(struct text *text, int64_t instant)
{
	text_addf(text, "%s%" PRId64 ".%06" PRId64 " s", instant < 0 ? "-" : "",
		(instant < 0 ? -instant : instant) / 1000000000,
		(instant < 0 ? -instant : instant) / 1000 % 1000000);
}

static void say_entry(
	struct text *text, const struct history *history, const struct key_entry *entry)
{
	if (entry->revision == 0) {
		text_addf(text, "%s absent", history->keys[entry->key]);
		return;
	}
	text_addf(text, "%s = ", history->keys[entry->key]);
	if (entry->value)
		say_name(text, entry->value);
	else
		text_add(text, "something that the recorder never writes");
	text_addf(text, " of revision %" PRId64, entry->revision);
}

static void say_branch(struct text *text, const struct history *history,
	const struct operation *operation, bool otherwise)
{
	static const char *const verbs[] = {"put", "delete", "get"};
	const char *before = "";
	for (size_t i = 0; i < operation->part_count; i++) {
		const struct key_operation *part = &history->parts[operation->part + i];
		if (part->otherwise != otherwise)
			continue;
		text_addf(text, "%s%s %s", before, verbs[part->kind], history->keys[part->key]);
		before = ", ";
	}
	if (!*before)
		text_add(text, "nothing");
}

static void say_question(
	struct text *text, const struct history *history, const struct operation *operation)
{
	if (operation->kind != TRANSACTION) {
		text_addf(text, "%s %s", operation->kind == LIST ? "list" : "wait for a change of",
			history->prefixes[operation->prefix]);
		if (operation->since || operation->kind == WAIT)
			text_addf(text, " since revision %" PRId64, operation->since);
		return;
	}
	for (size_t i = 0; i < operation->compare_count; i++) {
		const struct key_compare *compare = &history->compares[operation->compare + i];
		text_addf(text, i ? " and %s is " : "if %s is ", history->keys[compare->key]);
		if (compare->revision)
			text_addf(text, "of revision %" PRId64, compare->revision);
		else
			text_add(text, "absent");
	}
	if (operation->compare_count)
		text_add(text, ": ");
	say_branch(text, history, operation, false);
	if (operation->compare_count) {
		text_add(text, ", else: ");
		say_branch(text, history, operation, true);
	}
}

static void say_answer(
	struct text *text, const struct history *history, const struct operation *operation)
{
	switch (operation->outcome) {
	case UNKNOWN: text_add(text, "its outcome is unknown"); return;
	case NO_EFFECT: text_add(text, "refused: certainly nothing was changed"); return;
	case QUIET: text_add(text, "answered: nothing up to"); break;
	case ANSWERED:
		text_add(text, "answered: ");
		if (operation->kind == WAIT)
			text_add(text, "a change, at");
		else if (operation->compare_count)
			text_add(text, operation->held ? "they hold, at" : "they do not hold, at");
		else
			text_add(text, "done, at");
		break;
	}
	text_addf(text, " revision %" PRId64, operation->revision);
	for (size_t i = 0; i < operation->entry_count; i++) {
		text_add(text, i ? "; " : ", with ");
		say_entry(text, history, &history->entries[operation->entry + i]);
	}
}

static void say_operation(
	struct text *text, const struct history *history, const struct operation *operation)
{
	text_add(text, "\n  operation ");
	say_name(text, operation->name);
	text_add(text, ", called at ");
	say_instant(text, operation->call);
	if (operation->back != HISTORY_LATER) {
		text_add(text, ", back at ");
		say_instant(text, operation->back);
	}
	text_add(text, "\n    asked: ");
	say_question(text, history, operation);
	text_add(text, "\n    ");
	say_answer(text, history, operation);
}

static void say_found(struct text *text, const struct history *history, const struct fault *fault)
{
	text_addf(text, " At revision %" PRId64 " it is: ", fault->revision);
	say_entry(text, history, &fault->wanted);
	text_add(text, "; it was read as: ");
	say_entry(text, history, &fault->found);
	text_add(text, ".");
}

/* The names of the operations in the sentences. */
static void say_kind(struct text *text, const struct history *history, const struct fault *fault)
{
	const char *key = fault->key >= 0 ? history->keys[fault->key] : "";
	operation_name a = fault->operation->name, b = fault->other ? fault->other->name : 0;
	struct text one = {0}, two = {0};
	say_name(&one, a);
	say_name(&two, b);
	const char *first = text_string(&one), *second = text_string(&two);
	switch (fault->kind) {
	case FAULT_NONE: break;
	case FAULT_TWO_MAKERS:
		text_addf(text,
			"Revision %" PRId64
			" was made twice: by operation %s and by operation %s. One "
			"of the two changes is lost.",
			fault->revision, second, first);
		break;
	case FAULT_NO_MAKER:
		text_addf(text,
			"Revision %" PRId64
			" was made by no operation: no acknowledged one says so, and "
			"none of unknown outcome can have made it. Operation %s saw that revision or a "
			"later one.",
			fault->revision, first);
		break;
	case FAULT_NEVER_WRITTEN:
		text_addf(text,
			"Operation %s read a value of key %s that was never written: ", first, key);
		say_entry(text, history, &fault->found);
		text_add(text, ".");
		break;
	case FAULT_REFUSED:
		text_addf(text,
			"Operation %s read the value of operation %s in key %s, and that one was told "
			"that certainly nothing was changed.",
			first, second, key);
		break;
	case FAULT_TWICE:
		text_addf(text,
			"Operation %s took effect twice: operation %s read its value in key %s at "
			"revision %" PRId64 ", and it also made revision %" PRId64 ".",
			second, first, key, fault->found.revision, fault->revision);
		break;
	case FAULT_FUTURE:
		text_addf(text,
			"Operation %s was told that the store was at revision %" PRId64
			", and read key %s of revision %" PRId64 ".",
			first, fault->revision, key, fault->found.revision);
		break;
	case FAULT_BACK:
		text_addf(text,
			"Operation %s was answered with revision %" PRId64
			", which is older than the whole history.",
			first, fault->revision);
		break;
	case FAULT_FAR:
		text_addf(text,
			"Operation %s was answered with revision %" PRId64
			", and there are not so many changes.",
			first, fault->revision);
		break;
	case FAULT_ENTRY:
		text_addf(text, "Operation %s read key %s wrongly.", first, key);
		say_found(text, history, fault);
		break;
	case FAULT_MISSING:
		text_addf(text,
			"The list of operation %s lacks key %s. At revision %" PRId64 " there is: ",
			first, key, fault->revision);
		say_entry(text, history, &fault->wanted);
		text_add(text, ".");
		break;
	case FAULT_ENTRIES:
		text_addf(text, "Operation %s was answered with %zu entries, which does not fit.",
			first, fault->operation->entry_count);
		break;
	case FAULT_HELD:
		text_addf(text,
			"Operation %s was told that its compares %s, and they did%s when the store was "
			"at revision %" PRId64,
			first, fault->operation->held ? "held" : "did not hold",
			fault->operation->held ? " not" : "", fault->revision);
		if (fault->key >= 0) {
			text_add(text, ", because of: ");
			say_entry(text, history, &fault->wanted);
		}
		text_add(text, ".");
		break;
	case FAULT_UNCHANGED:
		text_addf(text,
			"Operation %s must have made revision %" PRId64
			", because its value was read at that revision, and it could not have changed "
			"anything there.",
			first, fault->revision);
		break;
	case FAULT_NOT_DELETED:
		text_addf(text,
			"Operation %s deleted key %s, and at the revision %" PRId64
			" that it was answered the key is still there: ",
			first, key, fault->revision);
		say_entry(text, history, &fault->wanted);
		text_add(text, ".");
		break;
	case FAULT_ORDER:
		text_addf(text,
			"The revision went back: operation %s was answered before operation %s was "
			"called, and what it was answered needs that the other came first (revision "
			"%" PRId64 ").",
			first, second, fault->revision);
		break;
	case FAULT_WAIT_NOTHING:
		text_addf(text,
			"The wait of operation %s was answered, and nothing under its prefix has changed "
			"since revision %" PRId64 ".",
			first, fault->operation->since);
		break;
	case FAULT_WAIT_MISSED:
		text_addf(text,
			"The wait of operation %s missed a change: it says that nothing has changed up "
			"to revision %" PRId64 ", and operation %s changed key %s.",
			first, fault->operation->revision, second, key);
		break;
	case FAULT_WAIT_LATE:
		text_addf(text, "The wait of operation %s missed a change: at ", first);
		say_instant(text, fault->instant);
		text_addf(text,
			" it should have known of revision %" PRId64
			": operation %s was answered earlier, with that revision or a later one.",
			fault->revision, second);
		break;
	}
	text_release(&one);
	text_release(&two);
}

void fault_say(struct text *text, const struct history *history, const struct fault *fault)
{
	say_kind(text, history, fault);
	say_operation(text, history, fault->operation);
	if (fault->other && fault->other != fault->operation)
		say_operation(text, history, fault->other);
	text_add(text, "\n");
}
