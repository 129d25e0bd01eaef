/* SPDX-License-Identifier: MIT */
#include "notice/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "notice/source.h"

static bool on_slurm(const struct platform_signs *signs)
{
	return signs->slurm;
}

static bool on_lsf(const struct platform_signs *signs)
{
	return signs->lsf;
}

static bool on_sge(const struct platform_signs *signs)
{
	return signs->sge;
}

static bool on_pbs(const struct platform_signs *signs)
{
	return signs->pbs;
}

static bool on_gce(const struct platform_signs *signs)
{
	return !strcmp(signs->product, "Google Compute Engine");
}

static bool on_aws(const struct platform_signs *signs)
{
	return !strcmp(signs->vendor, "Amazon EC2");
}

static bool on_azure(const struct platform_signs *signs)
{
	/* Every machine of Azure has this tag. The vendor is the same for any Hyper-V. */
	return !strcmp(signs->asset_tag, "7783-7084-3265-9085-8269-3286-77");
}

static bool on_alibaba(const struct platform_signs *signs)
{
	return !strncmp(signs->product, "Alibaba Cloud", 13) ||
	       !strncmp(signs->vendor, "Alibaba Cloud", 13);
}

static bool on_kubernetes(const struct platform_signs *signs)
{
	return signs->kubernetes;
}

const struct platform platforms[] = {
	{"generic", NULL, NULL, 42, -1, NULL, "only when named", NULL},
	{"slurm", NULL, "slurm", 42, -1, NULL, "SLURM_JOB_ID is set", on_slurm},
	/* To end a job: INT, 10 s later TERM, 10 s later KILL. */
	{"lsf", "INT", NULL, 42, 20000, NULL, "LSB_JOBID is set", on_lsf},
	{"sge", NULL, NULL, 99, -1, NULL, "JOB_ID and SGE_ROOT are set", on_sge},
	{"pbs", NULL, NULL, 42, -1, NULL, "PBS_JOBID is set", on_pbs},
	{"gce", NULL, "gce", 143, -1, NULL, "DMI product \"Google Compute Engine\"", on_gce},
	{"aws", NULL, "aws", 42, -1, NULL, "DMI vendor \"Amazon EC2\"", on_aws},
	{"azure", NULL, "azure", 42, -1, NULL, "DMI asset tag of Azure", on_azure},
	{"alibaba", NULL, "alibaba", 42, -1, NULL, "DMI product \"Alibaba Cloud\"", on_alibaba},
	{"k8s", NULL, NULL, 42, 30000,
		"Kubernetes' documentation uses exit code 42 in podFailurePolicy for jobs that "
		"have failed permanently: yours must not",
		"KUBERNETES_SERVICE_HOST is set", on_kubernetes},
	{0},
};

static void read_dmi(const char *name, char *to, size_t size)
{
	char path[64];
	struct text text = {0};
	snprintf(path, sizeof(path), "/sys/class/dmi/id/%s", name);
	if (file_read_whole(path, 4096, &text, NULL) == STATUS_OK)
		snprintf(to, size, "%.*s", (int)strcspn(text_string(&text), "\n"),
			text_string(&text));
	text_release(&text);
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);
	return value && *value;
}

void platform_inspect(struct platform_signs *signs)
{
	*signs = (struct platform_signs){.slurm = is_set("SLURM_JOB_ID"),
		.lsf = is_set("LSB_JOBID"),
		.sge = is_set("JOB_ID") && is_set("SGE_ROOT"),
		.pbs = is_set("PBS_JOBID"),
		.kubernetes = is_set("KUBERNETES_SERVICE_HOST")};
	read_dmi("sys_vendor", signs->vendor, sizeof(signs->vendor));
	read_dmi("product_name", signs->product, sizeof(signs->product));
	read_dmi("chassis_asset_tag", signs->asset_tag, sizeof(signs->asset_tag));
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
		if (found ? !platform->here || !platform->here(signs)
			  : !has_word(names, platform->name))
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
		if (platform->exit_code != 42)
			made.exit_code = platform->exit_code;
		if (platform->grace > made.grace)
			made.grace = platform->grace;
		if (platform->warning)
			made.warning = platform->warning;
	}
	if (!*made.names)
		strcpy(made.names, "generic");
	snprintf(made.sources[0], sizeof(made.sources[0]), "%s:%s", catcher, signals);
	made.count++;
	*choice = made;
	return STATUS_OK;
}

void platform_show(const struct platform_signs *signs, struct text *text)
{
	struct platform_choice choice;
	text_addf(text, "%-8s  %-4s  %-42s  %-10s  %-8s  %-9s  %s\n", "PLATFORM", "HERE",
		"RECOGNISED BY", "ITS SIGNAL", "SOURCE", "EXIT CODE", "GRACE");
	for (const struct platform *platform = platforms; platform->name; platform++) {
		char grace[32] = "unknown";
		if (platform->grace >= 0)
			snprintf(grace, sizeof(grace), "%llds", (long long)platform->grace / 1000);
		text_addf(text, "%-8s  %-4s  %-42s  %-10s  %-8s  %-9d  %s\n", platform->name,
			platform->here && platform->here(signs) ? "yes" : "no", platform->sign,
			platform->signal ? platform->signal : "-",
			platform->source ? platform->source : "-", platform->exit_code, grace);
	}
	text_addf(text, "\nDMI: vendor \"%s\", product \"%s\", asset tag \"%s\"\n", signs->vendor,
		signs->product, signs->asset_tag);
	if (platform_choose("auto", signs, &choice, NULL) != STATUS_OK)
		return;
	text_addf(text, "auto is %s, and watches:", choice.names);
	for (size_t i = 0; i < choice.count; i++)
		text_addf(text, " %s", choice.sources[i]);
	text_add(text, "\nsources: ");
	source_list(text);
	text_add(text, "\n");
}
