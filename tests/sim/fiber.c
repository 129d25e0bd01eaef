/* SPDX-License-Identifier: MIT */
/* The fortified longjmp refuses to jump to another stack. */
#undef _FORTIFY_SOURCE
#include "fiber.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define STACK ((size_t)1 << 20)
#else
#define STACK ((size_t)256 << 10)
#endif
#define PAGE 4096

/*
 * A place at which to continue. setcontext, which makes a system call for the signal mask, only
 * begins a fiber; _setjmp and _longjmp switch. With the sanitizer swapcontext does both.
 */
struct place {
	ucontext_t context;
	jmp_buf jump;
	bool jumps;
};

struct fiber {
	struct place place;
	char *stack; /* of STACK bytes, above a page that cannot be accessed */
	void (*work)(void *context);
	void *argument;
	bool returned;
	struct fiber *next; /* in the list of spare fibers */
};

static struct fiber *spare, *running;
static struct place scheduler;

/* The sanitizer has to know which stack we use. */
#ifdef __SANITIZE_ADDRESS__
/* Memory that a killed process had allocated is not freed: report no leaks. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}
static const void *scheduler_stack;
static size_t scheduler_size;
static void leaving(void **fake, const void *stack, size_t size)
{
	__sanitizer_start_switch_fiber(fake, stack, size);
}
static void arrived(void *fake, const void **from, size_t *size)
{
	__sanitizer_finish_switch_fiber(fake, from, size);
}
#else
static void *const scheduler_stack;
static const size_t scheduler_size;
static void leaving(void **fake, const void *stack, size_t size)
{
	(void)fake, (void)stack, (void)size;
}
#define arrived(fake, from, size) ((void)0)
#endif

__attribute__((noinline)) static void go(struct place *from, struct place *to)
{
#ifdef __SANITIZE_ADDRESS__
	swapcontext(&from->context, &to->context);
#else
	from->jumps = true;
	if (_setjmp(from->jump))
		return;
	if (to->jumps)
		_longjmp(to->jump, 1);
	setcontext(&to->context);
#endif
}

static void enter(void)
{
	struct fiber *self = running;
	arrived(NULL, &scheduler_stack, &scheduler_size);
	self->work(self->argument);
	self->returned = true;
	leaving(NULL, scheduler_stack, scheduler_size);
	go(&self->place, &scheduler);
}

static struct fiber *take_spare(void)
{
	struct fiber *fiber = spare;
	if (fiber) {
		spare = fiber->next;
		return fiber;
	}
	fiber = calloc(1, sizeof(*fiber));
	char *memory = mmap(NULL, STACK + PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (!fiber || memory == MAP_FAILED || mprotect(memory, PAGE, PROT_NONE))
		abort();
	fiber->stack = memory + PAGE;
	return fiber;
}

/* Fill the place at which a fiber with this stack begins. */
__attribute__((noinline)) static void prepare(struct place *place, char *stack)
{
	place->jumps = false;
	getcontext(&place->context);
	place->context.uc_stack.ss_sp = stack;
	place->context.uc_stack.ss_size = STACK;
	place->context.uc_link = NULL;
	makecontext(&place->context, enter, 0);
}

struct fiber *fiber_new(void (*work)(void *context), void *context)
{
	struct fiber *fiber = take_spare();
	fiber->work = work;
	fiber->argument = context;
	fiber->returned = false;
	prepare(&fiber->place, fiber->stack);
	return fiber;
}

bool fiber_run(struct fiber *fiber)
{
	void *fake = NULL;
	running = fiber;
	leaving(&fake, fiber->stack, STACK);
	go(&scheduler, &fiber->place);
	arrived(fake, NULL, NULL);
	running = NULL;
	return fiber->returned;
}

void fiber_pause(void)
{
	void *fake = NULL;
	leaving(&fake, scheduler_stack, scheduler_size);
	go(&running->place, &scheduler);
	arrived(fake, &scheduler_stack, &scheduler_size);
}

void fiber_free(struct fiber *fiber)
{
#ifdef __SANITIZE_ADDRESS__
	ASAN_UNPOISON_MEMORY_REGION(fiber->stack, STACK);
#endif
	fiber->next = spare;
	spare = fiber;
}
