/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_policy_net_rules.c - rules of allow_net: what is one, its canonical form, and what it decides
 */
#include "policy/net_rules.h"

#include <arpa/inet.h>

#include "policy/policy_build.h"
#include "test.h"

static void check_form(const char *text, const char *expected)
{
	struct net_refusal refusal = {{0}};
	struct net_rule rule, again;
	AUTO_TEXT form = {0}, form_again = {0};

	CHECK_INT(net_rule_parse(text, &rule, &refusal), 0);
	CHECK_STRING(refusal.why, "");
	net_rule_format(&rule, &form);
	CHECK_STRING(text_string(&form), expected);
	CHECK_INT(net_rule_parse(text_string(&form), &again, &refusal), 0);
	net_rule_format(&again, &form_again);
	CHECK_STRING(text_string(&form_again), expected);
}

static void test_every_form_has_one_canonical_form(void)
{
	check_form("example.org", "example.org");
	check_form("Example.ORG.", "example.org");
	check_form("example.org:443,80", "example.org");
	check_form("example.org:443", "example.org:443");
	check_form("*.Example.org", "*.example.org");
	check_form("example.org:80,443,8000-8010", "example.org:80,443,8000-8010");
	check_form("example.org:8005-8020,8000-8010,8021", "example.org:8000-8021");
	check_form("example.org:*", "example.org:*");
	check_form("xn--bcher-kva.example", "xn--bcher-kva.example");
	check_form("_dns.example", "_dns.example");
	check_form("10.1.2.3/24:5432", "10.1.2.0/24:5432");
	check_form("10.1.2.3:80,443", "10.1.2.3:80,443");
	check_form("[2001:db8::1/32]:443", "[2001:db8::/32]:443");
	check_form("[2001:db8::1]:443", "[2001:db8::1]:443");
	check_form("host:5432", "host:5432");
	check_form("Host.:5432", "host:5432");
	check_form("{\"host\": \"example.org\"}", "example.org");
	check_form("{\"host\": \"example.org\", \"ports\": [8080, \"9000-9001\"]}", "example.org:8080,9000-9001");
	check_form("{\"host\": \"example.org\", \"ports\": 8080, \"tls\": \"pass\"}", "example.org:8080");
	check_form("{\"host\": \"2001:db8::/32\", \"ports\": 443}", "[2001:db8::/32]:443");
	check_form("{\"host\": \"in.example.org\", \"private\": true}",
		   "{\"host\":\"in.example.org\",\"ports\":\"80,443\",\"private\":true}");
	check_form("{\"host\": \"ads.example.org\", \"deny\": true, \"reason\": \"use the mirror\"}",
		   "{\"host\":\"ads.example.org\",\"ports\":\"*\",\"deny\":true,\"reason\":\"use the mirror\"}");
	check_form(
		"{\"host\": \"a.b\", \"ports\": 443, \"paths\": [\"/v2/*\", \"/v1\"], \"methods\": [\"PUT\", \"GET\", "
		"\"PUT\"], \"reason\": \"no\"}",
		"{\"host\":\"a.b\",\"ports\":\"443\",\"methods\":[\"GET\",\"PUT\"],\"paths\":[\"/v1\",\"/v2/*\"],"
		"\"tls\":\"inspect\",\"reason\":\"no\"}");
	check_form("{\"host\": \"a.b\", \"tls\": \"inspect\"}",
		   "{\"host\":\"a.b\",\"ports\":\"80,443\",\"tls\":\"inspect\"}");
	check_form("{\"host\": \"10.0.0.0/8\", \"deny\": true}",
		   "{\"host\":\"10.0.0.0/8\",\"ports\":\"*\",\"deny\":true}");
}

static void check_refused(const char *text, const char *why)
{
	struct net_refusal refusal;
	struct net_rule rule;

	CHECK(net_rule_parse(text, &rule, &refusal) < 0);
	if (!strstr(refusal.why, why))
		CHECK_STRING(refusal.why, why);
}

static void test_what_is_no_rule_is_refused(void)
{
	AUTO_TEXT longest = {0};

	check_refused("", "empty");
	check_refused("*", "'*' may only be the first label");
	check_refused("a.*.org", "'*' may only be the first label");
	check_refused("*.", "'*' may only");
	check_refused("exa mple.org", "not a host name");
	check_refused("http://example.org/", "the host alone");
	check_refused("example.org/path", "not a host name");
	check_refused("a..b", "not a host name");
	check_refused(".a", "not a host name");
	check_refused("1.2.3.4.5:80", "not a host name");
	check_refused("1.2.3:80", "not a host name");
	check_refused("b\xc3\xbc"
		      "cher.example",
		      "xn--");
	check_refused("example.org:", "ports are numbers");
	check_refused("example.org:0", "ports are numbers");
	check_refused("example.org:65536", "ports are numbers");
	check_refused("example.org:99999999999", "ports are numbers");
	check_refused("example.org:10-5", "ports are numbers");
	check_refused("example.org:80,", "ports are numbers");
	check_refused("example.org:http", "ports are numbers");
	check_refused("10.1.2.3", "needs a port");
	check_refused("10.1.2.3/33:80", "length of a prefix");
	check_refused("10.1.2.3/:80", "length of a prefix");
	check_refused("2001:db8::1:443", "in brackets");
	check_refused("host", "needs a port");
	check_refused("127.0.0.1:80", "the jar's own");
	check_refused("127.1.0.0/16:80", "the jar's own");
	check_refused("[::1]:80", "the jar's own");
	check_refused("{\"ports\": 80}", "needs a \"host\"");
	check_refused("{\"host\": 1}", "must be a string");
	check_refused("{\"host\": \"a.b\", \"hots\": 1}", "has no \"hots\"");
	check_refused("{\"host\": \"a.b\", \"ports\": []}", "empty list");
	check_refused("{\"host\": \"a.b\", \"ports\": true}", "must be a number");
	check_refused("{\"host\": \"a.b\", \"reason\": \"x\"}", "goes with \"deny\"");
	check_refused("{\"host\": \"a.b\", \"private\": true, \"deny\": true}", "names that are allowed");
	check_refused("{\"host\": \"a.b\", \"reason\": \"x\\ny\", \"deny\": true}", "one line");
	check_refused("{\"host\": \"a.b\"", "rule:1:");
	for (int i = 0; i < 20; i++)
		text_append_format(&longest, "%s%d", i ? "," : "a.b:", 2 * i + 1);
	check_refused(text_string(&longest), "at most 16 ports");
}

static void read_rules(struct net_rule_list *rules, const char *const *texts)
{
	struct net_refusal refusal;

	for (; *texts; texts++)
		CHECK_INT(net_rule_parse(*texts, list_add(rules), &refusal), 0);
}

static bool may_reach(const struct net_rule_list *rules, const char *name, uint16_t port)
{
	return net_decide_name(rules, name, port).is_allowed;
}

static bool may_reach_address(const struct net_rule_list *rules, const char *address, uint16_t port)
{
	uint8_t bytes[16];
	bool is_ipv6 = strchr(address, ':');

	CHECK_INT(inet_pton(is_ipv6 ? AF_INET6 : AF_INET, address, bytes), 1);
	return net_decide_address(rules, is_ipv6, bytes, port).is_allowed;
}

static void test_rules_about_requests_that_will_not_do(void)
{
	check_refused("{\"host\": \"a.b\", \"tls\": true}", "\"pass\" or \"inspect\"");
	check_refused("{\"host\": \"a.b\", \"tls\": \"pass\", \"methods\": [\"GET\"]}", "unseen");
	check_refused("{\"host\": \"a.b\", \"methods\": [\"GET\"], \"tls\": \"pass\"}", "unseen");
	check_refused("{\"host\": \"a.b\", \"methods\": \"GET\"}", "must be a list");
	check_refused("{\"host\": \"a.b\", \"methods\": []}", "must be a list");
	check_refused("{\"host\": \"a.b\", \"methods\": [\"get it\"]}", "must be a list");
	check_refused("{\"host\": \"a.b\", \"paths\": [\"v1\"]}", "must be a list");
	check_refused("{\"host\": \"a.b\", \"paths\": [\"/v1/../x\"]}", "must be a list");
	check_refused("{\"host\": \"a.b\", \"paths\": [\"/v1?x\"]}", "must be a list");
	check_refused("{\"host\": \"a.b\", \"methods\": [\"GET\"], \"deny\": true}", "names that are allowed");
	check_refused("{\"host\": \"10.0.0.1\", \"ports\": 1, \"tls\": \"inspect\"}", "names that are allowed");
}

static bool may_ask(const struct net_rule_list *rules, const char *name, const char *method, const char *target)
{
	return net_decide_request(rules, name, 443, method, target).is_allowed;
}

static void test_requests_decide(void)
{
	static const char *const texts[] = {
		"{\"host\": \"a.b\", \"methods\": [\"GET\", \"HEAD\"], \"paths\": [\"/v1/*\", \"/status\", \"/a*z\"]}",
		"{\"host\": \"a.b\", \"methods\": [\"POST\"], \"paths\": [\"/v1/ask\"]}",
		"{\"host\": \"c.d\", \"tls\": \"inspect\"}",
		"{\"host\": \"e.f\", \"methods\": [\"GET\"]}",
		"*.f",
		NULL};
	static const char *const allowed[] = {"/v1/",      "/v1/x/y",    "/status", "/status?x=/../y", "/v1/%61",
					      "/v1/x%20y", "/v1/x;y=..", "/az",     "/a/b/z",          "/%73tatus"};
	static const char *const refused[] = {"/",         "/v1",          "/status/",   "/v1/../x",
					      "/v1/.",     "/v1/%2e%2e/x", "/v1/%2E./x", "/v1/x%2f..%2fy",
					      "/v1//x",    "/v1/..;x/y",   "/v1/%5c..",  "/v1\\x",
					      "/v1/%252e", "/v1/%",        "/v1/%zz",    "/v1/%00",
					      "/STATUS",   "/v2/",         "/v1/x/..",   "*",
					      "//v1/x",    "/v1/;/x",      "/V1/x"};
	AUTO_FREE struct net_rule *items = NULL;
	struct net_rule_list rules = {0};

	read_rules(&rules, texts);
	items = rules.items;
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		if (!may_ask(&rules, "a.b", "GET", allowed[i]))
			CHECK_STRING("refused", allowed[i]);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		if (may_ask(&rules, "a.b", "GET", refused[i]))
			CHECK_STRING("allowed", refused[i]);
	CHECK(may_ask(&rules, "a.b", "POST", "/v1/ask") && !may_ask(&rules, "a.b", "POST", "/v1/"));
	CHECK(!may_ask(&rules, "a.b", "get", "/v1/") && !may_ask(&rules, "a.b", "GE", "/v1/"));
	/* What says nothing of requests allows them all, also beside rules that do. */
	CHECK(may_ask(&rules, "c.d", "DELETE", "/../x") && may_ask(&rules, "e.f", "DELETE", "/"));
	CHECK(!net_decide_name(&rules, "e.f", 443).rule->is_inspected &&
	      net_decide_name(&rules, "c.d", 443).rule->is_inspected);
	CHECK(!may_ask(&rules, "x.y", "GET", "/"));
}

/* Some server reads each of these as a path outside of the rule, or reads no path at all. */
static void test_paths_that_servers_read_in_different_ways(void)
{
	static const char *const texts[] = {
		"{\"host\": \"a.b\", \"paths\": [\"/v1/*\", \"/f/*.txt\", \"/m/x;y\", \"/q/*.\"]}", NULL};
	static const char *const refused[] = {
		/* dots, with blanks, parameters and what is left out */
		"/v1/..%20/x",
		"/v1/%20../x",
		"/v1/.%20./x",
		"/v1/..%20",
		"/v1/%2e%2e%20/x",
		"/v1/.../x",
		"/v1/....",
		"/v1/.%2e;/x",
		"/v1/%2e%2e%3b/x",
		"/v1/..;/x",
		"/v1/..;a=b/x",
		"/v1/.;/x",
		"/v1/%20/x",
		"/v1/%20;x/y",
		"/v1/..%c2%a0/x",
		"/v1/.%cc%81./x",
		"/v1/..%20;/x",
		"/v1/.%3b",
		/* slashes and ends */
		"/v1/x%2f..",
		"/v1/x%2F..",
		"/v1/x%5c..",
		"/v1/x\\..",
		"/v1//x",
		"/v1/x//",
		"//v1/x",
		"/v1/;/x",
		"/v1/%3b/x",
		"/v1/%00",
		"/v1/x%00.txt",
		"/f/key%3f.txt",
		"/f/key%23.txt",
		"/f/key;.txt",
		"/f/key%3b.txt",
		"/v1/%0a",
		"/v1/%7f",
		"/v1/%09..",
		"/v1/%",
		"/v1/%2",
		"/v1/%u002e",
		"/v1/%252e%252e/x",
		"/v1/%25%32%65",
		/* too long UTF-8, parts of characters, and characters that become others */
		"/v1/%c0%ae%c0%ae/x",
		"/v1/%c0%af",
		"/v1/%e0%80%ae%e0%80%ae/x",
		"/v1/%f0%80%80%ae",
		"/v1/%c1%9c",
		"/v1/%ff",
		"/v1/%ed%a0%80",
		"/v1/%c3",
		"/v1/%ae",
		"/v1/%ef%bc%8e%ef%bc%8e/x",
		"/v1/%ef%bc%8fx",
		"/v1/%ef%bc%bcx",
		"/v1/%e2%80%a5/x",
		"/v1/%e2%80%a4.",
		"/v1/%e2%88%95x",
		"/v1/%e2%81%84x",
		"/v1/x%e2%80%8b",
		"/v1/%c2%85",
		"/v1/%c2%a5x",
		"/v1/.%e2%80%8d./x",
		"/v1/%ef%b9%92%ef%b9%92/x",
		"/v1/%ef%bb%bf..",
	};
	static const char *const allowed[] = {
		"/v1/x%20y",
		"/v1/x%20",
		"/v1/U.S./x",
		"/v1/..x",
		"/v1/x..",
		"/v1/.well-known/x",
		"/v1/x;v=1/y",
		"/v1/Z%C3%BCrich",
		"/v1/%E6%9D%B1%E4%BA%AC/%f0%9f%98%80",
		"/v1/",
		"/v1/x/",
		"/f/a.txt",
		"/f/a/b;v=1/c.txt",
		"/m/x;y",
		"/q/x.",
		"/v1/x?../..;%00",
	};
	struct net_rule_list rules = {0};

	read_rules(&rules, texts);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		if (may_ask(&rules, "a.b", "GET", refused[i]))
			CHECK_STRING("allowed", refused[i]);
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		if (!may_ask(&rules, "a.b", "GET", allowed[i]))
			CHECK_STRING("refused", allowed[i]);
	free(rules.items);
}

static void test_names_decide(void)
{
	static const char *const texts[] = {"example.org", "*.example.org:443", "db.example.org:5432", "host:8000",
					    NULL};
	struct net_rule_list rules = {0};

	read_rules(&rules, texts);
	CHECK(may_reach(&rules, "example.org", 80) && may_reach(&rules, "example.org", 443));
	CHECK(!may_reach(&rules, "example.org", 81));
	/* Any name below, never the apex, and not what only ends alike. */
	CHECK(may_reach(&rules, "a.example.org", 443) && may_reach(&rules, "a.b.example.org", 443));
	CHECK(!may_reach(&rules, "a.example.org", 80) && !may_reach(&rules, "notexample.org", 443));
	CHECK(!may_reach(&rules, "org", 443) && !may_reach(&rules, "example.org.evil", 443));
	CHECK(may_reach(&rules, "db.example.org", 5432) && may_reach(&rules, "db.example.org", 443));
	/* Port 0: on any. */
	CHECK(may_reach(&rules, "a.example.org", 0) && !may_reach(&rules, "evil.test", 0));
	CHECK(may_reach(&rules, NET_HOST_NAME, 8000) && !may_reach(&rules, NET_HOST_NAME, 443));
	free(rules.items);
}

static void test_the_host_has_its_name_only_by_its_own_rule(void)
{
	static const char *const texts[] = {"*.belljar.internal", NET_HOST_NAME, NULL};
	struct net_rule_list rules = {0};

	read_rules(&rules, texts);
	CHECK(!may_reach(&rules, NET_HOST_NAME, 443) && !may_reach(&rules, NET_HOST_NAME, 0));
	CHECK(may_reach(&rules, "other.belljar.internal", 443));
	free(rules.items);
}

static void test_deny_wins_wherever_it_stands(void)
{
	static const char *const texts[] = {"{\"host\": \"ads.example.org\", \"deny\": true, \"reason\": \"no\"}",
					    "*.example.org",
					    "ads.example.org",
					    "10.0.0.0/8:80",
					    "{\"host\": \"10.1.0.0/16\", \"deny\": true}",
					    "{\"host\": \"b.example.org\", \"ports\": 80, \"deny\": true}",
					    NULL};
	struct net_rule_list rules = {0};

	read_rules(&rules, texts);
	CHECK(!may_reach(&rules, "ads.example.org", 443) && !may_reach(&rules, "ads.example.org", 0));
	CHECK_STRING(net_decide_name(&rules, "ads.example.org", 443).rule->reason, "no");
	CHECK(may_reach(&rules, "x.example.org", 443));
	CHECK(may_reach_address(&rules, "10.2.0.1", 80) && !may_reach_address(&rules, "10.1.0.1", 80));
	/* Only one port of it is denied: it still has an address. */
	CHECK(!may_reach(&rules, "b.example.org", 80) && may_reach(&rules, "b.example.org", 443));
	CHECK(may_reach(&rules, "b.example.org", 0));
	free(rules.items);
}

static void test_addresses_decide(void)
{
	static const char *const texts[] = {"10.1.2.0/24:5432", "[2001:db8::/33]:443", "0.0.0.0/0:9", NULL};
	struct net_rule_list rules = {0};

	read_rules(&rules, texts);
	CHECK(may_reach_address(&rules, "10.1.2.255", 5432) && !may_reach_address(&rules, "10.1.3.0", 5432));
	CHECK(!may_reach_address(&rules, "10.1.2.1", 443));
	CHECK(may_reach_address(&rules, "2001:db8:7fff::1", 443) &&
	      !may_reach_address(&rules, "2001:db8:8000::1", 443));
	CHECK(may_reach_address(&rules, "9.9.9.9", 9) && !may_reach_address(&rules, "2001:db8::1", 9));
	free(rules.items);
}

/* --- in a policy -------------------------------------------------------------------------------------------- */

static const struct policy_context context = {.current_directory = "/project", .home = "/home/user"};

static void set_flag(struct policy *policy, const char *name, const char *value)
{
	struct error error = {0};

	CHECK_INT(policy_set_flag(policy, policy_key_by_flag(name), value, false, &context, &error), 0);
}

static void test_a_host_implies_the_gate(void)
{
	static const char document[] = "{\"allow_net\": [\"example.org\", {\"host\": \"a.b\", \"ports\": 1}]}";
	static const char both[] = "{\"allow_net\": [\"example.org\"], \"net\": \"none\"}";
	AUTO(policy_done) struct policy policy = {0};
	struct error error = {0};

	CHECK_INT(policy_init(&policy, &context, &error), 0);
	set_flag(&policy, "allow-net", "example.org");
	CHECK_INT(policy.net, NET_GATE);
	/* What is said later counts. */
	set_flag(&policy, "net", "none");
	CHECK_INT(policy.net, NET_NONE);
	set_flag(&policy, "net", "host");
	set_flag(&policy, "allow-net", "other.org");
	CHECK_INT(policy.net, NET_HOST);
	CHECK_INT(policy_load_document(&policy, document, strlen(document), "d", "/", &context, &error), 0);
	CHECK_INT(policy.net, NET_GATE);
	CHECK_INT(policy.allow_net.count, 2);
	CHECK_STRING(policy.allow_net.items[1], "a.b:1");
	CHECK_INT(policy_load_document(&policy, both, strlen(both), "d", "/", &context, &error), 0);
	CHECK_INT(policy.net, NET_NONE);
}

static void test_a_bad_rule_is_named(void)
{
	static const char document[] = "{\n \"allow_net\": [\"example.org\", \"10.0.0.1\"]}";
	AUTO(policy_done) struct policy policy = {0};
	struct error error = {0};

	CHECK_INT(policy_init(&policy, &context, &error), 0);
	CHECK(policy_load_document(&policy, document, strlen(document), "p.json", "/", &context, &error) < 0);
	CHECK_STRING(error.message,
		     "p.json:2:31: allow_net '10.0.0.1': an address needs a port, as in 10.1.2.0/24:5432");
}

static const struct test tests[] = {
	TEST(test_every_form_has_one_canonical_form),
	TEST(test_what_is_no_rule_is_refused),
	TEST(test_rules_about_requests_that_will_not_do),
	TEST(test_requests_decide),
	TEST(test_paths_that_servers_read_in_different_ways),
	TEST(test_names_decide),
	TEST(test_the_host_has_its_name_only_by_its_own_rule),
	TEST(test_deny_wins_wherever_it_stands),
	TEST(test_addresses_decide),
	TEST(test_a_host_implies_the_gate),
	TEST(test_a_bad_rule_is_named),
};

TEST_MAIN(tests)
