/* SPDX-License-Identifier: MIT */
/*
 * The files in the meeting directory: KIND.SESSION.NONCE[.MORE], NONCE is that of who wrote it:
 *   hello.S.N.SEQUENCE	 N lives; holds who that is
 *   call.S.N.T		 N's call number T; holds members and scratch
 *   yes.S.N.LEADER.T	 N accepts it
 *   go.S.N.T		 all have
 */
#include "store/doctor_meet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "store/doctor_peer.h"
#include "store/doctor_place.h"

/* All in milliseconds. */
#define BEAT_EVERY  100
#define SCAN_EVERY  20
#define LIVES_FOR   5000 /* since the last change */
#define CALL_FOR    5000
#define OLD_SECONDS 600
#define REMEMBERED  3000 /* for how long a mount may say that a directory is there which is not */

enum state { SEARCHING, CALLING, ACCEPTED, MET };

/* What one meeting goes through. */
struct search {
	struct doctor_meeting *meeting;
	const char *directory;
	uint64_t nodes;
	enum state state;
	uint64_t call; /* number of ours, or of the one accepted */
	char leader[17];
	int64_t until; /* of a call */
	int64_t beat_at;
	char refused[17]; /* whose call number refused_call we gave up */
	uint64_t refused_call;
	/* Seen in this scan. */
	uint64_t accepted; /* how many of our members said yes to our call */
	bool call_there, go_there;
	char caller[17]; /* the one that calls us; empty: none */
	uint64_t caller_call;
	struct json_object *called; /* what that call says */
};

static void hash_session(const char *session, uint64_t nodes, char text[17])
{
	/* FNV-1a: no secret, only one name for one launch. */
	uint64_t hash = 14695981039346656037u ^ nodes;
	for (; *session; session++)
		hash = (hash ^ (unsigned char)*session) * 1099511628211u;
	snprintf(text, 17, "%016llx", (unsigned long long)hash);
}

static void file_path(const struct doctor_meeting *meeting, char path[PATH_MAX], const char *kind,
	const char *nonce, const char *more)
{
	if (snprintf(path, PATH_MAX, "%s/%s.%s.%s%s%s", meeting->path, kind, meeting->session,
		    nonce, *more ? "." : "", more) >= PATH_MAX)
		path[0] = '\0';
}

static void numbered_path(const struct doctor_meeting *meeting, char path[PATH_MAX],
	const char *kind, const char *nonce, uint64_t number)
{
	char digits[24];
	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
	file_path(meeting, path, kind, nonce, digits);
}

static enum status make_directory(struct doctor_meeting *meeting, struct error *err)
{
	struct stat st;
	if (mkdir(meeting->path, 0700) < 0 && errno != EEXIST) {
		int number = errno;
		return error_set(err, error_status_of_errno(number), "cannot make %s: %s%s",
			meeting->path, strerror(number), lock_cure(number));
	}
	if (lstat(meeting->path, &st) < 0)
		return errno == ENOENT
			       ? STATUS_NO
			       : error_set(err, error_status_of_errno(errno),
					 "cannot look at %s: %s", meeting->path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return error_set(err, STATUS_PERMISSION,
			"%s is not a directory of ours: not used; remove it", meeting->path);
	return STATUS_OK;
}

static enum status write_message(const char *path, struct json_object *object, struct error *err)
{
	const char *line = json_line(object);
	return file_write_whole(path, line, strlen(line), 0600, false, err);
}

/* Whoever reads it before it is whole reads it again. 0 or an errno. */
static int make_file(const char *path, const char *content)
{
	int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (descriptor < 0)
		return errno;
	int number = file_write_all(descriptor, content, strlen(content)) < 0 ? errno : 0;
	if (close(descriptor) < 0 && number == 0)
		number = errno;
	return number;
}

static enum status say_hello(struct doctor_meeting *meeting, struct error *err)
{
	char path[PATH_MAX];
	struct process_identity self = {0};
	enum status status = process_identify(0, &self, err);
	struct json_object *object = json_object_new_object();
	json_put_text(object, "host", self.host);
	json_put_text(object, "boot", self.boot);
	json_put_unsigned(object, "namespace", self.pid_namespace);
	json_put_signed(object, "pid", self.pid);
	json_put_unsigned(object, "start", self.start);
	numbered_path(meeting, path, "hello", meeting->nonce, ++meeting->sequence);
	/*
	 * Whoever left last took the directory along, and that it was there may be remembered by
	 * our mount for a while.
	 */
	for (int64_t deadline = clock_after(REMEMBERED); status == STATUS_OK;) {
		const char *line = json_line(object);
		status = make_directory(meeting, err);
		if (status != STATUS_OK && status != STATUS_NO)
			break;
		int number = status == STATUS_NO ? ENOENT : make_file(path, line);
		if (number == 0)
			break;
		status = STATUS_OK;
		if ((number != ENOENT && number != ESTALE) || clock_now() >= deadline)
			status = error_set(err, error_status_of_errno(number),
				"cannot make %s: %s%s", path, strerror(number), lock_cure(number));
		else
			clock_sleep_until(clock_after(SCAN_EVERY));
	}
	json_object_put(object);
	return status;
}

static enum status beat(struct doctor_meeting *meeting, struct error *err)
{
	char old[PATH_MAX], new[PATH_MAX];
	numbered_path(meeting, old, "hello", meeting->nonce, meeting->sequence);
	numbered_path(meeting, new, "hello", meeting->nonce, meeting->sequence + 1);
	if (rename(old, new) == 0) {
		meeting->sequence++;
		return STATUS_OK;
	}
	return say_hello(meeting, err);
}

static struct json_object *read_message(const struct doctor_meeting *meeting, const char *name)
{
	char path[PATH_MAX];
	struct text text = {0};
	struct json_object *object = NULL;
	if (snprintf(path, sizeof(path), "%s/%s", meeting->path, name) < (int)sizeof(path) &&
		file_read_whole(path, 65536, &text, NULL) == STATUS_OK)
		object = json_parse(text_string(&text), text.length);
	text_release(&text);
	return object;
}

static struct doctor_member *find(struct doctor_meeting *meeting, const char *nonce)
{
	for (size_t i = 0; i < meeting->known_count; i++)
		if (!strcmp(meeting->known[i].nonce, nonce))
			return &meeting->known[i];
	return NULL;
}

/* Somebody new: read who it is. One of this machine that is gone is a left-over, and removed. */
static void see_new(
	struct doctor_meeting *meeting, const char *name, const char *nonce, uint64_t sequence)
{
	struct doctor_member member = {.sequence = sequence};
	int64_t pid = 0;
	struct json_object *object = read_message(meeting, name);
	if (!object)
		return;
	snprintf(member.nonce, sizeof(member.nonce), "%s", nonce);
	(void)json_copy_text(object, "host", member.host, sizeof(member.host));
	if (json_copy_text(object, "boot", member.identity.boot, sizeof(member.identity.boot)) &&
		json_get_unsigned(object, "namespace", &member.identity.pid_namespace) &&
		json_get_signed(object, "pid", &pid) && pid > 0 && pid <= INT_MAX &&
		json_get_unsigned(object, "start", &member.identity.start))
		member.identity.pid = (pid_t)pid;
	json_object_put(object);
	if (member.identity.pid && process_check(&member.identity) == PROCESS_GONE) {
		char path[PATH_MAX];
		if (snprintf(path, sizeof(path), "%s/%s", meeting->path, name) < (int)sizeof(path))
			unlink(path);
		return;
	}
	struct doctor_member *grown =
		realloc(meeting->known, (meeting->known_count + 1) * sizeof(*grown));
	if (!grown)
		return;
	meeting->known = grown;
	meeting->known[meeting->known_count++] = member;
}

static void see_hello(
	struct doctor_meeting *meeting, const char *name, const char *nonce, uint64_t sequence)
{
	struct doctor_member *member = find(meeting, nonce);
	if (!member) {
		see_new(meeting, name, nonce, sequence);
	} else if (sequence > member->sequence) {
		member->sequence = sequence;
		member->changed = clock_now();
	}
}

/* Which of the nodes that a call names bears this nonce; -1: none, or it is no call of so many. */
static int64_t index_in(const struct json_object *call, uint64_t nodes, const char *nonce)
{
	struct json_object *members;
	const char *scratch;
	if (!json_get_text(call, "scratch", &scratch) || !doctor_scratch_is_name(scratch) ||
		!json_object_object_get_ex(call, "members", &members) ||
		!json_object_is_type(members, json_type_array) ||
		json_object_array_length(members) != nodes)
		return -1;
	for (size_t i = 0; i < json_object_array_length(members); i++) {
		const char *member = json_object_get_string(json_object_array_get_idx(members, i));
		if (member && !strcmp(member, nonce))
			return (int64_t)i;
	}
	return -1;
}

static void see_call(struct search *search, const char *name, const char *nonce, uint64_t number)
{
	struct doctor_meeting *meeting = search->meeting;
	if (search->state == ACCEPTED && !strcmp(nonce, search->leader) && number == search->call)
		search->call_there = true;
	if (search->state == ACCEPTED || strcmp(nonce, meeting->nonce) >= 0 || *search->caller ||
		(!strcmp(nonce, search->refused) && number <= search->refused_call))
		return;
	struct json_object *call = read_message(meeting, name);
	if (call && index_in(call, search->nodes, meeting->nonce) > 0) {
		snprintf(search->caller, sizeof(search->caller), "%s", nonce);
		search->caller_call = number;
		json_object_put(search->called);
		search->called = call;
	} else {
		json_object_put(call);
	}
}

static void see_entry(struct search *search, const char *name)
{
	struct doctor_meeting *meeting = search->meeting;
	char kind[8], session[17], nonce[17], more[64] = "";
	unsigned long long number = 0;
	if (sscanf(name, "%7[a-z].%16[0-9a-f].%16[0-9a-f].%63[0-9a-f.]", kind, session, nonce,
		    more) != 4 ||
		strcmp(session, meeting->session))
		return;
	if (!strcmp(kind, "yes")) {
		char leader[17];
		if (sscanf(more, "%16[0-9a-f].%llu", leader, &number) == 2 &&
			search->state == CALLING && !strcmp(leader, meeting->nonce) &&
			number == search->call)
			search->accepted++;
		return;
	}
	number = strtoull(more, NULL, 10);
	if (!strcmp(kind, "hello") && strcmp(nonce, meeting->nonce))
		see_hello(meeting, name, nonce, number);
	else if (!strcmp(kind, "call"))
		see_call(search, name, nonce, number);
	else if (!strcmp(kind, "go") && search->state == ACCEPTED &&
		 !strcmp(nonce, search->leader) && number == search->call)
		search->go_there = true;
}

static void scan(struct search *search)
{
	search->accepted = 0;
	search->call_there = search->go_there = false;
	search->caller[0] = '\0';
	DIR *entries = opendir(search->meeting->path);
	for (struct dirent *entry; entries && (entry = readdir(entries));)
		see_entry(search, entry->d_name);
	if (entries)
		closedir(entries);
}

static bool lives(const struct doctor_member *member)
{
	return member->changed && clock_now() - member->changed < LIVES_FOR;
}

/* The living, we among them, smallest nonce first; at most most of them. */
static size_t list_living(
	const struct doctor_meeting *meeting, struct doctor_member *list, size_t most)
{
	size_t count = 0;
	struct doctor_member self = {0};
	snprintf(self.nonce, sizeof(self.nonce), "%s", meeting->nonce);
	(void)process_identify(0, &self.identity, NULL);
	snprintf(self.host, sizeof(self.host), "%s", self.identity.host);
	for (size_t i = 0; i <= meeting->known_count; i++) {
		const struct doctor_member *member =
			i < meeting->known_count ? &meeting->known[i] : &self;
		if (member != &self && !lives(member))
			continue;
		size_t at = count < most ? count++ : most;
		for (; at > 0 && strcmp(list[at - 1].nonce, member->nonce) > 0; at--)
			if (at < most)
				list[at] = list[at - 1];
		if (at < most)
			list[at] = *member;
	}
	return count;
}

static void take_back(struct search *search)
{
	char path[PATH_MAX];
	if (search->state != CALLING)
		return;
	numbered_path(search->meeting, path, "call", search->meeting->nonce, search->call);
	unlink(path);
	search->state = SEARCHING;
}

/* If we are the smallest of enough, call them. */
static enum status call(struct search *search, struct error *err)
{
	char path[PATH_MAX];
	struct doctor_meeting *meeting = search->meeting;
	size_t count = list_living(meeting, meeting->members, search->nodes);
	if (count < search->nodes || strcmp(meeting->members[0].nonce, meeting->nonce))
		return STATUS_OK;
	enum status status = STATUS_OK;
	if (!*meeting->scratch)
		status = doctor_scratch_make(search->directory, meeting->scratch, err);
	if (status != STATUS_OK)
		return status;
	struct json_object *object = json_object_new_object();
	struct json_object *members = json_object_new_array();
	for (size_t i = 0; i < count; i++)
		json_object_array_add(members, json_object_new_string(meeting->members[i].nonce));
	json_object_object_add(object, "members", members);
	json_put_text(object, "scratch", meeting->scratch);
	numbered_path(meeting, path, "call", meeting->nonce, ++search->call);
	status = write_message(path, object, err);
	json_object_put(object);
	search->state = CALLING;
	search->until = clock_after(CALL_FOR);
	return status;
}

static enum status accept_call(struct search *search, struct error *err)
{
	char path[PATH_MAX], more[64];
	struct doctor_meeting *meeting = search->meeting;
	take_back(search);
	snprintf(search->leader, sizeof(search->leader), "%s", search->caller);
	search->call = search->caller_call;
	snprintf(more, sizeof(more), "%s.%llu", search->leader, (unsigned long long)search->call);
	file_path(meeting, path, "yes", meeting->nonce, more);
	search->state = ACCEPTED;
	search->until = clock_after(2 * CALL_FOR);
	/* While we have accepted, nobody else counts on us. */
	int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (descriptor < 0)
		return error_set(err, error_status_of_errno(errno), "cannot make %s: %s", path,
			strerror(errno));
	close(descriptor);
	numbered_path(meeting, path, "hello", meeting->nonce, meeting->sequence);
	unlink(path);
	return STATUS_OK;
}

static void finish_as_leader(struct search *search)
{
	char path[PATH_MAX];
	struct doctor_meeting *meeting = search->meeting;
	numbered_path(meeting, path, "go", meeting->nonce, search->call);
	int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (descriptor < 0)
		return;
	close(descriptor);
	meeting->leads = true;
	meeting->index = 0;
	meeting->count = search->nodes;
	search->state = MET;
}

static void finish_as_member(struct search *search)
{
	struct doctor_meeting *meeting = search->meeting;
	struct doctor_member *leader = find(meeting, search->leader);
	meeting->leads = false;
	meeting->index = (uint64_t)index_in(search->called, search->nodes, meeting->nonce);
	meeting->count = search->nodes;
	if (leader)
		meeting->members[0] = *leader;
	if (*meeting->scratch)
		doctor_scratch_remove(search->directory, meeting->scratch);
	(void)json_copy_text(search->called, "scratch", meeting->scratch, sizeof(meeting->scratch));
	search->state = MET;
}

/* The call that we accepted came to nothing. */
static enum status search_again(struct search *search, struct error *err)
{
	char path[PATH_MAX], more[64];
	struct doctor_meeting *meeting = search->meeting;
	snprintf(more, sizeof(more), "%s.%llu", search->leader, (unsigned long long)search->call);
	file_path(meeting, path, "yes", meeting->nonce, more);
	unlink(path);
	snprintf(search->refused, sizeof(search->refused), "%s", search->leader);
	search->refused_call = search->call;
	search->state = SEARCHING;
	return say_hello(meeting, err);
}

static enum status step(struct search *search, struct error *err)
{
	int64_t now = clock_now();
	enum status status = STATUS_OK;
	if (search->state != ACCEPTED && now >= search->beat_at) {
		status = beat(search->meeting, err);
		search->beat_at = now + BEAT_EVERY;
	}
	scan(search);
	if (status != STATUS_OK)
		return status;
	switch (search->state) {
	case SEARCHING: return *search->caller ? accept_call(search, err) : call(search, err);
	case CALLING:
		if (*search->caller)
			return accept_call(search, err);
		if (search->accepted + 1 >= search->nodes)
			finish_as_leader(search);
		else if (now >= search->until)
			take_back(search);
		return STATUS_OK;
	case ACCEPTED:
		if (search->go_there)
			finish_as_member(search);
		else if (!search->call_there || now >= search->until)
			return search_again(search, err);
		return STATUS_OK;
	case MET: break;
	}
	return STATUS_OK;
}

static enum status missing(const struct search *search, struct error *err)
{
	struct doctor_member list[DOCTOR_SIDES_MAX];
	struct text names = {0};
	size_t count = list_living(search->meeting, list, DOCTOR_SIDES_MAX);
	for (size_t i = 0; i < count && i < 8; i++)
		text_addf(&names, "%s%s", i ? ", " : "", list[i].host);
	error_set(err, STATUS_TEMPORARY,
		"%llu nodes were to come to %s, and in time came %zu: %s%s; start the same command "
		"on each, on this same directory",
		(unsigned long long)search->nodes, search->directory, count, text_string(&names),
		count > 8 ? ", ..." : "");
	text_release(&names);
	return STATUS_TEMPORARY;
}

enum status doctor_meet(struct doctor_meeting *meeting, const char *directory, const char *session,
	uint64_t nodes, int64_t deadline, struct error *err)
{
	struct search search = {.meeting = meeting, .directory = directory, .nodes = nodes};
	uint64_t random;
	*meeting = (struct doctor_meeting){0};
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return error_set(err, STATUS_TEMPORARY, "no random numbers: %s", strerror(errno));
	snprintf(meeting->nonce, sizeof(meeting->nonce), "%016llx", (unsigned long long)random);
	hash_session(session ? session : "", nodes, meeting->session);
	if (snprintf(meeting->path, sizeof(meeting->path), "%s/" DOCTOR_MEET "%u", directory,
		    (unsigned)geteuid()) >= (int)sizeof(meeting->path) - 128)
		return error_set(err, STATUS_USAGE, "%s: the path is too long", directory);
	enum status status = say_hello(meeting, err);
	while (status == STATUS_OK && search.state != MET) {
		status = step(&search, err);
		if (status != STATUS_OK || search.state == MET)
			break;
		if (doctor_stop)
			status = error_set(err, STATUS_TEMPORARY, "%s", doctor_stop_why());
		else if (clock_now() >= deadline)
			status = missing(&search, err);
		else
			clock_sleep_until(clock_after(SCAN_EVERY));
	}
	if (status != STATUS_OK && *meeting->scratch)
		doctor_scratch_remove(directory, meeting->scratch);
	json_object_put(search.called);
	return status;
}

void doctor_meet_leave(struct doctor_meeting *meeting)
{
	struct stat ours, theirs;
	bool dated = *meeting->path && stat(meeting->path, &ours) == 0;
	DIR *entries = *meeting->path ? opendir(meeting->path) : NULL;
	for (struct dirent *entry; entries && (entry = readdir(entries));) {
		char session[17], nonce[17];
		if (sscanf(entry->d_name, "%*[a-z].%16[0-9a-f].%16[0-9a-f]", session, nonce) != 2)
			continue;
		/* The directory was changed just now; what is much older was left behind. */
		bool old =
			dated &&
			fstatat(dirfd(entries), entry->d_name, &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
			ours.st_mtime - theirs.st_ctime > OLD_SECONDS;
		struct doctor_member *member = find(meeting, nonce);
		bool gone = member && member->identity.pid &&
			    process_check(&member->identity) == PROCESS_GONE;
		if (!strcmp(nonce, meeting->nonce) || gone || old)
			unlinkat(dirfd(entries), entry->d_name, 0);
	}
	if (entries)
		closedir(entries);
	if (*meeting->path)
		rmdir(meeting->path);
	free(meeting->known);
	meeting->known = NULL;
	meeting->known_count = 0;
}
