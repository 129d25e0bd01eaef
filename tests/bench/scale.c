/* SPDX-License-Identifier: MIT */
/*
 * scale [OPTION]... WHAT DIR STORE...: what one run with many agents takes on this machine. Starts
 * one preempt-run for each task, or for --copies tasks, on the stores in turn (the same file
 * through several mounts), waits until all have joined and called preempt_step, and then, by WHAT:
 *
 *   end      waits until all trainings have ended by themselves
 *   preempt  sends TERM to the first agent
 *   death    kills the agent in the middle with KILL
 *   kills    sends TERM to the first agent, and kills others at random moments of the second after
 * it
 *
 *   -n N             agents (4)
 *   --copies L       tasks of each agent (1)
 *   --limit S        seconds that each phase may take (120); then all are killed
 *   --settle MS      between the last first step and what is done then (1000)
 *   --kill N         so many are killed (16)
 *   --seed N         of the random moments
 *   --trainer FILE   tests/support/trainers/count
 *   --steps N, --step-ms MS   of each trainer (1000000, 200)
 *   --option TEXT    a further option of preempt-run; may be repeated
 *
 * DIR must be empty; what it keeps there (boards, the trainers' files) best lies in memory. Prints
 * one line of names and figures, times in milliseconds, "-" where there is none:
 *
 *   join     from the first start to the first step of all
 *   hold     from the notice to `hold` on the boards of all; decided: until each says where to stop
 *   gone     from the notice, the kill or the end of the last training until all agents are gone
 *   cpu      seconds of processor time of all processes from there on; cpu_join: before
 *   after    transactions that changed something after the join, for each agent, on average
 *   codes    exit codes, each with how many agents; wrong: so many have another than expected
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
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/store.h"

enum { AGENTS_MOST = 2048, WATCHES_MOST = 32768, OPTIONS_MOST = 16 };

struct agent {
	pid_t pid;
	/* Instants, 0: not yet. When the last of its boards had a step, `hold` and an order. */
	double stepped, held, decided, gone;
	int steps, holds, orders; /* boards with each */
	double ended;		  /* its training has ended by itself */
	int code;
	bool killed; /* by us, as WHAT says */
};

static struct agent agents[AGENTS_MOST];
static int count = 4, copies = 1;
static char *boards[WATCHES_MOST]; /* their paths, by their watches */
static struct agent *owners[WATCHES_MOST];
static bool holds[WATCHES_MOST], orders[WATCHES_MOST];
static int watcher, parent_watch, end_watch, signals;
static double reaped; /* seconds of processor time of all that were waited for */
static char *directory, **stores;
static int store_count;
static const char *trainer, *step_count = "1000000", *step_ms = "200";
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
	if (orders[watch] || (strncmp(line, "save ", 5) != 0 && strncmp(line, "exit ", 5) != 0))
		return;
	orders[watch] = true;
	if (++agent->orders == copies)
		agent->decided = now();
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
	} else if (event->wd == end_watch) {
		long task = atol(event->name);
		if (task >= 0 && task < count * copies)
			agents[task / copies].ended = now();
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

static int watch_directory(const char *name, uint32_t mask)
{
	int watch = inotify_add_watch(watcher, format("%s/%s", directory, name), mask);
	if (watch < 0)
		die(name);
	return watch;
}

/* ---- Processes ---- */

static double seconds_of(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void reap(void)
{
	struct rusage usage;
	int status;
	for (pid_t pid; (pid = wait4(-1, &status, WNOHANG, &usage)) > 0;) {
		reaped += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
		for (int i = 0; i < count; i++)
			if (agents[i].pid == pid) {
				agents[i].gone = now();
				agents[i].code = WIFEXITED(status) ? WEXITSTATUS(status)
								   : 128 + WTERMSIG(status);
			}
	}
}

/* Call with each process below pid. */
static void each_below(pid_t pid, void (*call)(pid_t))
{
	char path[64], name[400];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *threads = opendir(path);
	for (struct dirent *entry; threads && (entry = readdir(threads));) {
		snprintf(name, sizeof(name), "%s/%s/children", path, entry->d_name);
		FILE *file = *entry->d_name == '.' ? NULL : fopen(name, "re");
		for (int child; file && fscanf(file, "%d", &child) == 1;) {
			each_below(child, call);
			call(child);
		}
		if (file)
			fclose(file);
	}
	if (threads)
		closedir(threads);
}

static double spent; /* by those that live, for processor_time */

/* What pid has had, and its children that it has waited for. */
static void add_time(pid_t pid)
{
	clockid_t clock;
	struct timespec t;
	char name[64], line[1024];
	unsigned long user = 0, system = 0;
	if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0)
		spent += (double)t.tv_sec + (double)t.tv_nsec / 1e9;
	snprintf(name, sizeof(name), "/proc/%d", (int)pid);
	if (!read_start(name, "stat", line, sizeof(line)) || !strrchr(line, ')'))
		return;
	if (sscanf(strrchr(line, ')'),
		    ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu", &user,
		    &system) == 2)
		spent += (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* Of all that we have started, up to now. */
static double processor_time(void)
{
	spent = 0;
	each_below(getpid(), add_time);
	return reaped + spent;
}

static void end_one(pid_t pid)
{
	kill(pid, SIGKILL);
}

static void end_all(void)
{
	for (int tries = 0; tries < 3000; tries++) {
		each_below(getpid(), end_one);
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
		"--steps", step_count, "--step-ms", step_ms, NULL};
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

/* When the last of those that were not killed came to the moment at this offset; 0: not all did. */
static double last_of(size_t offset)
{
	double last = 0;
	for (int i = 0; i < count; i++) {
		double at = *(const double *)((const char *)&agents[i] + offset);
		if (agents[i].killed)
			continue;
		if (!at)
			return 0;
		last = at > last ? at : last;
	}
	return last;
}

static void print_codes(int expected, int also)
{
	int seen[256] = {0}, wrong = 0;
	const char *comma = "";
	for (int i = 0; i < count; i++) {
		if (agents[i].killed)
			continue;
		if (agents[i].gone)
			seen[agents[i].code & 255]++;
		wrong += !agents[i].gone || (agents[i].code != expected && agents[i].code != also);
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

enum what { WHAT_END, WHAT_PREEMPT, WHAT_DEATH, WHAT_KILLS };

static int kills = 16;
static double limit = 120000, settle = 1000;

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Kill so many others than task 0 at random moments of the second after from. */
static void kill_some(double from)
{
	double moments[AGENTS_MOST];
	for (int i = 0; i < kills; i++)
		moments[i] = from + 1000 * drand48();
	qsort(moments, (size_t)kills, sizeof(*moments), compare);
	for (int i = 0; i < kills; i++) {
		if (await(is_gone, moments[i]))
			return;
		struct agent *victim;
		do
			victim = &agents[1 + (int)(drand48() * (count - 1))];
		while (victim->killed);
		victim->killed = true;
		kill(victim->pid, SIGKILL);
	}
}

static void make_directories(void)
{
	static const char *const names[] = {"boards", "train", "train/end"};
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
	parent_watch = watch_directory("boards", IN_CREATE | IN_ONLYDIR);
	end_watch = watch_directory("train/end", IN_CLOSE_WRITE | IN_ONLYDIR);
}

/* The phase that was late; NULL: none was. */
static const char *late_phase(
	enum what what, double began, double *from, double *before, double *joined)
{
	for (int i = 0; i < count; i++)
		start_agent(i);
	if (!await(has_stepped, began + limit)) {
		say_missing("join", has_stepped);
		return "join";
	}
	if (what != WHAT_END) {
		*joined = revision();
		await(is_never, now() + settle);
		*before = processor_time();
		*from = now();
	}
	if (what == WHAT_PREEMPT || what == WHAT_KILLS)
		kill(agents[0].pid, SIGTERM);
	if (what == WHAT_DEATH) {
		agents[count / 2].killed = true;
		kill(agents[count / 2].pid, SIGKILL);
	}
	if (what == WHAT_KILLS)
		kill_some(*from);
	double deadline = now() + limit;
	if ((what == WHAT_PREEMPT || what == WHAT_KILLS) && !await(is_held, deadline)) {
		say_missing("hold", is_held);
		return "hold";
	}
	if (!await(is_gone, deadline)) {
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

static void run(enum what what)
{
	double before = 0, joined = 0, from = 0, began = now();
	prepare();
	const char *late = late_phase(what, began, &from, &before, &joined);
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
	if (what == WHAT_END)
		from = last_of(offsetof(struct agent, ended));
	print("join", since(began, offsetof(struct agent, stepped)), 0);
	print("hold", since(from, offsetof(struct agent, held)), 1);
	print("decided", since(from, offsetof(struct agent, decided)), 1);
	print("gone", late ? 0 : since(from, offsetof(struct agent, gone)), 1);
	print("cpu", before ? reaped - before : 0, 2);
	print("cpu_join", before, 2);
	print("after", joined && !late ? (last - joined) / count : 0, 2);
	switch (what) {
	case WHAT_END: print_codes(0, 0); break;
	case WHAT_PREEMPT: print_codes(42, 42); break;
	case WHAT_DEATH: print_codes(44, 44); break;
	case WHAT_KILLS: print_codes(42, 43); break;
	}
	printf("late %s missing %d\n", late ? late : "-", without);
}

static bool read_what(const char *word, enum what *what)
{
	static const char *const words[] = {[WHAT_END] = "end",
		[WHAT_PREEMPT] = "preempt",
		[WHAT_DEATH] = "death",
		[WHAT_KILLS] = "kills"};
	for (size_t i = 0; word && i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(word, words[i])) {
			*what = (enum what)i;
			return true;
		}
	return false;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {{"limit", 1, 0, 'l'}, {"settle", 1, 0, 's'},
		{"kill", 1, 0, 'k'}, {"copies", 1, 0, 'c'}, {"seed", 1, 0, 'r'},
		{"trainer", 1, 0, 't'}, {"steps", 1, 0, 'S'}, {"step-ms", 1, 0, 'm'},
		{"option", 1, 0, 'o'}, {0}};
	enum what what = WHAT_END;
	long seed = (long)time(NULL);
	for (int option; (option = getopt_long(argc, argv, "n:", known, NULL)) != -1;) {
		switch (option) {
		case 'n': count = atoi(optarg); break;
		case 'c': copies = atoi(optarg); break;
		case 'l': limit = atof(optarg) * 1000; break;
		case 's': settle = atof(optarg); break;
		case 'k': kills = atoi(optarg); break;
		case 'r': seed = atol(optarg); break;
		case 't': trainer = optarg; break;
		case 'S': step_count = optarg; break;
		case 'm': step_ms = optarg; break;
		case 'o':
			if (option_count < OPTIONS_MOST)
				options[option_count++] = optarg;
			break;
		default: return 2;
		}
	}
	store_count = argc - optind - 2;
	if (store_count < 1 || !trainer || !read_what(argv[optind], &what) ||
		count < (what == WHAT_DEATH ? 2 : 1) || count > AGENTS_MOST || copies < 1 ||
		kills < 0 || (what == WHAT_KILLS && kills >= count)) {
		fprintf(stderr, "usage: scale [OPTION]... end|preempt|death|kills DIR STORE...\n");
		return 2;
	}
	directory = argv[optind + 1];
	stores = argv + optind + 2;
	srand48(seed);
	run(what);
	return 0;
}
