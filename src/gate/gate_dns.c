/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate/gate_dns.c - DNS messages
 */
#include "gate/gate_dns.h"

#include <string.h>

#define HEADER_BYTES 12
#define CLASS_INTERNET 1
#define TYPE_OPT 41
#define FLAG_RESPONSE 0x80
#define FLAG_AUTHORITATIVE 0x04
#define FLAG_CUT 0x02
#define FLAG_RECURSION_WANTED 0x01
#define FLAG_RECURSION_AVAILABLE 0x80
#define OPERATION_BITS 0x78
#define POINTER_BITS 0xc0
#define EDNS_BYTES 1232
#define OPTION_EXTENDED_ERROR 15
#define ERROR_FILTERED 17
/* Programs ask again soon enough; a jar's addresses stay as they are anyway. */
#define ANSWER_TTL_S 60
#define TTL_MAX_S 300

static uint16_t read16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t read32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint8_t *write16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static uint8_t *write32(uint8_t *at, uint32_t value)
{
	return write16(write16(at, value >> 16), value & 0xffff);
}

/* Read the name at @at, which has no pointers. Returns its end, or 0. @out stays empty if it is not a host name. */
static size_t read_name(const uint8_t *message, size_t len, size_t at, char out[NET_NAME_SIZE])
{
	char raw[256];
	size_t used = 0;

	while (at < len && message[at]) {
		size_t label = message[at];

		if (label & POINTER_BITS || at + 1 + label >= len || used + label + 1 >= sizeof(raw))
			return 0;
		if (used)
			raw[used++] = '.';
		/* A dot inside of a label is not one between two. */
		for (size_t i = 0; i < label; i++)
			raw[used++] = message[at + 1 + i] == '.' ? ' ' : (char)message[at + 1 + i];
		at += label + 1;
	}
	if (at >= len)
		return 0;
	if (!net_name_clean(raw, used, out))
		out[0] = '\0';
	return at + 1;
}

bool gate_dns_read_question(const uint8_t *message, size_t len, struct dns_question *question)
{
	size_t at;

	if (len < HEADER_BYTES || message[2] & (FLAG_RESPONSE | OPERATION_BITS) || read16(message + 4) != 1)
		return false;
	at = read_name(message, len, HEADER_BYTES, question->name);
	if (!at || at + 4 > len)
		return false;
	question->type = read16(message + at);
	if (read16(message + at + 2) != CLASS_INTERNET)
		question->name[0] = '\0';
	question->end = at + 4;
	/* The one record that a question may have beside it begins with the root's name. */
	question->has_edns = read16(message + 10) == 1 && question->end + 11 <= len && message[question->end] == 0 &&
			     read16(message + question->end + 1) == TYPE_OPT;
	return true;
}

static uint8_t *write_extension(uint8_t *at, const char *reason)
{
	size_t len = reason ? strlen(reason) : 0;

	*at++ = 0;
	at = write16(at, TYPE_OPT);
	at = write16(at, EDNS_BYTES);
	at = write32(at, 0);
	at = write16(at, reason ? (unsigned)len + 6 : 0);
	if (!reason)
		return at;
	at = write16(at, OPTION_EXTENDED_ERROR);
	at = write16(at, (unsigned)len + 2);
	at = write16(at, ERROR_FILTERED);
	memcpy(at, reason, len);
	return at + len;
}

size_t gate_dns_write_answer(const uint8_t *message, const struct dns_question *question, unsigned code,
			     uint32_t address, const char *reason, uint8_t *out)
{
	uint8_t *at = out + question->end;

	memcpy(out, message, question->end);
	out[2] = (uint8_t)(FLAG_RESPONSE | FLAG_AUTHORITATIVE | (message[2] & FLAG_RECURSION_WANTED));
	out[3] = (uint8_t)(FLAG_RECURSION_AVAILABLE | code);
	memset(out + 6, 0, 6);
	if (!code && address) {
		out[7] = 1;
		at = write16(at, POINTER_BITS << 8 | HEADER_BYTES);
		at = write16(at, DNS_TYPE_A);
		at = write16(at, CLASS_INTERNET);
		at = write32(at, ANSWER_TTL_S);
		at = write16(at, 4);
		at = write32(at, address);
	}
	if (question->has_edns) {
		out[11] = 1;
		at = write_extension(at, reason);
	}
	return (size_t)(at - out);
}

size_t gate_dns_write_query(uint16_t id, const char *name, uint16_t type, uint8_t *out)
{
	uint8_t *at = out;

	at = write16(at, id);
	at = write16(at, FLAG_RECURSION_WANTED << 8);
	at = write16(at, 1);
	at = write32(at, 0);
	at = write16(at, 1);
	while (*name) {
		size_t label = strcspn(name, ".");

		*at++ = (uint8_t)label;
		memcpy(at, name, label);
		at += label;
		name += label + (name[label] == '.');
	}
	*at++ = 0;
	at = write16(at, type);
	at = write16(at, CLASS_INTERNET);
	at = write_extension(at, NULL);
	return (size_t)(at - out);
}

/* Return the end of the name at @at, without following pointers; 0: it is invalid. */
static size_t skip_name(const uint8_t *message, size_t len, size_t at)
{
	while (at < len) {
		if ((message[at] & POINTER_BITS) == POINTER_BITS)
			return at + 2 <= len ? at + 2 : 0;
		if (message[at] & POINTER_BITS)
			return 0;
		if (!message[at])
			return at + 1;
		at += message[at] + 1U;
	}
	return 0;
}

/*
 * The names of the records are ignored: a name server returns the chain of aliases of a name and the addresses at the
 * end, and the gate checks each address by itself.
 */
bool gate_dns_read_answer(const uint8_t *message, size_t len, uint16_t id, const char *name, uint16_t type,
			  struct dns_addresses *addresses, unsigned *code)
{
	size_t address_len = type == DNS_TYPE_A ? 4 : 16, at;
	char asked[NET_NAME_SIZE];
	unsigned records;

	if (len < HEADER_BYTES || read16(message) != id || !(message[2] & FLAG_RESPONSE) || read16(message + 4) != 1)
		return false;
	at = read_name(message, len, HEADER_BYTES, asked);
	if (!at || at + 4 > len || strcmp(asked, name) != 0 || read16(message + at) != type ||
	    read16(message + at + 2) != CLASS_INTERNET)
		return false;
	*code = message[3] & 0xf;
	records = read16(message + 6);
	at += 4;
	while (records-- && (at = skip_name(message, len, at)) && at + 10 <= len) {
		size_t data_len = read16(message + at + 8);
		uint32_t ttl_s = MIN_OF(read32(message + at + 4), TTL_MAX_S);

		if (at + 10 + data_len > len)
			break;
		if (read16(message + at) == type && read16(message + at + 2) == CLASS_INTERNET &&
		    data_len == address_len && addresses->count < DNS_ADDRESSES_MAX) {
			struct dns_address *address = &addresses->items[addresses->count];

			*address = (struct dns_address){.is_ipv6 = type == DNS_TYPE_AAAA};
			memcpy(address->bytes, message + at + 10, address_len);
			addresses->ttl_s = addresses->count ? MIN_OF(addresses->ttl_s, ttl_s) : ttl_s;
			addresses->count++;
		}
		at += 10 + data_len;
	}
	return true;
}

bool gate_dns_is_cut(const uint8_t *message, size_t len)
{
	return len >= HEADER_BYTES && message[2] & FLAG_CUT;
}
