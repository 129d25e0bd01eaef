/* SPDX-License-Identifier: MIT */
#include "store/sqlite.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "store/access.h"

/* The parameters of the URL. */
struct parameters {
	enum lock_mode mode;
	bool shared_group;
	const char *assume; /* "local", "shared" or NULL */
};

static enum status read_parameters(
	const struct store_url *url, struct parameters *parameters, struct error *err)
{
	for (size_t i = 0; i < url->count; i++) {
		const char *name = url->parameters[i].name;
		const char *value = url->parameters[i].value;
		bool known = false;
		if (!strcmp(name, "lock"))
			known = value && lock_mode_parse(value, &parameters->mode);
		else if (!strcmp(name, "shared-group"))
			known = parameters->shared_group = !value;
		else if (!strcmp(name, "assume")) {
			known = value && (!strcmp(value, "local") || !strcmp(value, "shared"));
			parameters->assume = value;
		}
		if (!known)
			return error_set(err, STATUS_USAGE,
				"store %s: \"%s%s%s\" is not understood; known are lock=auto|fcntl|link, "
				"shared-group, assume=local|shared",
				url->path, name, value ? "=" : "", value ? value : "");
	}
	return STATUS_OK;
}

/*
 * The real path, so that two names of one database have one lock file. The database itself may be
 * missing, its directory may not.
 */
static enum status find_path(struct sqlite_store *store, const char *path, struct error *err)
{
	char real[PATH_MAX];
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return error_set(
			err, STATUS_USAGE, "store %s: this is not the name of a file", path);
	if (realpath(path, real)) {
		store->base.where = strdup(real);
	} else if (errno == ENOENT) {
		char *directory = file_directory_of(path);
		if (directory && realpath(directory, real) &&
			asprintf(&store->base.where, "%s/%s", strcmp(real, "/") ? real : "", name) <
				0)
			store->base.where = NULL;
		free(directory);
	}
	if (!store->base.where) {
		int number = errno;
		return error_set(err, error_status_of_errno(number),
			"cannot open store %s: %s: %s%s", path,
			number == ENOENT ? "its directory" : "its path", strerror(number),
			lock_cure(number));
	}
	store->directory = file_directory_of(store->base.where);
	if (!store->directory || asprintf(&store->journal, "%s-journal", store->base.where) < 0 ||
		asprintf(&store->beats, "%s.beats", store->base.where) < 0)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	return STATUS_OK;
}

static enum status check_directory(struct sqlite_store *store, struct error *err)
{
	struct stat st;
	if (stat(store->directory, &st) < 0) {
		int number = errno;
		return error_set(err, error_status_of_errno(number), "cannot look at %s: %s%s",
			store->directory, strerror(number), lock_cure(number));
	}
	return access_check(store->directory, &st, store->shared_group, err);
}

static void sqlite_close(struct store *base)
{
	struct sqlite_store *store = (struct sqlite_store *)base;
	watch_close(store);
	sharedlock_close(&store->lock);
	free(store->base.where);
	free(store->journal);
	free(store->directory);
	free(store->beats);
	free(store);
}

/*
 * What the user vouches for. That locks reach other machines is not believed where this mount's own
 * options say that they do not.
 */
static enum filesystem_reach assumed(const char *assume, enum filesystem_reach seen)
{
	if (!strcmp(assume, "local"))
		return FILESYSTEM_LOCAL;
	return seen == FILESYSTEM_NODE ? FILESYSTEM_NODE : FILESYSTEM_SHARED;
}

static enum status sqlite_open(struct store **opened, const struct store_url *url, unsigned flags,
	int64_t deadline, struct error *err)
{
	struct parameters parameters = {.mode = LOCK_AUTO};
	struct filesystem filesystem = {0};
	struct sqlite_store *store = calloc(1, sizeof(*store));
	if (!store)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	watch_init(&store->watch);
	store->lock.descriptor = store->lock.machine.descriptor = -1;
	bool create = (flags & STORE_CREATE) && !(flags & STORE_READ_ONLY);

	enum status status = read_parameters(url, &parameters, err);
	store->shared_group = parameters.shared_group;
	if (status == STATUS_OK)
		status = find_path(store, url->path, err);
	if (status == STATUS_OK)
		status = check_directory(store, err);
	if (status == STATUS_OK)
		status = filesystem_look(store->directory, &filesystem, err);
	if (status == STATUS_OK) {
		struct sharedlock_terms terms = {
			.database = store->base.where,
			.mode = parameters.mode,
			.create = create,
			.read_only = flags & STORE_READ_ONLY,
			.shared_group = parameters.shared_group,
			.verdict = filesystem_judge(&filesystem),
		};
		if (parameters.assume)
			terms.verdict.reach = assumed(parameters.assume, terms.verdict.reach);
		store->base.local = terms.verdict.reach == FILESYSTEM_LOCAL;
		status = sharedlock_open(&store->lock, &terms, deadline, err);
		if (status != STATUS_OK && err)
			error_prefix(err, "store %s", store->base.where);
	}
	if (status == STATUS_OK)
		status = database_make(store, create, deadline, err);
	if (status == STATUS_OK)
		*opened = &store->base;
	else
		sqlite_close(&store->base);
	return status;
}

/* A statement for one key, bound as its first parameter. */
static sqlite3_stmt *prepare_for_key(
	struct session *session, const char *sql, const char *key, struct error *err)
{
	sqlite3_stmt *statement = session_prepare(session, sql, err);
	if (statement)
		sqlite3_bind_blob(statement, 1, key, (int)strlen(key), SQLITE_STATIC);
	return statement;
}

/* Run a statement that answers no rows. */
static enum status finish(
	struct session *session, sqlite3_stmt *statement, int *changes, struct error *err)
{
	int code = sqlite3_step(statement);
	enum status status =
		code == SQLITE_DONE ? STATUS_OK : session_failed(session, "change", code, err);
	*changes = sqlite3_changes(session->database);
	sqlite3_finalize(statement);
	return status;
}

static enum status compare_one(struct session *session, const struct store_compare *compare,
	bool *holds, struct error *err)
{
	sqlite3_stmt *statement = prepare_for_key(session,
		"SELECT revision FROM keys WHERE key=? AND value IS NOT NULL", compare->key, err);
	if (!statement)
		return err->status;
	int code = sqlite3_step(statement);
	store_revision revision = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
	enum status status = STATUS_OK;
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		status = session_failed(session, "read", code, err);
	else
		*holds = revision == compare->revision;
	sqlite3_finalize(statement);
	return status;
}

static enum status compare_all(struct session *session, const struct store_compare *compares,
	size_t count, bool *hold, struct error *err)
{
	enum status status = STATUS_OK;
	*hold = true;
	for (size_t i = 0; i < count && *hold && status == STATUS_OK; i++)
		status = compare_one(session, &compares[i], hold, err);
	return status;
}

/* Copy column value and its revision into an entry that has its key. */
static bool copy_value(struct store_entry *entry, sqlite3_stmt *statement, int value, int revision)
{
	size_t length = (size_t)sqlite3_column_bytes(statement, value);
	entry->value = malloc(length + 1);
	if (!entry->value)
		return false;
	if (length)
		memcpy(entry->value, sqlite3_column_blob(statement, value), length);
	entry->value[length] = '\0';
	entry->length = length;
	entry->revision = sqlite3_column_int64(statement, revision);
	return true;
}

static enum status get_one(
	struct session *session, const char *key, struct store_entry *entry, struct error *err)
{
	sqlite3_stmt *statement = prepare_for_key(session,
		"SELECT value, revision FROM keys WHERE key=? AND value IS NOT NULL", key, err);
	if (!statement)
		return err->status;
	int code = sqlite3_step(statement);
	enum status status = STATUS_OK;
	entry->key = strdup(key);
	if (!entry->key || (code == SQLITE_ROW && !copy_value(entry, statement, 0, 1)))
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
	else if (code != SQLITE_ROW && code != SQLITE_DONE)
		status = session_failed(session, "read", code, err);
	sqlite3_finalize(statement);
	return status;
}

static enum status put_one(struct session *session, const struct store_op *op, struct error *err)
{
	int changes;
	sqlite3_stmt *statement = prepare_for_key(session,
		"INSERT INTO keys(key, value, revision) VALUES(?1, ?2, ?3) ON CONFLICT(key) "
		"DO UPDATE SET value=excluded.value, revision=excluded.revision",
		op->key, err);
	if (!statement)
		return err->status;
	if (op->length)
		sqlite3_bind_blob(statement, 2, op->value, (int)op->length, SQLITE_STATIC);
	else
		sqlite3_bind_zeroblob(statement, 2, 0);
	sqlite3_bind_int64(statement, 3, session->revision + 1);
	session->changed = true;
	return finish(session, statement, &changes, err);
}

static enum status delete_one(struct session *session, const char *key, struct error *err)
{
	int changes;
	sqlite3_stmt *statement = prepare_for_key(session,
		"UPDATE keys SET value=NULL, revision=?2 WHERE key=?1 AND value IS NOT NULL", key,
		err);
	if (!statement)
		return err->status;
	sqlite3_bind_int64(statement, 2, session->revision + 1);
	enum status status = finish(session, statement, &changes, err);
	session->changed |= status == STATUS_OK && changes > 0;
	return status;
}

static enum status write_revision(struct session *session, struct error *err)
{
	int changes;
	sqlite3_stmt *statement = session_prepare(session, "UPDATE meta SET revision=?1", err);
	if (!statement)
		return err->status;
	sqlite3_bind_int64(statement, 1, session->revision + 1);
	return finish(session, statement, &changes, err);
}

static bool may_write(const struct store_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ops[i].kind != STORE_GET)
			return true;
	return false;
}

static enum status run_branch(struct session *session, const struct store_op *ops, size_t count,
	struct store_answer *answer, struct error *err)
{
	enum status status = STATUS_OK;
	if (count && !(answer->entries = calloc(count, sizeof(*answer->entries))))
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		switch (ops[i].kind) {
		case STORE_PUT: status = put_one(session, &ops[i], err); break;
		case STORE_DELETE: status = delete_one(session, ops[i].key, err); break;
		case STORE_GET:
			status = get_one(
				session, ops[i].key, &answer->entries[answer->count++], err);
			break;
		}
	}
	if (status == STATUS_OK && session->changed)
		status = write_revision(session, err);
	return status;
}

static enum status sqlite_txn(struct store *base, const struct store_request *request,
	int64_t deadline, struct store_answer *answer, struct error *err)
{
	struct session session;
	bool writes = may_write(request->then, request->then_count) ||
		      may_write(request->otherwise, request->otherwise_count);
	answer->known = true;
	/*
	 * With compares it begins as a reader: of many who claim, all but the winner stay one, and
	 * take no more locks.
	 */
	bool write = writes && !request->compare_count;
	enum status status =
		session_begin(&session, (struct sqlite_store *)base, write, deadline, err);
	if (status != STATUS_OK)
		return status;
	const struct store_op *branch = NULL;
	size_t count = 0;
	for (;;) {
		status = compare_all(
			&session, request->compares, request->compare_count, &answer->held, err);
		if (status != STATUS_OK)
			break;
		branch = answer->held ? request->then : request->otherwise;
		count = answer->held ? request->then_count : request->otherwise_count;
		if (session.write || !may_write(branch, count))
			break;
		status = session_upgrade(&session, err);
		if (status != STATUS_OK)
			break;
	}
	if (status == STATUS_OK)
		status = run_branch(&session, branch, count, answer, err);
	answer->revision = session.revision + session.changed;
	return session_end(&session, status, &answer->known, err);
}

/*
 * The WHERE clause of a range: ?1 its lower bound, ?2 its upper one, ?3 since. A prefix that ends
 * in
 * '/' is a directory, and does not contain itself.
 */
struct bounds {
	const char *lower;
	size_t lower_length;
	bool exclusive;
	char upper[STORE_KEY_MAX];
	size_t upper_length; /* 0: none */
};

static void find_bounds(const char *prefix, const char *after, struct bounds *bounds)
{
	size_t length = strlen(prefix);
	bounds->lower = prefix;
	bounds->lower_length = length;
	bounds->exclusive = length && prefix[length - 1] == '/';
	if (after && strcmp(after, prefix) >= 0) {
		bounds->lower = after;
		bounds->lower_length = strlen(after);
		bounds->exclusive = true;
	}
	/* The first key behind all that begin with prefix. */
	bounds->upper_length = length;
	memcpy(bounds->upper, prefix, length);
	while (bounds->upper_length &&
		(unsigned char)bounds->upper[bounds->upper_length - 1] == 0xff)
		bounds->upper_length--;
	if (bounds->upper_length)
		bounds->upper[bounds->upper_length - 1]++;
}

/* SELECT|DELETE ... FROM keys, restricted to the bounds; tail may follow. */
static sqlite3_stmt *prepare_for_bounds(struct session *session, const char *head,
	const struct bounds *bounds, store_revision since, const char *tail, struct error *err)
{
	char sql[320];
	snprintf(sql, sizeof(sql), "%s%s WHERE key %s ?1%s%s %s", head,
		/* What changed lately is little, what lies under a prefix may be much. */
		since ? " INDEXED BY keys_revision" : "",
		bounds->exclusive ? ">" : ">=", bounds->upper_length ? " AND key < ?2" : "",
		since ? " AND revision > ?3" : "", tail);
	sqlite3_stmt *statement = session_prepare(session, sql, err);
	if (!statement)
		return NULL;
	if (bounds->lower_length)
		sqlite3_bind_blob(
			statement, 1, bounds->lower, (int)bounds->lower_length, SQLITE_STATIC);
	else
		sqlite3_bind_zeroblob(statement, 1, 0);
	if (bounds->upper_length)
		sqlite3_bind_blob(
			statement, 2, bounds->upper, (int)bounds->upper_length, SQLITE_STATIC);
	if (since)
		sqlite3_bind_int64(statement, 3, since);
	return statement;
}

/* One more entry of a list. */
static enum status add_entry(
	struct store_answer *answer, size_t *capacity, sqlite3_stmt *statement, struct error *err)
{
	if (answer->count == *capacity) {
		size_t more = *capacity ? *capacity * 2 : 16;
		struct store_entry *entries = realloc(answer->entries, more * sizeof(*entries));
		if (!entries)
			return error_set(err, STATUS_TEMPORARY, "out of memory");
		answer->entries = entries;
		*capacity = more;
	}
	struct store_entry *entry = &answer->entries[answer->count++];
	*entry = (struct store_entry){0};
	entry->key = strndup(
		sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0));
	if (!entry->key || !copy_value(entry, statement, 1, 2))
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	return STATUS_OK;
}

static enum status sqlite_list(struct store *base, const struct store_range *range,
	int64_t deadline, struct store_answer *answer, struct error *err)
{
	struct session session;
	struct bounds bounds;
	size_t capacity = 0;
	int code = SQLITE_ERROR;
	enum status status =
		session_begin(&session, (struct sqlite_store *)base, false, deadline, err);
	if (status != STATUS_OK)
		return status;
	find_bounds(range->prefix, range->after, &bounds);
	sqlite3_stmt *statement =
		prepare_for_bounds(&session, "SELECT key, value, revision FROM keys", &bounds,
			range->since, "AND value IS NOT NULL ORDER BY key LIMIT ?4", err);
	if (!statement) {
		status = err->status;
	} else {
		sqlite3_bind_int64(statement, 4, (int64_t)range->limit + 1);
		while (status == STATUS_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
			if (answer->count == range->limit) {
				answer->more = true;
				code = SQLITE_DONE;
				break;
			}
			status = add_entry(answer, &capacity, statement, err);
		}
		if (status == STATUS_OK && code != SQLITE_DONE)
			status = session_failed(&session, "read", code, err);
		sqlite3_finalize(statement);
	}
	answer->revision = session.revision;
	return session_end(&session, status, &answer->known, err);
}

enum status sqlite_changed(struct sqlite_store *store, const char *prefix, store_revision since,
	int64_t deadline, bool *changed, store_revision *revision, struct error *err)
{
	struct session session;
	struct bounds bounds;
	bool known;
	enum status status = session_begin(&session, store, false, deadline, err);
	if (status != STATUS_OK)
		return status;
	*revision = session.revision;
	*changed = false;
	if (session.revision > since) {
		find_bounds(prefix, NULL, &bounds);
		/* since 0 asks for any key ever put; keep to the index all the same. */
		sqlite3_stmt *statement = prepare_for_bounds(
			&session, "SELECT 1 FROM keys", &bounds, since, "LIMIT 1", err);
		int code = statement ? sqlite3_step(statement) : SQLITE_ERROR;
		if (!statement)
			status = err->status;
		else if (code != SQLITE_ROW && code != SQLITE_DONE)
			status = session_failed(&session, "read", code, err);
		else
			*changed = code == SQLITE_ROW;
		sqlite3_finalize(statement);
	}
	return session_end(&session, status, &known, err);
}

static enum status sqlite_purge(struct store *base, const char *prefix,
	const struct store_compare *compares, size_t compare_count, int64_t deadline,
	struct error *err)
{
	struct session session;
	struct bounds bounds;
	bool hold = false, known;
	int changes;
	enum status status =
		session_begin(&session, (struct sqlite_store *)base, true, deadline, err);
	if (status != STATUS_OK)
		return status;
	status = compare_all(&session, compares, compare_count, &hold, err);
	if (status == STATUS_OK && hold) {
		find_bounds(prefix, NULL, &bounds);
		sqlite3_stmt *statement =
			prepare_for_bounds(&session, "DELETE FROM keys", &bounds, 0, "", err);
		status = statement ? finish(&session, statement, &changes, err) : err->status;
	}
	status = session_end(&session, status, &known, err);
	return status == STATUS_OK && !hold ? STATUS_NO : status;
}

const struct store_backend store_sqlite = {
	.scheme = "sqlite",
	.open = sqlite_open,
	.close = sqlite_close,
	.txn = sqlite_txn,
	.list = sqlite_list,
	.wait = watch_wait,
	.beats_prepare = beats_prepare,
	.beat = beats_write,
	.beat_read = beats_read,
	.beats_remove = beats_remove,
	.purge = sqlite_purge,
};
