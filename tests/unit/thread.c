/* SPDX-License-Identifier: MIT */
/*
 * A thread that is not waited for to its end: what it uses stays, and is no leak to the sanitizer.
 */
#include "base/process/thread.h"

#include <stdlib.h>
#include <unistd.h>

#include "unit.h"

struct context {
	int go[2];
	bool was_told;
};

static void *wait_for_a_byte(void *argument)
{
	struct context *context = argument;
	char byte;
	context->was_told = read(context->go[0], &byte, 1) == 1;
	return NULL;
}

static struct context *start(pthread_t *thread)
{
	struct context *context = calloc(1, sizeof(*context));
	if (!context || pipe(context->go) != 0 ||
		thread_start(thread, wait_for_a_byte, context) != 0)
		exit(99);
	return context;
}

int main(void)
{
	pthread_t thread;
	TEST("a thread that ends is joined")
	{
		struct context *context = start(&thread);
		CHECK_EQ(write(context->go[1], "x", 1), 1);
		CHECK(thread_join(thread, context, 60000));
		CHECK(context->was_told);
		free(context);
	}
	TEST("a thread that goes on is not joined; its context stays when it has ended")
	{
		struct context *context = start(&thread);
		int go = context->go[1];
		CHECK(!thread_join(thread, context, 0));
		context = NULL;
		CHECK_EQ(write(go, "x", 1), 1);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
	return unit_end();
}
