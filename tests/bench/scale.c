/* SPDX-License-Identifier: MIT */
/*
 * scale [OPTION]... DIR STORE...: what a preemption of one run with many agents takes on this
 * machine. Starts one preempt-run for each task, or for --copies tasks, on the stores in turn (the
 * same file through several mounts), waits until all have joined and called preempt_step, sends
 * TERM to the first agent, and waits until all are gone.
 *
 *   -n N             agents (4)
 *   --copies L       tasks of each agent (1)
 *   --limit S        seconds that each phase may take (120); then all are killed
 *   --trainer FILE   tests/support/trainers/count
 *   --option TEXT    a further option of preempt-run; may be repeated
 *
 * DIR must be empty; what it keeps there (boards, the trainers' files) best lies in memory. Prints
 * one line of names and figures, times in milliseconds, "-" where there is none:
 *
 *   join     from the first start to the first step of all
 *   hold     from the notice to `hold` on the boards of all
 *   gone     from the notice until all agents are gone
 *   after    transactions that changed something after the join, for each agent, on average
 *   codes    exit codes, each with how many agents; wrong: so many have another than 42
 *   late     the phase that took longer than it may, or "-"; missing: so many agents were
 *
 * and says which tasks were missing to stderr. Exit code 0 also then.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/store.h"

#define SETTLE 1000 /* ms between the last first step and the notice */

enum { AGENTS_MOST = 2048, WATCHES_MOST = 32768, OPTIONS_MOST = 16 };

struct agent {
	pid_t pid;
	/* Instants, 0: not yet. When the last of its boards had a step and `hold`. */
	double stepped, held, gone;
	int steps, holds; /* boards with each */
	int code;
};

static struct agent agents[AGENTS_MOST];
static int count = 4, copies = 1;
static char *boards[WATCHES_MOST]; /* their paths, by their watches */
static struct agent *owners[WATCHES_MOST];
static bool holds[WATCHES_MOST];
static int watcher, parent_watch, signals;
static char *directory, **stores;
static int store_count;
static const char *trainer;
static double limit = 120000;
static char *options[OPTIONS_MOST];
static int option_count;

static void die(const char *what)
{
	fprintf(stderr, "scale: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Text that lives as long as we. */
static char *format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *pattern, ...)
{
	char *text;
	va_list arguments;
	va_start(arguments, pattern);
	if (vasprintf(&text, pattern, arguments) < 0)
		die("memory");
	va_end(arguments);
	return text;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- Boards ---- */

static bool read_start(const char *board, const char *name, char *line, size_t size)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", board, name);
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = descriptor < 0 ? -1 : read(descriptor, line, size - 1);
	if (descriptor >= 0)
		close(descriptor);
	line[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* Whose board it is is known from its first step on. */
static void inspect_step(int watch)
{
	char line[128];
	if (owners[watch] || !read_start(boards[watch], "step", line, sizeof(line)) ||
		!read_start(boards[watch], "agent", line, sizeof(line)))
		return;
	pid_t pid = (pid_t)atol(line);
	for (int i = 0; i < count; i++)
		if (agents[i].pid == pid)
			owners[watch] = &agents[i];
	if (!owners[watch])
		return;
	if (++owners[watch]->steps == copies)
		owners[watch]->stepped = now();
	/* Later steps are of no interest. */
	inotify_add_watch(watcher, boards[watch], IN_MOVED_TO);
}

static void look_at_hold(int watch)
{
	char line[128];
	struct agent *agent = owners[watch];
	if (!agent || !read_start(boards[watch], "hold", line, sizeof(line)))
		return;
	if (!holds[watch] && ++agent->holds == copies)
		agent->held = now();
	holds[watch] = true;
}

static void add_board(const char *name)
{
	char *path = format("%s/boards/%s", directory, name);
	int watch = inotify_add_watch(watcher, path, IN_MODIFY | IN_MOVED_TO);
	if (watch < 0 || watch >= WATCHES_MOST)
		return;
	boards[watch] = path;
	inspect_step(watch);
	look_at_hold(watch);
}

static void take_event(const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW) {
		fprintf(stderr, "scale: events of boards were lost\n");
		exit(1);
	}
	if (event->wd < 0 || event->wd >= WATCHES_MOST || !event->len)
		return;
	if (event->wd == parent_watch && !strncmp(event->name, "preempt-board-", 14)) {
		add_board(event->name);
	} else if (boards[event->wd] && !strcmp(event->name, "step")) {
		inspect_step(event->wd);
	} else if (boards[event->wd] && !strcmp(event->name, "hold")) {
		look_at_hold(event->wd);
	}
}

static void take_events(void)
{
	char buffer[65536] __attribute__((aligned(8)));
	ssize_t length = read(watcher, buffer, sizeof(buffer));
	for (ssize_t at = 0; at < length;) {
		const struct inotify_event *event = (const void *)(buffer + at);
		take_event(event);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
}

/* ---- Processes ---- */

static void reap(void)
{
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		for (int i = 0; i < count; i++)
			if (agents[i].pid == pid) {
				agents[i].gone = now();
				agents[i].code = WIFEXITED(status) ? WEXITSTATUS(status)
								   : 128 + WTERMSIG(status);
			}
}

/* Kill each process below pid. */
static void kill_below(pid_t pid)
{
	char path[64], name[400];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *threads = opendir(path);
	for (struct dirent *entry; threads && (entry = readdir(threads));) {
		snprintf(name, sizeof(name), "%s/%s/children", path, entry->d_name);
		FILE *file = *entry->d_name == '.' ? NULL : fopen(name, "re");
		for (int child; file && fscanf(file, "%d", &child) == 1;) {
			kill_below(child);
			kill(child, SIGKILL);
		}
		if (file)
			fclose(file);
	}
	if (threads)
		closedir(threads);
}

static void end_all(void)
{
	for (int tries = 0; tries < 3000; tries++) {
		kill_below(getpid());
		reap();
		if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
			return;
		poll(NULL, 0, 10);
	}
	fprintf(stderr, "scale: there are processes that cannot be killed\n");
}

static void start_agent(int task)
{
	const char *store = stores[task % store_count];
	char *argv[32 + OPTIONS_MOST];
	int n = 0;
	const char *const words[] = {"preempt-run", "-q", "--store", store, "--run", "scale",
		"--task", format("%d", task), "--tasks", format("%d", count), "--board",
		format("%s/boards", directory), "-n", format("%d", copies)};
	const char *const command[] = {"--", trainer, "--dir", format("%s/train", directory),
		"--steps", "1000000", "--step-ms", "200", NULL};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		argv[n++] = (char *)(uintptr_t)words[i];
	for (int i = 0; i < option_count; i++)
		argv[n++] = options[i];
	for (size_t i = 0; i < sizeof(command) / sizeof(*command); i++)
		argv[n++] = (char *)(uintptr_t)command[i];
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 1, format("%s/said.%d", directory, task),
		O_WRONLY | O_CREAT | O_APPEND, 0600);
	posix_spawn_file_actions_adddup2(&files, 1, 2);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	errno = posix_spawnp(&agents[task].pid, argv[0], &files, &attributes, argv, environ);
	if (errno)
		die(argv[0]);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
}

/* ---- Waiting ---- */

static bool has_stepped(const struct agent *agent)
{
	return agent->stepped || agent->gone;
}

static bool is_held(const struct agent *agent)
{
	return agent->held || agent->gone;
}

static bool is_gone(const struct agent *agent)
{
	return agent->gone != 0;
}

/* No process is waited for: the time passes. */
static bool is_never(const struct agent *agent)
{
	(void)agent;
	return false;
}

static void take_signals(void)
{
	struct signalfd_siginfo info;
	while (read(signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		end_all();
		exit(128 + (int)info.ssi_signo);
	}
	reap();
}

static int missing(bool (*there)(const struct agent *))
{
	int without = 0;
	for (int i = 0; i < count; i++)
		without += !there(&agents[i]);
	return without;
}

/* Until all are there, or until the deadline: false. */
static bool await(bool (*there)(const struct agent *), double deadline)
{
	while (missing(there)) {
		double left = deadline - now();
		if (left <= 0)
			return false;
		struct pollfd polled[] = {
			{.fd = signals, .events = POLLIN}, {.fd = watcher, .events = POLLIN}};
		poll(polled, 2, (int)left + 1);
		if (polled[1].revents)
			take_events();
		if (polled[0].revents)
			take_signals();
	}
	return true;
}

/* ---- What is printed ---- */

static void say_missing(const char *phase, bool (*there)(const struct agent *))
{
	int said = 0;
	fprintf(stderr, "scale: %s: %d of %d are missing: tasks", phase, missing(there), count);
	for (int i = 0; i < count && said < 8; i++)
		if (!there(&agents[i])) {
			fprintf(stderr, " %d", i);
			said++;
		}
	fprintf(stderr, "%s\n", missing(there) > said ? " ..." : "");
}

/* "NAME FIGURE ", "-" for the figure where it is not above 0. */
static void print(const char *name, double figure, int digits)
{
	if (figure > 0)
		printf("%s %.*f ", name, digits, figure);
	else
		printf("%s - ", name);
}

/* When the last came to the moment at this offset; 0: not all did. */
static double last_of(size_t offset)
{
	double last = 0;
	for (int i = 0; i < count; i++) {
		double at = *(const double *)((const char *)&agents[i] + offset);
		if (!at)
			return 0;
		last = at > last ? at : last;
	}
	return last;
}

static void print_codes(void)
{
	int seen[256] = {0}, wrong = 0;
	const char *comma = "";
	for (int i = 0; i < count; i++) {
		if (agents[i].gone)
			seen[agents[i].code & 255]++;
		wrong += !agents[i].gone || agents[i].code != 42;
	}
	printf("codes ");
	for (int code = 0; code < 256; code++)
		if (seen[code]) {
			printf("%s%dx%d", comma, seen[code], code);
			comma = ",";
		}
	printf("%s wrong %d ", *comma ? "" : "-", wrong);
}

/*
 * The revision of the store: how many transactions have changed something. 0: it does not answer.
 */
static double revision(void)
{
	struct store *store;
	struct store_answer answer = {0};
	struct error err = {0};
	const struct store_range nothing = {.prefix = "none/", .limit = 1};
	double found = 0;
	if (store_open(&store, stores[0], STORE_READ_ONLY, clock_after(30000), &err) != STATUS_OK)
		return 0;
	if (store_list(store, &nothing, &answer, &err) == STATUS_OK)
		found = (double)answer.revision;
	store_answer_release(&answer);
	store_close(store);
	return found;
}

/* ---- What is done ---- */

static void make_directories(void)
{
	static const char *const names[] = {"boards", "train"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (mkdir(format("%s/%s", directory, names[i]), 0700) < 0)
			die(names[i]);
}

static void prepare(void)
{
	sigset_t set;
	make_directories();
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* As a launcher would: those of one launch join without reading each other. */
	setenv("PREEMPT_LAUNCH", "scale", 1);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	watcher = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (signals < 0 || watcher < 0)
		die("signals and events");
	/* Trainings whose agent was killed are ours to wait for. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	parent_watch =
		inotify_add_watch(watcher, format("%s/boards", directory), IN_CREATE | IN_ONLYDIR);
	if (parent_watch < 0)
		die("boards");
}

/* The phase that was late; NULL: none was. */
static const char *late_phase(double *from, double *joined)
{
	double began = now();
	for (int i = 0; i < count; i++)
		start_agent(i);
	if (!await(has_stepped, began + limit)) {
		say_missing("join", has_stepped);
		return "join";
	}
	*joined = revision();
	await(is_never, now() + SETTLE);
	*from = now();
	kill(agents[0].pid, SIGTERM);
	if (!await(is_held, *from + limit)) {
		say_missing("hold", is_held);
		return "hold";
	}
	if (!await(is_gone, *from + limit)) {
		say_missing("gone", is_gone);
		return "gone";
	}
	return NULL;
}

/* From the last's moment at this offset back to an instant; 0: there is none. */
static double since(double from, size_t offset)
{
	double last = last_of(offset);
	return from && last ? last - from : 0;
}

static void run(void)
{
	double joined = 0, from = 0, began = now();
	prepare();
	const char *late = late_phase(&from, &joined);
	int without = late ? missing(!strcmp(late, "join")   ? has_stepped
				     : !strcmp(late, "hold") ? is_held
							     : is_gone)
			   : 0;
	double last = revision();
	/* The codes of those that are killed now say nothing. */
	for (int i = 0; i < count; i++)
		if (!agents[i].gone)
			agents[i].pid = -1;
	end_all();
	print("join", since(began, offsetof(struct agent, stepped)), 0);
	print("hold", since(from, offsetof(struct agent, held)), 1);
	print("gone", late ? 0 : since(from, offsetof(struct agent, gone)), 1);
	print("after", joined && !late ? (last - joined) / count : 0, 2);
	print_codes();
	printf("late %s missing %d\n", late ? late : "-", without);
}

int main(int argc, char **argv)
{
	static const struct option known[] = {{"limit", 1, 0, 'l'}, {"copies", 1, 0, 'c'},
		{"trainer", 1, 0, 't'}, {"option", 1, 0, 'o'}, {0}};
	for (int option; (option = getopt_long(argc, argv, "n:", known, NULL)) != -1;) {
		switch (option) {
		case 'n': count = atoi(optarg); break;
		case 'c': copies = atoi(optarg); break;
		case 'l': limit = atof(optarg) * 1000; break;
		case 't': trainer = optarg; break;
		case 'o':
			if (option_count < OPTIONS_MOST)
				options[option_count++] = optarg;
			break;
		default: return 2;
		}
	}
	store_count = argc - optind - 1;
	if (store_count < 1 || !trainer || count < 1 || count > AGENTS_MOST || copies < 1) {
		fprintf(stderr, "usage: scale [OPTION]... DIR STORE...\n");
		return 2;
	}
	directory = argv[optind];
	stores = argv + optind + 1;
	run();
	return 0;
}
