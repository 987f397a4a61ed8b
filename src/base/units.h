/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/units.h - durations and sizes as people write them
 *
 * Durations: "500ms", "30s", "5m", "1h", plain seconds, with decimals ("1.5s"). Sizes: "100K", "512M", "2G", "1T",
 * plain bytes; 1024-based. "none" means no limit (LIMIT_NONE). Other text is -EINVAL; too large a value is -ERANGE.
 */
#ifndef BELLJAR_BASE_UNITS_H
#define BELLJAR_BASE_UNITS_H

#include "base/text.h"

int units_parse_duration(const char *string, uint64_t *nanoseconds_out);
int units_parse_size(const char *string, uint64_t *bytes_out);
int units_parse_count(const char *string, uint64_t *count_out);

/* Write the shortest exact form: "500ms", "2m", "512M", "1000", "none". */
void units_format_duration(struct text *text, uint64_t nanoseconds);
void units_format_size(struct text *text, uint64_t bytes);

#endif
