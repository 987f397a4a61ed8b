/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_gate_dns.c - DNS messages, and where addresses lead
 */
#include "gate/gate_dns.h"

#include <arpa/inet.h>

#include "policy/net_address.h"
#include "gate/gate_resolver.h"
#include "test.h"

static void test_a_question_is_read_and_answered(void)
{
	uint8_t query[DNS_MESSAGE_MAX], answer[DNS_MESSAGE_MAX * 2];
	size_t len = gate_dns_write_query(0x1234, "Www.Example.org", DNS_TYPE_A, query), answer_len;
	struct dns_addresses addresses = {0};
	struct dns_question question;
	unsigned code = 9;

	CHECK(gate_dns_read_question(query, len, &question));
	CHECK_STRING(question.name, "www.example.org");
	CHECK_INT(question.type, DNS_TYPE_A);
	CHECK(question.has_edns);
	answer_len = gate_dns_write_answer(query, &question, 0, 0xc6120100U, NULL, answer);
	CHECK(gate_dns_read_answer(answer, answer_len, 0x1234, "www.example.org", DNS_TYPE_A, &addresses, &code));
	CHECK_INT(code, 0);
	CHECK_INT(addresses.count, 1);
	CHECK(!memcmp(addresses.items[0].bytes, "\xc6\x12\x01\x00", 4));
	answer_len = gate_dns_write_answer(query, &question, DNS_NO_SUCH_NAME, 0, "use the mirror", answer);
	CHECK(memmem(answer, answer_len, "use the mirror", 14));
	addresses.count = 0;
	CHECK(gate_dns_read_answer(answer, answer_len, 0x1234, "www.example.org", DNS_TYPE_A, &addresses, &code));
	CHECK(code == DNS_NO_SUCH_NAME && addresses.count == 0);
}

static void test_an_answer_to_another_question_is_not_taken(void)
{
	uint8_t query[DNS_MESSAGE_MAX], answer[DNS_MESSAGE_MAX * 2];
	size_t len = gate_dns_write_query(7, "a.test", DNS_TYPE_A, query);
	struct dns_addresses addresses = {0};
	struct dns_question question;
	unsigned code;

	CHECK(gate_dns_read_question(query, len, &question));
	len = gate_dns_write_answer(query, &question, 0, 1, NULL, answer);
	CHECK(!gate_dns_read_answer(answer, len, 8, "a.test", DNS_TYPE_A, &addresses, &code));
	CHECK(!gate_dns_read_answer(answer, len, 7, "b.test", DNS_TYPE_A, &addresses, &code));
	CHECK(!gate_dns_read_answer(answer, len, 7, "a.test", DNS_TYPE_AAAA, &addresses, &code));
	CHECK(!gate_dns_read_answer(query, len, 7, "a.test", DNS_TYPE_A, &addresses, &code));
	for (size_t cut = 0; cut < 24; cut++)
		CHECK(!gate_dns_read_answer(answer, cut, 7, "a.test", DNS_TYPE_A, &addresses, &code));
	CHECK_INT(addresses.count, 0);
}

static void test_what_is_no_question_is_dropped(void)
{
	uint8_t query[DNS_MESSAGE_MAX];
	size_t len = gate_dns_write_query(7, "a.test", DNS_TYPE_A, query);
	struct dns_question question;

	for (size_t cut = 0; cut + 11 < len; cut++)
		CHECK(!gate_dns_read_question(query, cut, &question));
	query[12] = 0xc0; /* a pointer */
	CHECK(!gate_dns_read_question(query, len, &question));
	query[12] = 63;
	CHECK(!gate_dns_read_question(query, len, &question));
	query[12] = 1;
	query[2] |= 0x80;
	CHECK(!gate_dns_read_question(query, len, &question));
}

/* Such a name must not be taken for another: "a.b" as one label is not "a" in "b". */
static void test_odd_names_are_nobodys(void)
{
	static const uint8_t dot[] = "\0\7\1\0\0\1\0\0\0\0\0\0\6good.t\3est\0\0\1\0\1";
	static const uint8_t space[] = "\0\7\1\0\0\1\0\0\0\0\0\0\3a b\0\0\1\0\1";
	struct dns_question question;

	CHECK(gate_dns_read_question(dot, sizeof(dot) - 1, &question));
	CHECK_STRING(question.name, "");
	CHECK(gate_dns_read_question(space, sizeof(space) - 1, &question));
	CHECK_STRING(question.name, "");
}

static enum address_kind kind_of(const char *text)
{
	uint8_t bytes[16];
	bool is_ipv6 = strchr(text, ':');

	CHECK_INT(inet_pton(is_ipv6 ? AF_INET6 : AF_INET, text, bytes), 1);
	return policy_address_place(is_ipv6, bytes).kind;
}

static void test_addresses_that_are_not_the_internets(void)
{
	static const char *const special[] = {"0.0.0.0",
					      "0.1.2.3",
					      "127.0.0.1",
					      "127.255.0.1",
					      "169.254.169.254",
					      "192.0.0.1",
					      "224.0.0.1",
					      "255.255.255.255",
					      "240.0.0.1",
					      "::",
					      "::1",
					      "fe80::1",
					      "ff02::1",
					      "::ffff:127.0.0.1",
					      "::127.0.0.1",
					      "::ffff:169.254.169.254",
					      "64:ff9b::7f00:1",
					      "2002:7f00:1::",
					      "fd00:ec2::254",
					      "168.63.129.16"};
	static const char *const private[] = {
		"10.0.0.1",       "172.16.0.1",   "172.31.255.255",    "192.168.1.1", "100.64.0.1",
		"198.18.0.1",     "198.19.0.1",   "fc00::1",           "fdff::1",     "::ffff:10.0.0.1",
		"64:ff9b::a00:1", "2002:a00:1::", "::ffff:0:10.0.0.1", "fec0::1"};
	static const char *const public[] = {"1.1.1.1",        "172.32.0.1",      "172.15.0.1",  "100.128.0.1",
					     "198.20.0.1",     "223.255.255.255", "2001:db8::1", "2606:4700::1",
					     "::ffff:8.8.8.8", "2002:808:808::"};

	for (size_t i = 0; i < ARRAY_LEN(special); i++)
		CHECK_INT(kind_of(special[i]), ADDRESS_SPECIAL);
	for (size_t i = 0; i < ARRAY_LEN(private); i++)
		CHECK_INT(kind_of(private[i]), ADDRESS_PRIVATE);
	for (size_t i = 0; i < ARRAY_LEN(public); i++)
		CHECK_INT(kind_of(public[i]), ADDRESS_PUBLIC);
}

static bool may_dial(const char *const *texts, const char *address, uint16_t port, bool is_own)
{
	struct net_rule_list rules = {0};
	struct net_refusal refusal;
	uint8_t bytes[16];
	bool is_ipv6 = strchr(address, ':'), may;

	for (; *texts; texts++)
		CHECK_INT(net_rule_parse(*texts, list_add(&rules), &refusal), 0);
	CHECK_INT(inet_pton(is_ipv6 ? AF_INET6 : AF_INET, address, bytes), 1);
	may = policy_address_may_be_dialled(net_decide_address(&rules, is_ipv6, bytes, port),
					    (struct address_permit){rules.items[0].kind, rules.items[0].may_be_private},
					    is_ipv6, bytes, is_own);
	free(rules.items);
	return may;
}

#define DIAL(address, port, is_own, ...) may_dial((const char *const[]){__VA_ARGS__, NULL}, address, port, is_own)

static void test_a_name_leads_where_its_rule_allows(void)
{
	const char *private = "{\"host\":\"a.test\",\"private\":true}";

	CHECK(DIAL("1.1.1.1", 443, false, "a.test"));
	CHECK(!DIAL("1.1.1.1", 443, true, "a.test"));
	CHECK(!DIAL("10.0.0.1", 443, false, "a.test") && !DIAL("::ffff:10.0.0.1", 443, false, "a.test"));
	CHECK(DIAL("10.0.0.1", 443, false, private) && DIAL("1.1.1.1", 443, true, private));
	/* "private" is not for these. */
	CHECK(!DIAL("127.0.0.1", 443, false, private) && !DIAL("169.254.169.254", 443, false, private));
	CHECK(!DIAL("::1", 443, false, private) && !DIAL("::ffff:127.0.0.1", 443, false, private));
	/* A rule about the address. */
	CHECK(DIAL("10.1.2.3", 443, false, "a.test", "10.1.0.0/16:443"));
	CHECK(!DIAL("10.1.2.3", 443, false, "a.test", "10.1.0.0/16:80"));
	CHECK(DIAL("169.254.169.254", 80, false, "a.test", "169.254.169.254:80"));
	CHECK(!DIAL("1.1.1.1", 443, false, "a.test", "{\"host\":\"1.1.1.0/24\",\"deny\":true}"));
	/* Who allows everything has not thought of these. */
	CHECK(!DIAL("169.254.169.254", 80, false, "0.0.0.0/0:80") && !DIAL("10.0.0.1", 80, false, "0.0.0.0/0:80"));
	CHECK(DIAL("1.1.1.1", 80, false, "0.0.0.0/0:80") && DIAL("10.0.0.1", 80, false, "10.0.0.0/8:80"));
}

static void test_files_of_the_host_are_read(void)
{
	struct resolver resolver = {0};
	struct resolver_servers servers;

	gate_resolver_read_hosts(&resolver,
				 "# x\n127.0.0.1 localhost\n10.0.0.1\tA.test b.test # c.test\nbad d.test\n::1 e.test");
	CHECK_INT(resolver.hosts.count, 4);
	CHECK_STRING(resolver.hosts.items[1].name, "a.test");
	CHECK_STRING(resolver.hosts.items[2].name, "b.test");
	CHECK(resolver.hosts.items[3].address.is_ipv6);
	gate_resolver_read_configuration("search x\nnameserver 10.0.0.53\n;nameserver 1.1.1.1\nnameserver ::1\n"
					 "nameserver bad\nnameserver 1.2.3.4\nnameserver 5.6.7.8\n",
					 &servers);
	CHECK_INT(servers.count, 3);
	CHECK_INT(servers.items[1].any.sa_family, AF_INET6);
	/* Again: what they said before does not count. */
	gate_resolver_read_configuration("", &servers);
	CHECK_INT(servers.count, 1);
	gate_resolver_read_hosts(&resolver, "10.0.0.2 f.test\n");
	CHECK_INT(resolver.hosts.count, 1);
	free(resolver.hosts.items);
}

static const struct test tests[] = {
	TEST(test_a_question_is_read_and_answered),      TEST(test_an_answer_to_another_question_is_not_taken),
	TEST(test_what_is_no_question_is_dropped),       TEST(test_odd_names_are_nobodys),
	TEST(test_addresses_that_are_not_the_internets), TEST(test_a_name_leads_where_its_rule_allows),
	TEST(test_files_of_the_host_are_read),
};

TEST_MAIN(tests)
