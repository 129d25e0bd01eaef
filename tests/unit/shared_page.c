/* SPDX-License-Identifier: MIT */
/* The memory that processes share about one file: whose it is, and when it is made again. */
#include "store/machine/shared_page.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

struct page {
	struct shared_page head;
	char text[64];
};

static const struct shared_page_kind kind = {.name = "unit", .size = sizeof(struct page)};

/* Numbers that no file has: several runs at once do not meet. */
static struct shared_page_file file_of(const char *nonce)
{
	return (struct shared_page_file){(dev_t)-1, (ino_t)getpid(), nonce};
}

static struct page *open_page(const char *nonce, int *descriptor, char path[128])
{
	const struct shared_page_file file = file_of(nonce);
	return shared_page_open(&kind, &file, descriptor, path);
}

static void close_page(struct page *page, int descriptor)
{
	if (page)
		munmap(page, sizeof(*page));
	if (descriptor >= 0)
		close(descriptor);
}

/* A new file gets the inode of one that was deleted: it must not find what that one has left. */
static void reused_inode(void)
{
	int old, again, new, last;
	char path[128];
	struct page *first = open_page("aaaa", &old, path);
	if (!CHECK(first != NULL))
		return;
	strcpy(first->text, "of the first file");
	struct page *same = open_page("aaaa", &again, path);
	CHECK(same && !strcmp(same->text, "of the first file"), "another process sees the page");
	close_page(same, again);
	struct page *second = open_page("bbbb", &new, path);
	if (CHECK(second && !*second->text, "a file with another nonce gets a page of its own"))
		strcpy(second->text, "of the second file");
	CHECK(!strcmp(first->text, "of the first file"), "the old page stays what it was");
	same = open_page("bbbb", &last, path);
	CHECK(same && !strcmp(same->text, "of the second file"), "and the new one has the name");
	close_page(same, last);
	close_page(second, new);
	close_page(first, old);
	unlink(path);
}

/* What is under the name and is no page of this kind is not used, and left alone. */
static void foreign(void)
{
	int descriptor;
	char path[128];
	struct stat st;
	struct page *page = open_page("aaaa", &descriptor, path);
	close_page(page, descriptor);
	CHECK(truncate(path, 10) == 0);
	CHECK(open_page("aaaa", &descriptor, path) == NULL && descriptor < 0);
	CHECK(stat(path, &st) == 0 && st.st_size == 10);
	unlink(path);
}

int main(void)
{
	reused_inode();
	foreign();
	return unit_end();
}
