/* SPDX-License-Identifier: MIT */
/*
 * Memory that runs out, at the first allocation and at each of our own in turn: a good manifest is
 * never called a bad one, the program ends with 75. (In the middle of a document json-c does not
 * survive it.)
# asan: no (the sanitizer allocates itself)
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "ckpt/manifest.h"
#include "unit.h"

#ifdef __SANITIZE_ADDRESS__
int main(void)
{
	printf("ok 1 # SKIP the sanitizer allocates itself\n1..1\n");
	return 0;
}
#else
static long countdown = -1; /* allocations until one fails; negative: none does */
static long allocations;

static bool fails(void)
{
	allocations++;
	if (countdown < 0 || countdown--)
		return false;
	errno = ENOMEM;
	return true;
}

/* Before libc. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}

int main(void)
{
	struct manifest manifest = {
		.shard = MANIFEST_NO_SHARD, .step = 3, .attempt = 1, .tasks = 1};
	struct text text = {0};
	struct error err;
	long failed = 0;
	enum status status = STATUS_TEMPORARY;
	for (int i = 0; i < 20; i++) {
		char name[32];
		snprintf(name, sizeof(name), "file-%02d", i);
		CHECK(manifest_add(&manifest, name, 7));
		memset(manifest.files[i].checksum, 'a', 32);
	}
	manifest_write(&manifest, &text);
	allocations = 0;
	json_object_put(json_parse_limited(text_string(&text), text.length, 1 << 20));
	long parsing = allocations;
	/* A program ends with 75; it would not say that the manifest is a bad one. */
	for (long at = 0; status == STATUS_TEMPORARY; at = at ? at + 1 : parsing) {
		int ended;
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			struct manifest read = {0};
			countdown = freopen("/dev/null", "w", stderr) ? at : -1;
			_exit((int)manifest_read(text_string(&text), text.length, &read, &err));
		}
		bool exited = waitpid(child, &ended, 0) == child && WIFEXITED(ended);
		status = exited ? (enum status)WEXITSTATUS(ended) : STATUS_NO;
		failed += status == STATUS_TEMPORARY;
	}
	CHECK(status == STATUS_OK && failed > 20);
	manifest_release(&manifest);
	text_release(&text);
	return unit_end();
}
#endif
