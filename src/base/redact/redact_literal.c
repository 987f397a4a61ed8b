/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact_literal.c - find every occurrence of any of many exact texts
 *
 * An automaton in the manner of Aho and Corasick. Its nodes keep their children in a list instead of a table of 256:
 * all but a few have one child, and a table per node would take a kilobyte for each byte of a secret. Of the texts that
 * end at a node only the longest matters, since it covers the others.
 *
 * While no text has begun, the filter skips bytes that cannot begin one.
 */
#include "base/redact/redact_literal.h"

#include <errno.h>
#include <string.h>

/* The shortest text of several lines that is also searched in another spelling. */
#define LEAST_BYTES 4

struct literal_node {
	uint32_t fail; /* the node of the longest proper suffix that is in the tree */
	uint32_t first_child;
	uint32_t sibling;
	uint32_t depth;
	uint32_t match_len; /* of the longest text that ends here; 0: none */
	unsigned char byte;
};

/* Returns 0 if there is no such child: the root is never a child. */
static inline uint32_t find_child(const struct redact_literals *literals, uint32_t node, unsigned char byte)
{
	uint32_t child;

	if (node == 0)
		return literals->root[byte];
	for (child = literals->nodes[node].first_child; child != 0; child = literals->nodes[child].sibling) {
		if (literals->nodes[child].byte == byte)
			break;
	}
	return child;
}

static inline uint32_t step(const struct redact_literals *literals, uint32_t node, unsigned char byte)
{
	uint32_t child = find_child(literals, node, byte);

	while (child == 0 && node != 0) {
		node = literals->nodes[node].fail;
		child = find_child(literals, node, byte);
	}
	return child;
}

static void insert(struct redact_literals *literals, const char *text)
{
	uint32_t node = 0;

	for (const unsigned char *byte = (const unsigned char *)text; *byte; byte++) {
		uint32_t child = find_child(literals, node, *byte);

		if (child == 0) {
			child = literals->node_count++;
			literals->nodes[child] = (struct literal_node){
				.sibling = literals->nodes[node].first_child,
				.depth = literals->nodes[node].depth + 1,
				.byte = *byte,
			};
			literals->nodes[node].first_child = child;
			if (node == 0)
				literals->root[*byte] = child;
		}
		node = child;
	}
	literals->nodes[node].match_len = literals->nodes[node].depth;
}

/* Breadth first: a node's fail link points to a shallower node, whose own link and match are known by then. */
static int link_nodes(struct redact_literals *literals)
{
	AUTO_FREE uint32_t *queue = malloc(literals->node_count * sizeof(*queue));
	struct literal_node *nodes = literals->nodes;
	size_t count = 0;

	if (!queue)
		return -ENOMEM;
	queue[count++] = 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t parent = queue[i];

		for (uint32_t child = nodes[parent].first_child; child != 0; child = nodes[child].sibling) {
			nodes[child].fail = parent ? step(literals, nodes[parent].fail, nodes[child].byte) : 0;
			if (nodes[child].match_len == 0)
				nodes[child].match_len = nodes[nodes[child].fail].match_len;
			queue[count++] = child;
		}
	}
	return 0;
}

/*
 * A terminal adds a carriage return before each line end, a terminal within a terminal adds two, and other programs
 * remove those that the text has. The code writes @returns there, beside those of the text or instead of them.
 */
static const struct spelling {
	bool keeps_own;
	int returns;
} spellings[] = {{true, 1}, {true, 2}, {false, 0}, {false, 1}};

static int add_spelling(struct string_list *texts, const char *text, const struct spelling *spelling)
{
	AUTO_TEXT changed = {0};

	while (*text) {
		size_t own = strspn(text, "\r");

		if (text[own] != '\n' || spelling->keeps_own)
			text_append(&changed, text, own);
		text += own;
		for (int i = 0; i < spelling->returns && *text == '\n'; i++)
			text_append_char(&changed, '\r');
		if (*text)
			text_append_char(&changed, *text++);
	}
	if (text_failed(&changed))
		return -ENOMEM;
	/* Too short a text would tear holes into everything. */
	return changed.len < LEAST_BYTES ? 0 : string_list_add(texts, text_string(&changed));
}

static bool has_lines(const struct string_list *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		if (strchr(texts->items[i], '\n'))
			return true;
	return false;
}

/* List each text as it is and, if it has several lines, as terminals show it. */
static int spell_out(const struct string_list *texts, struct string_list *all)
{
	int rc = string_list_copy(all, texts);

	for (size_t i = 0; i < texts->count; i++)
		for (size_t j = 0; j < ARRAY_LEN(spellings) && rc == 0 && strchr(texts->items[i], '\n'); j++)
			rc = add_spelling(all, texts->items[i], &spellings[j]);
	return rc;
}

static void fill_filter(struct redact_literals *literals, const struct string_list *texts)
{
	struct redact_filter *filter = &literals->filter;

	if (literals->min_len < REDACT_FILTER_GROUP)
		return;
	filter->stride = MIN_OF(literals->min_len - REDACT_FILTER_GROUP + 1, (size_t)REDACT_FILTER_STRIDE_MAX);
	for (size_t i = 0; i < texts->count; i++) {
		for (size_t offset = 0; texts->items[i][0] && offset < filter->stride; offset++)
			redact_filter_add(filter, texts->items[i] + offset);
	}
}

static int check_size(const struct string_list *texts, struct error *error)
{
	size_t total = 0;

	for (size_t i = 0; i < texts->count; i++) {
		size_t len = strlen(texts->items[i]);

		if (len > REDACT_LITERAL_TOTAL_MAX - total)
			return error_set(error, STAGE_POLICY, E2BIG, "the texts to redact exceed %u bytes together",
					 REDACT_LITERAL_TOTAL_MAX);
		total += len;
	}
	return 0;
}

static int build_tree(struct redact_literals *literals, const struct string_list *texts)
{
	size_t total = 0;

	literals->min_len = SIZE_MAX;
	for (size_t i = 0; i < texts->count; i++) {
		size_t len = strlen(texts->items[i]);

		if (len == 0)
			continue;
		total += len;
		literals->min_len = MIN_OF(literals->min_len, len);
		literals->max_len = MAX_OF(literals->max_len, len);
	}
	if (total == 0)
		return 0;
	literals->nodes = calloc(total + 1, sizeof(*literals->nodes));
	if (!literals->nodes)
		return -ENOMEM;
	literals->node_count = 1;
	for (size_t i = 0; i < texts->count; i++) {
		if (texts->items[i][0])
			insert(literals, texts->items[i]);
	}
	fill_filter(literals, texts);
	return link_nodes(literals);
}

int redact_literals_init(struct redact_literals *literals, const struct string_list *texts, struct error *error)
{
	struct string_list all = {0};
	int rc = check_size(texts, error);

	if (rc < 0)
		return rc;
	if (has_lines(texts))
		rc = spell_out(texts, &all);
	if (rc == 0)
		rc = build_tree(literals, all.count ? &all : texts);
	string_list_done(&all);
	return rc < 0 ? error_set(error, STAGE_ENGINE, ENOMEM, "no memory for the texts to redact") : 0;
}

void redact_literals_done(struct redact_literals *literals)
{
	free(literals->nodes);
	literals->nodes = NULL;
}

void redact_literals_run(const struct redact_literals *literals, struct literal_state *state,
			 const unsigned char *bytes, size_t len, struct redact_spans *spans)
{
	size_t at = state->at;
	uint32_t node = state->node;

	while (at < len) {
		size_t stride = literals->filter.stride, until;

		if (node == 0 && stride != 0)
			at = redact_filter_skip(&literals->filter, bytes, at, len);
		/* The filter's hit begins before @until; ask the filter again only from there on. */
		for (until = at + stride; at < len && (node != 0 || at < until || stride == 0);) {
			uint32_t match_len;

			node = step(literals, node, bytes[at++]);
			match_len = literals->nodes[node].match_len;
			if (match_len != 0)
				redact_spans_add(spans, at - match_len, at);
		}
	}
	state->at = at;
	state->node = node;
}

size_t redact_literals_hold(const struct redact_literals *literals, const struct literal_state *state)
{
	return state->at - literals->nodes[state->node].depth;
}
