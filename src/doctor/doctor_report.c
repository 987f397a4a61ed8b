/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor/doctor_report.c - print for people what this host can enforce
 *
 * Most readers want one line, some want advice, few want the table. The report has that order.
 */
#include "doctor/doctor_report.h"

#include <stdio.h>
#include <string.h>

#include "plan/plan.h"

#define NAME_WIDTH 18
#define STATE_WIDTH 5

#define COLOR_GOOD "\033[32m"
#define COLOR_FAIR "\033[33m"
#define COLOR_BAD "\033[1;31m"
#define COLOR_BOLD "\033[1m"
#define COLOR_OFF "\033[0m"

struct report {
	struct text *out;
	bool has_color;
};

static void print_colored(const struct report *report, const char *color, const char *words)
{
	text_append_format(report->out, "%s%s%s", report->has_color ? color : "", words,
			   report->has_color ? COLOR_OFF : "");
}

static void print_heading(const struct report *report, const char *words)
{
	text_append_char(report->out, '\n');
	print_colored(report, COLOR_BOLD, words);
	text_append_char(report->out, '\n');
}

static void print_indented(const struct report *report, size_t width, const char *lines)
{
	while (*lines) {
		size_t len = strcspn(lines, "\n");

		text_append_format(report->out, "%*s%.*s\n", (int)width, "", (int)len, lines);
		lines += len + (lines[len] == '\n');
	}
}

/* --- the verdict, and what to do ---------------------------------------------------------------------------- */

static void print_verdict(const struct report *report, const struct examination *seen)
{
	switch (seen->best) {
	case RUNG_NAMESPACE:
		print_colored(report, COLOR_GOOD, "Belljar can run full jars here (rung 'namespace').");
		break;
	case RUNG_LANDLOCK:
		print_colored(report, COLOR_FAIR, "Belljar can run jars here, with less isolation (rung 'landlock').");
		break;
	case RUNG_PROCESS:
		print_colored(report, COLOR_BAD, "Belljar cannot isolate commands here (rung 'process' only).");
		break;
	}
	text_append_char(report->out, '\n');
}

static void print_cure(const struct report *report, const struct examination *seen)
{
	const char *words = doctor_place_words(seen->place);
	AUTO_TEXT cure = {0};

	if (seen->best == RUNG_NAMESPACE)
		return;
	doctor_place_cure(seen->place, &cure);
	if (words && cure.len) {
		text_append_format(report->out, "\n%s. To run full jars:\n", words);
		print_indented(report, 2, text_string(&cure));
	} else {
		text_append_string(report->out, "\nTo run full jars, provide what says \"no\" below.\n");
	}
}

static bool has(const struct examination *seen, const char *name)
{
	for (size_t i = 0; i < seen->capabilities.count; i++)
		if (!strcmp(seen->capabilities.items[i].name, name))
			return seen->capabilities.items[i].finding.is_found;
	return false;
}

static void print_limits(const struct report *report, const struct examination *seen)
{
	if (has(seen, "cgroup2") || has(seen, "cgroup1-memory"))
		text_append_string(report->out, "The kernel enforces memory limits exactly (cgroups).\n");
	else
		text_append_string(report->out,
				   "Belljar measures memory itself and may notice an overrun a little late: "
				   "no cgroup is delegated to you.\n");
}

static void print_lacks(const struct report *report, const struct examination *seen)
{
	if (!*doctor_rung_lacks[seen->best])
		return;
	text_append_format(report->out, "\nUntil then a jar here lacks:\n");
	for (const char *const *lack = doctor_rung_lacks[seen->best]; *lack; lack++)
		text_append_format(report->out, "  - %s\n", *lack);
}

/* --- the table ---------------------------------------------------------------------------------------------- */

/* Some values only say that the thing is there, which "yes" says already. */
static bool is_telling(const char *value)
{
	return *value && strcmp(value, "tried") != 0 && strcmp(value, "there") != 0;
}

static void print_capability(const struct report *report, const struct capability *capability)
{
	const struct finding *finding = &capability->finding;

	text_append_format(report->out, "%-*s", NAME_WIDTH, capability->name);
	print_colored(report, finding->is_found ? COLOR_GOOD : COLOR_FAIR, finding->is_found ? "yes" : "no ");
	text_append_format(report->out, "%*s%s", STATE_WIDTH - 3, "", capability->purpose);
	if (is_telling(finding->value))
		text_append_format(report->out, " (%s)", finding->value);
	text_append_char(report->out, '\n');
	print_indented(report, NAME_WIDTH + STATE_WIDTH, finding->remedy);
}

/* --- the proof ---------------------------------------------------------------------------------------------- */

static const char *verdict_words(const struct proof *proof)
{
	if (!proof->is_covered)
		return "not covered";
	switch (proof->verdict) {
	case VERDICT_STOPPED:
		return "stopped";
	case VERDICT_THROUGH:
		return "GOT THROUGH";
	case VERDICT_SKIPPED:
		return "not tried";
	case VERDICT_UNKNOWN:
		return "no answer";
	}
	return "";
}

static void print_proof(const struct report *report, const struct proof *proof)
{
	const char *layer = proof->verdict == VERDICT_STOPPED ? proof->layer : "-";

	text_append_format(report->out, "%-*s%-13s%-14s%-44s %s", NAME_WIDTH, proof->name, verdict_words(proof), layer,
			   proof->how, proof->what);
	if (proof->is_covered && proof->verdict == VERDICT_STOPPED && !proof->is_expected)
		text_append_format(report->out, " (expected: %s)", proof->expected);
	text_append_char(report->out, '\n');
}

static void print_proofs(const struct report *report, const struct examination *seen)
{
	size_t holes = 0, stopped = 0, uncovered = 0;

	text_append_char(report->out, '\n');
	for (size_t i = 0; i < seen->proofs.count; i++) {
		const struct proof *proof = &seen->proofs.items[i];

		print_proof(report, proof);
		holes += doctor_proof_is_hole(proof);
		uncovered += !proof->is_covered;
		stopped += proof->is_covered && proof->verdict == VERDICT_STOPPED;
	}
	text_append_format(report->out,
			   "%zu attempts on the rung '%s': %zu stopped, %zu got through, %zu not covered\n",
			   seen->proofs.count, plan_rung_name(seen->proved), stopped, holes, uncovered);
}

void doctor_print(const struct examination *seen, bool has_color, struct text *out)
{
	struct report report = {.out = out, .has_color = has_color};

	print_verdict(&report, seen);
	print_limits(&report, seen);
	print_cure(&report, seen);
	print_lacks(&report, seen);
	print_heading(&report, "What Belljar looked for:");
	for (size_t i = 0; i < seen->capabilities.count; i++)
		print_capability(&report, &seen->capabilities.items[i]);
	if (seen->has_proof)
		print_proofs(&report, seen);
}
