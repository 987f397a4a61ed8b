/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/suggest.c - edit distance with swaps, over short words
 *
 * One insertion, deletion, replacement or swap of neighbours costs one; capitals cost nothing. A word is near if no
 * more than a third of it has to change, so that short words are not "corrected" into something else entirely.
 */
#include "base/suggest.h"

#include <ctype.h>
#include <string.h>

#define MAX_WORD 40

static bool is_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][MAX_WORD + 1];
	size_t *before = rows[0], *above = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_len; j++)
		above[j] = before[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *reused = before;

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t best = above[j - 1] + !is_same(a[i - 1], b[j - 1]);

			best = MIN_OF(best, above[j] + 1);
			best = MIN_OF(best, row[j - 1] + 1);
			if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]))
				best = MIN_OF(best, before[j - 2] + 1);
			row[j] = best;
		}
		before = above;
		above = row;
		row = reused;
	}
	return above[b_len];
}

void suggest_consider(struct suggestion *suggestion, const char *candidate)
{
	size_t word_len = strnlen(suggestion->word, MAX_WORD + 1), candidate_len = strnlen(candidate, MAX_WORD + 1);
	size_t distance, tolerated = MAX_OF(1, MAX_OF(word_len, candidate_len) / 3);

	if (word_len < 2 || word_len > MAX_WORD || candidate_len > MAX_WORD)
		return;
	distance = edit_distance(suggestion->word, word_len, candidate, candidate_len);
	if (distance > tolerated || distance >= candidate_len || (suggestion->best && distance >= suggestion->distance))
		return;
	suggestion->best = candidate;
	suggestion->distance = distance;
}

const char *suggest_from(const char *word, const char *const *candidates)
{
	struct suggestion suggestion = {.word = word};

	for (; *candidates; candidates++)
		suggest_consider(&suggestion, *candidates);
	return suggestion.best;
}
