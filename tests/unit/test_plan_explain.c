/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/test_plan_explain.c - what a plan allows, by which rule, and the smallest change
 */
#include "plan/plan_explain.h"

#include "imagined_plan.h"

/* --- hosts -------------------------------------------------------------------------------------------------- */

static void check_host(const char *const *flags, const char *text, bool is_allowed, const char *why, const char *flag)
{
	AUTO(plan_explanation_done) struct plan_explanation explanation = {0};
	AUTO(imagined_plan_done) struct imagined_plan made;
	struct plan_request request = {.argv = NULL};
	struct plan_network_rules network;
	struct plan_endpoint endpoint;

	imagine(&made, NULL, flags, NULL, "true");
	request.argv = &made.argv;
	CHECK_INT(plan_compile(&made.plan, &made.policy, &made.host, &request, &made.error), 0);
	CHECK(plan_read_endpoint(text, &endpoint));
	network = plan_network_rules(&made.plan);
	plan_explain_host(&network, &endpoint, &explanation);
	CHECK_INT(explanation.is_allowed, is_allowed);
	CHECK_STRING(text_string(&explanation.why), why);
	CHECK_STRING(text_string(&explanation.flag), flag);
	CHECK(!explanation.policy.len == !explanation.flag.len);
}

static void test_the_smallest_rule_for_a_host(void)
{
	static const char *const rules[] = {"allow-net", "good.test", "allow-net", "0.0.0.0/0:443", NULL};
	static const char *const none[] = {NULL};
	static const char *const all[] = {"net", "host", NULL};
	static const char nobody[] = "no rule of allow_net is about it";

	check_host(rules, "good.test:443", true, "by the rule good.test", "");
	check_host(rules, "good.test:22", false, nobody, "--allow-net good.test:22");
	check_host(rules, "Other.test.", false, nobody, "--allow-net other.test");
	check_host(rules, "9.9.9.9:443", true, "by the rule 0.0.0.0/0:443", "");
	check_host(rules, "9.9.9.9:80", false, nobody, "--allow-net 9.9.9.9:80");
	check_host(rules, "10.0.0.1:443", false, "the rule 0.0.0.0/0:443 is too wide for an address of this kind",
		   "--allow-net 10.0.0.1:443");
	check_host(rules, "169.254.169.254:80", false, nobody, "");
	check_host(rules, "[2001:db9::1]:80", false, nobody, "--allow-net [2001:db9::1]:80");
	check_host(rules, "host.belljar.internal:5432", false, nobody, "--allow-net host:5432");
	check_host(rules, "127.0.0.1:80", true, "it is the jar's own loopback, not the host's", "");
	check_host(none, "good.test:443", false, "net is 'none'", "--allow-net good.test:443");
	check_host(none, "localhost:80", true, "it is the jar's own loopback, not the host's", "");
	check_host(all, "good.test:443", true, "net is 'host'", "");
}

static void test_a_rule_that_denies_has_no_cure(void)
{
	static const char *const rules[] = {"allow-net", "*.good.test", "allow-net",
					    "{\"host\":\"ads.good.test\",\"deny\":true,\"reason\":\"use the mirror\"}",
					    NULL};

	check_host(rules, "ads.good.test:443", false,
		   "by the rule {\"host\":\"ads.good.test\",\"ports\":\"*\",\"deny\":true,\"reason\":\"use the "
		   "mirror\"}: use the mirror",
		   "");
}

static void test_endpoints(void)
{
	static const char *const texts[] = {"good.test:1", "good.test", "1.2.3.4:65535", "[::1]:80", "::1"};
	static const char *const bad[] = {
		"", ":80", "good.test:", "good.test:0", "good.test:65536", "good.test:8x", "a b:80", "[::1]:x"};
	struct plan_endpoint endpoint;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		AUTO_TEXT again = {0};

		CHECK(plan_read_endpoint(texts[i], &endpoint));
		plan_format_endpoint(&endpoint, &again);
		CHECK_STRING(text_string(&again), texts[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK(!plan_read_endpoint(bad[i], &endpoint));
}

static const struct test tests[] = {
	TEST(test_the_smallest_rule_for_a_host),
	TEST(test_a_rule_that_denies_has_no_cure),
	TEST(test_endpoints),
};

TEST_MAIN(tests)
