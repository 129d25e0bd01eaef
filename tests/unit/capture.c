/* SPDX-License-Identifier: MIT */
/* A small command is given up in time, also where KILL does not end it. */
#include "base/capture.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit.h"

static pid_t immortal; /* what would have been killed, in D state for all we know */
static bool spared;

/* Before libc. */
int kill(pid_t pid, int number)
{
	if (spared && number == SIGKILL) {
		immortal = -pid;
		return 0;
	}
	return (int)syscall(SYS_kill, pid, number);
}

int main(void)
{
	static char sh[] = "sh", c[] = "-c", text[] = "echo said; exec sleep 1000";
	char *argv[] = {sh, c, text, NULL};
	for (int i = 0; i < 2; i++) {
		struct text output = {0};
		struct error err;
		int code = -1;
		spared = i == 1;
		alarm(300);
		enum status status = capture_run(argv, clock_after(100), &output, &code, &err);
		alarm(0);
		CHECK(status == STATUS_TIMEOUT && code == -1, "given up in time%s",
			i ? ", though it does not die" : "");
		text_release(&output);
	}
	spared = false;
	CHECK(immortal > 0 && kill(immortal, SIGKILL) == 0 &&
		waitpid(immortal, NULL, 0) == immortal);
	return unit_end();
}
