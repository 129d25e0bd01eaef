/* SPDX-License-Identifier: MIT */
/* Which line of a command's stderr says why it failed. */
#include "agent/children/error_line.h"

#include "unit.h"

/* The best of these lines, ended by NULL, one each second, the command ending with the last. */
static const char *best(const char *const *lines)
{
	static struct error_line state;
	int64_t now = 1000;
	state = (struct error_line){0};
	for (; *lines; lines++)
		error_line_take(&state, *lines, now += 1000);
	return error_line_best(&state, now);
}

#define BEST(...)     best((const char *const[]){__VA_ARGS__, NULL})
#define IS(text, ...) CHECK(!strcmp(BEST(__VA_ARGS__), text), "%s", BEST(__VA_ARGS__))

#define REPORT                                                                                     \
	"Traceback (most recent call last):", "  File \"/usr/bin/torchrun\", line 8, in <module>", \
		"    sys.exit(main())",                                                            \
		"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",             \
		"============================================================", "train.py FAILED", \
		"------------------------------------------------------------",                    \
		"Failures:", "  <NO_OTHER_FAILURES>",                                              \
		"------------------------------------------------------------",                    \
		"Root Cause (first observed failure):", "[0]:", "  rank      : 1 (local_rank: 1)", \
		"  exitcode  : -9 (pid: 42)",                                                      \
		"  traceback : Signal 9 (SIGKILL) received by PID 42",                             \
		"============================================================"

int main(void)
{
	TEST("the last line, if nothing else is known")
	{
		IS("cannot read the data", "starting", "cannot read the data");
		IS("starting", "starting", "", "----", "12.5 %");
		IS("", "", "====");
	}
	TEST("a harmless line of our own programs explains nothing, their errors do")
	{
		IS("", "ckpt-rotate: there is no directory ck; the answer is \"0\" (--or)");
		IS("cannot read the data", "cannot read the data",
			"preempt-run: notice: signal:TERM: sent by process 7 (sh) of user 0",
			"preempt-run: failed (4); 1 attempt in 0.1 s");
		IS("preempt-run: cannot run ./x: No such file or directory",
			"preempt-run: cannot run ./x: No such file or directory",
			"preempt-run: failed (127); 1 attempt in 0.1 s");
		IS("ckpt-rotate: disk full", "starting", "ckpt-rotate: disk full");
	}
	TEST("an exception, whatever is said after it")
	{
		IS("ValueError: no loss",
			"Traceback (most recent call last):", "  File \"train.py\", line 3",
			"    raise ValueError", "ValueError: no loss", "cleaning up");
		IS("[rank1]: ValueError: no loss", "[rank1]: Traceback (most recent call last):",
			"[rank1]:   File \"train.py\", line 3, in <module>",
			"[rank0]: Traceback (most recent call last):",
			"[rank1]: ValueError: no loss", "[rank0]: ConnectionError: peer is gone",
			REPORT);
		IS("[default0]:KeyboardInterrupt", "[default0]:Traceback (most recent call last):",
			"[default0]:KeyboardInterrupt", REPORT);
	}
	TEST("the first of a chain is the cause")
	{
		IS("KeyError: 'lr'", "Traceback (most recent call last):", "  File \"a\"",
			"KeyError: 'lr'", "",
			"During handling of the above exception, another exception occurred:", "",
			"Traceback (most recent call last):", "  File \"b\"",
			"RuntimeError: no schedule");
	}
	TEST("torchrun's own exception is not the cause: its report says more")
	{
		IS("  traceback : Signal 9 (SIGKILL) received by PID 42", "starting", REPORT);
	}
	TEST("one that the program has survived does not explain its end")
	{
		struct error_line state = {0};
		error_line_take(&state, "Traceback (most recent call last):", 1000);
		error_line_take(&state, "OSError: retrying", 1000);
		error_line_take(&state, "disk is full", 3600000);
		CHECK(!strcmp(error_line_best(&state, 3600000), "disk is full"));
		error_line_take(&state, "Traceback (most recent call last):", 3601000);
		error_line_take(&state, "OSError: no space", 3601000);
		CHECK(!strcmp(error_line_best(&state, 3602000), "OSError: no space"));
	}
	TEST("what looks like an exception outside of a traceback is a line as any other")
	{
		IS("done: all", "warning: careful", "done: all");
	}
	return unit_end();
}
