/* SPDX-License-Identifier: MIT */
#include "notice/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "notice/source.h"

const struct platform platforms[] = {
	{.name = "generic"},
	{.name = "flux", .title = "Flux", .variable = "FLUX_JOB_ID", .prefix = "flux"},
	{.name = "slurm",
		.title = "Slurm",
		.variable = "SLURM_JOB_ID",
		.source = "slurm",
		.prefix = "slurm",
		.index = "SLURM_ARRAY_TASK_ID",
		.array_job = "SLURM_ARRAY_JOB_ID",
		.scontrol = true,
		.restarts = "SLURM_RESTART_COUNT",
		.note = "submit with --requeue"},
	{.name = "pbs",
		.title = "PBS",
		.variable = "PBS_JOBID",
		.prefix = "pbs",
		.rerun = "qrerun \"$PBS_JOBID\"",
		.note = "submit with -r y"},
	{.name = "lsf",
		.title = "LSF",
		.variable = "LSB_JOBID",
		.signal = "INT",
		.grace = 20000, /* to end a job: INT, 10 s later TERM, 10 s later KILL */
		.prefix = "lsf",
		.index = "LSB_JOBINDEX",
		.no_index = "0",
		.exit_code = 42,
		.note = "submit with -Q \"42\", or have 42 in REQUEUE_EXIT_VALUES"},
	{.name = "sge",
		.title = "Grid Engine",
		.variable = "JOB_ID",
		.also = "SGE_ROOT",
		.prefix = "sge",
		.index = "SGE_TASK_ID",
		.no_index = "undefined",
		.exit_code = 99,
		.restarts = "RESTARTED",
		.note = "submit with -r y; the queue must not forbid rerun"},
	{.name = "condor",
		.variable = "_CONDOR_JOB_AD",
		.exit_code = 85,
		.note = "put checkpoint_exit_code = 85 into the submit file"},
	{.name = "gce",
		.dmi = DMI_PRODUCT,
		.dmi_text = "Google Compute Engine",
		.source = "gce",
		.exit_code = 143},
	{.name = "aws", .dmi = DMI_VENDOR, .dmi_text = "Amazon EC2", .source = "aws"},
	{.name = "azure",
		.dmi = DMI_ASSET_TAG, /* the vendor is the same for any Hyper-V */
		.dmi_text = "7783-7084-3265-9085-8269-3286-77",
		.source = "azure"},
	{.name = "alibaba", .dmi = DMI_PRODUCT, .dmi_text = "Alibaba Cloud", .source = "alibaba"},
	{.name = "k8s",
		.variable = "KUBERNETES_SERVICE_HOST",
		.grace = 30000,
		.exit_code = 42,
		.note = "let podFailurePolicy ignore exit code 42 and fail the Job on 93 (the example in "
			"the documentation of Kubernetes fails it on 42)"},
	{0},
};

static const char *const dmi_words[DMI_FIELDS] = {"", "vendor", "product", "asset tag"};

void platform_inspect(struct platform_signs *signs)
{
	static const char *const files[DMI_FIELDS] = {
		"", "sys_vendor", "product_name", "chassis_asset_tag"};
	*signs = (struct platform_signs){.lookup = getenv};
	for (enum platform_dmi field = DMI_VENDOR; field < DMI_FIELDS; field++) {
		char path[64];
		struct text text = {0};
		snprintf(path, sizeof(path), "/sys/class/dmi/id/%s", files[field]);
		if (file_read_whole(path, 4096, &text, NULL) == STATUS_OK)
			snprintf(signs->dmi[field], sizeof(signs->dmi[field]), "%.*s",
				(int)strcspn(text_string(&text), "\n"), text_string(&text));
		text_release(&text);
	}
}

static bool is_set(const struct platform_signs *signs, const char *variable)
{
	const char *value = signs->lookup(variable);
	return value && *value;
}

bool platform_is_here(const struct platform *platform, const struct platform_signs *signs)
{
	if (platform->dmi)
		return !strncmp(
			signs->dmi[platform->dmi], platform->dmi_text, strlen(platform->dmi_text));
	return platform->variable && is_set(signs, platform->variable) &&
	       (!platform->also || is_set(signs, platform->also));
}

/* Return true if list, words with commas between them, contains word. */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == length && !strncmp(at, word, length))
			return true;
	return false;
}

static void add_word(char *list, size_t size, const char *word)
{
	size_t used = strlen(list);
	if (!has_word(list, word))
		snprintf(list + used, size - used, "%s%s", used ? "," : "", word);
}

static enum status refuse(const char *names, struct error *err)
{
	char known[128] = "auto";
	for (const struct platform *platform = platforms; platform->name; platform++)
		add_word(known, sizeof(known), platform->name);
	return error_set(
		err, STATUS_USAGE, "--platform: \"%s\" is not one or more of %s", names, known);
}

/* Return true if every word is a platform. auto is not: it must be the only word. */
static bool is_known(const char *names)
{
	char copy[128], *rest = copy;
	if (strlen(names) >= sizeof(copy))
		return false;
	strcpy(copy, names);
	for (char *name; (name = strsep(&rest, ","));) {
		const struct platform *platform = platforms;
		while (platform->name && strcmp(platform->name, name))
			platform++;
		if (!platform->name)
			return false;
	}
	return true;
}

enum status platform_choose(const char *names, const struct platform_signs *signs,
	struct platform_choice *choice, struct error *err)
{
	bool found = !strcmp(names, "auto");
	char signals[64] = NOTICE_SIGNALS;
	const char *catcher = "signal";
	struct platform_choice made = {.certain = !found, .grace = -1};
	if (!found && !is_known(names))
		return refuse(names, err);
	/* sources[0] is kept for the signals of all chosen platforms. */
	for (const struct platform *platform = platforms; platform->name; platform++) {
		if (found ? !platform_is_here(platform, signs) : !has_word(names, platform->name))
			continue;
		add_word(made.names, sizeof(made.names), platform->name);
		if (platform->signal)
			add_word(signals, sizeof(signals), platform->signal);
		if (platform->source && !strcmp(platform->source, "slurm"))
			catcher = "slurm";
		else if (platform->source)
			snprintf(made.sources[++made.count], sizeof(made.sources[0]), "%s",
				platform->source);
		if (found)
			continue;
		if (platform->exit_code && platform->exit_code != 42)
			made.exit_code = platform->exit_code;
		if (platform->grace && platform->grace > made.grace)
			made.grace = platform->grace;
		if (platform->exit_code && platform->note)
			made.note = platform->note;
	}
	if (!*made.names)
		strcpy(made.names, "generic");
	snprintf(made.sources[0], sizeof(made.sources[0]), "%s:%s", catcher, signals);
	made.count++;
	*choice = made;
	return STATUS_OK;
}

/* "SLURM_JOB_ID is set" */
static void describe_signs(const struct platform *platform, char *text, size_t size)
{
	if (platform->dmi)
		snprintf(text, size, "DMI %s \"%s\"", dmi_words[platform->dmi], platform->dmi_text);
	else if (platform->variable)
		snprintf(text, size, "%s%s%s set", platform->variable,
			platform->also ? " and " : " is", platform->also ? platform->also : "");
	else
		snprintf(text, size, "only when named");
}

void platform_show(const struct platform_signs *signs, struct text *text)
{
	struct platform_choice choice;
	text_addf(text, "%-8s  %-4s  %-48s  %-10s  %-8s  %-9s  %s\n", "PLATFORM", "HERE",
		"RECOGNISED BY", "ITS SIGNAL", "SOURCE", "EXIT CODE", "GRACE");
	for (const struct platform *platform = platforms; platform->name; platform++) {
		char grace[32] = "unknown", sign[64];
		if (platform->grace)
			snprintf(grace, sizeof(grace), "%llds", (long long)platform->grace / 1000);
		describe_signs(platform, sign, sizeof(sign));
		text_addf(text, "%-8s  %-4s  %-48s  %-10s  %-8s  %-9d  %s\n", platform->name,
			platform_is_here(platform, signs) ? "yes" : "no", sign,
			platform->signal ? platform->signal : "-",
			platform->source ? platform->source : "-",
			platform->exit_code ? platform->exit_code : 42, grace);
	}
	text_add(text, "\nDMI:");
	for (enum platform_dmi field = DMI_VENDOR; field < DMI_FIELDS; field++)
		text_addf(text, "%s %s \"%s\"", field == DMI_VENDOR ? "" : ",", dmi_words[field],
			signs->dmi[field]);
	if (platform_choose("auto", signs, &choice, NULL) != STATUS_OK)
		return;
	text_addf(text, "\nauto is %s, and watches:", choice.names);
	for (size_t i = 0; i < choice.count; i++)
		text_addf(text, " %s", choice.sources[i]);
	text_add(text, "\nsources: ");
	source_list(text);
	text_add(text, "\n");
}
