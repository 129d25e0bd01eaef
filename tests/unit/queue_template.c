/* SPDX-License-Identifier: MIT */
/* How the placeholders in a command's words are filled. */
#include "queue/template.h"

#include <stdlib.h>

#include "unit.h"

enum { WORDS = 5 };

static const char *joined(char *const *words)
{
	static char line[512];
	*line = '\0';
	for (; words && *words; words++) {
		strcat(line, "[");
		strcat(line, *words);
		strcat(line, "]");
	}
	return words ? line : "(null)";
}

static struct template_line line_of(const char *text)
{
	return (struct template_line){.text = text, .length = strlen(text), .number = 5};
}

static void lines(void)
{
	static const struct {
		const char *words[WORDS], *line, *wanted;
	} cases[] = {
		{{"gzip", "{}"}, "a b", "[gzip][a b]"},
		{{"gzip"}, "a b", "[gzip][a b]"},
		{{"cp", "{}", "/to/{}.new"}, "x", "[cp][x][/to/x.new]"},
		{{"{}{}"}, "x", "[xx]"},
		{{"echo", "{{}"}, "x", "[echo][{}][x]"},
		{{"echo", "{{}", "{}"}, "x", "[echo][{}][x]"},
		{{"echo", "{{{}}"}, "x", "[echo][{{}}][x]"},
		{{"echo", "{ }", "{"}, "x", "[echo][{ }][{][x]"},
		{{"echo", "a{}b"}, "", "[echo][ab]"},
		{{"echo"}, "", "[echo][]"},
		{{NULL}, "make all", "[make all]"},
		/* The line is not looked through again ... */
		{{"echo", "{}"}, "{}", "[echo][{}]"},
		{{"echo", "{}"}, "{worker}", "[echo][{{worker}]"},
		{{"echo"}, "a{{worker}", "[echo][a{{{worker}]"},
		{{"echo", "{}"}, "{per-worker:a}", "[echo][{{per-worker:a}]"},
		/* ... except one that is the command itself. */
		{{NULL}, "echo {worker}", "[echo {worker}]"},
		{{"echo", "{worker}"}, "x", "[echo][{worker}][x]"},
		{{"cp", "{1}", "to/{2}.{#}"}, "a b c", "[cp][a][to/b.5]"},
		{{"echo", "{2}"}, "a {worker}", "[echo][{{worker}]"},
		{{"echo", "{{1}", "{{#}", "{{.}"}, "x", "[echo][{1}][{#}][{.}][x]"},
		{{"grep", "[0-9]{2,3}", "a{b}"}, "x", "[grep][[0-9]{2,3}][a{b}][x]"},
		/* Of parallel, and not known here; fields that are not there. */
		{{"echo", "{.}"}, "x", NULL},
		{{"echo", "{/}"}, "x", NULL},
		{{"echo", "{//}"}, "x", NULL},
		{{"echo", "{1.}"}, "x", NULL},
		{{"echo", "{0}"}, "x", NULL},
		{{"echo", "{%}"}, "x", NULL},
		{{"echo", "{3}"}, "a b", NULL},
		{{"{1}"}, "a b", "[a]"},
		{{"{1}"}, "", NULL},
		{{"{2}"}, "  a \t b  ", "[b]"},
		{{"{3}"}, "  a \t b  ", NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char **filled = NULL;
		struct error err = {0};
		const struct template_line line = line_of(cases[i].line);
		enum status status =
			template_fill_line((char *const *)cases[i].words, &line, &filled, &err);
		if (!cases[i].wanted)
			CHECK(status == STATUS_USAGE && !filled && strstr(err.text, "{{"),
				"line %zu is refused: %s", i, err.text);
		else
			CHECK(status == STATUS_OK && !strcmp(joined(filled), cases[i].wanted),
				"line %zu: %s", i, joined(filled));
		template_free(filled);
	}
}

static void workers(void)
{
	static const struct {
		const char *word;
		uint64_t index;
		const char *wanted; /* NULL: refused */
	} cases[] = {
		{"plain", 0, "[plain]"},
		{"", 0, "[]"},
		{"{worker}", 0, "[w-1]"},
		{"a{worker}b{worker}", 0, "[aw-1bw-1]"},
		{"{{worker}", 0, "[{worker}]"},
		{"{Worker} {worker {}", 0, "[{Worker} {worker {}]"},
		{"{per-worker:a,b,c}", 0, "[a]"},
		{"{per-worker:a,b,c}", 1, "[b]"},
		{"{per-worker:a,b,c}", 2, "[c]"},
		{"{per-worker:a,b,c}", 3, "[a]"},
		{"{per-worker:a,b,c}", UINT64_MAX, "[a]"},
		{"x{per-worker:1,2}y{per-worker:3,4}z", 1, "[x2y4z]"},
		{"{per-worker:only}", 7, "[only]"},
		{"{per-worker:a,}", 1, "[]"},
		{"{per-worker:,b}", 0, "[]"},
		{"{{per-worker:a,b}", 1, "[{per-worker:a,b}]"},
		{"{per-worker:}", 0, NULL},
		{"{per-worker:a,b", 0, NULL},
		{"{per-worker:", 0, NULL},
		{"{per-worker:{worker},b}", 0, NULL},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *words[] = {(char *)(uintptr_t)cases[i].word, NULL}, **filled = NULL;
		struct error err = {0};
		enum status status =
			template_fill_worker(words, "w-1", cases[i].index, &filled, &err);
		if (!cases[i].wanted)
			CHECK(status == STATUS_USAGE && !filled && strstr(err.text, cases[i].word),
				"worker %zu is refused: %s", i, err.text);
		else
			CHECK(status == STATUS_OK && !strcmp(joined(filled), cases[i].wanted),
				"worker %zu: %s", i, joined(filled));
		template_free(filled);
	}
}

static void names(void)
{
	static const struct {
		const char *name, *line, *directory, *wanted;
	} cases[] = {
		{"out", "x", "/d", "/d/out"},
		{"out", "x", NULL, "out"},
		{"/o/{}.{id}", "a b", "/d", "/o/a b.7"},
		{"{worker}/{{id}{{worker}{{}", "x", NULL, "w-1/{id}{worker}{}"},
		{"{{{id}{ {i", "x", NULL, "{{id}{ {i"},
		/* Lines and directories are data. */
		{"{}", "{id}{{id}{worker}{}", "/{id}", "/{id}/{id}{{id}{worker}{}"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *once = NULL;
		const struct template_line line = line_of(cases[i].line);
		CHECK_EQ(template_fill_name_line(cases[i].name, &line, &once, NULL), STATUS_OK);
		char *name = template_fill_name(once, cases[i].directory, 7, "w-1");
		CHECK(!strcmp(name, cases[i].wanted), "name %zu: %s", i, name);
		free(once);
		free(name);
	}
}

static void both(void)
{
	TEST("a line ends where its length says")
	{
		char echo[] = "echo", *words[] = {echo, NULL};
		char **filled = NULL;
		const struct template_line cut = {.text = "{worker} and more", .length = 7};
		CHECK_EQ(template_fill_line(words, &cut, &filled, NULL), STATUS_OK);
		CHECK_TEXT(joined(filled), "[echo][{worker]");
		template_free(filled);
	}
	TEST("what was a line comes out of both as it was")
	{
		const char *line = "{worker} {{worker} {per-worker:a,b {}";
		char echo[] = "echo", *words[] = {echo, NULL};
		char **once = NULL, **twice = NULL;
		const struct template_line whole = line_of(line);
		CHECK_EQ(template_fill_line(words, &whole, &once, NULL), STATUS_OK);
		CHECK_EQ(template_fill_worker(once, "w-1", 1, &twice, NULL), STATUS_OK);
		CHECK_TEXT(twice[1], line);
		template_free(once);
		template_free(twice);
	}
}

int main(void)
{
	lines();
	workers();
	names();
	both();
	return unit_end();
}
