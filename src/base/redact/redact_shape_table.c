/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/redact/redact_shape_table.c - the shapes of secrets, one row each
 *
 * Prefixes were taken from what the issuers publish. The least lengths are somewhat below what is issued today: a token
 * that becomes shorter is still found, and ordinary text does not come near. Names (password, token ...) match at the
 * end of longer ones (DB_PASSWORD, accessToken), never at their beginning (TOKEN_FILE, password_hash).
 *
 * Examples are put together from pieces, so that tools which look for leaked secrets in source code leave them alone.
 */
#include "base/redact/redact_shapes.h"

#define D10 "0123456789"
#define D20 D10 D10
#define PRIVATE_KEY "PRIVATE KEY-----"

#define ROW(name, example, kind, alphabet, min_len, max_len, plain_min_len, ...)                                       \
	{                                                                                                              \
		name, example, kind, alphabet, min_len, max_len, plain_min_len,                                        \
		{                                                                                                      \
			__VA_ARGS__                                                                                    \
		}                                                                                                      \
	}
#define TOKEN(name, example, alphabet, min_len, ...)                                                                   \
	ROW(name, example, SHAPE_TOKEN, alphabet, min_len, 0, 0, __VA_ARGS__)
#define NAMED(name, example, min_len, plain_min_len, ...)                                                              \
	ROW(name, example, SHAPE_ASSIGNMENT, CLASS_VALUE, min_len, 0, plain_min_len, __VA_ARGS__)

const struct redact_shape redact_shapes[] = {
	ROW("private key", "-----BEGIN EC " PRIVATE_KEY "\nMHcCAQEEIB8=\n-----END EC " PRIVATE_KEY, SHAPE_PEM,
	    CLASS_BASE64, 0, 0, 0, "-----BEGIN "),
	ROW("bearer token", "Bearer mF_9.B5f-4.1JqM", SHAPE_BEARER, CLASS_BEARER, 8, 0, 20, "bearer"),
	ROW("password in a URL", "postgres://app:hunter2@db/prod", SHAPE_URL, CLASS_URL_PASSWORD, 1, 256, 0, "://"),
	ROW("JSON Web Token", "eyJhbGciOiJI" D10 ".eyJzdWIiOiIx" D10 "." D20, SHAPE_JWT, CLASS_BASE64URL, 10, 1024, 0,
	    "eyJ"),
	ROW("AWS access key id", "AKIA" D10 "ABCDEF", SHAPE_TOKEN, CLASS_UPPER, 16, 16, 0, "AKIA", "ASIA"),

	NAMED("authorization header", "Authorization: Basic dXNlcjpwYXNz", 4, 0, "authorization"),
	NAMED("password", "DB_PASSWORD=hunter2", 4, 0, "password", "passwd", "passphrase"),
	NAMED("secret", "client_secret: s3cr3t-value", 6, 0, "secret"),
	/* Compilers and parsers speak of tokens, too. */
	NAMED("token", "\"access_token\": \"abc123def456\"", 6, 20, "token"),
	NAMED("API key", "api_key=abc123def456", 6, 0, "api_key", "apikey", "api-key", "secret_key", "secretkey",
	      "secret-key", "access_key", "accesskey", "access-key", "accountkey"),
	NAMED("AWS secret key", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", 16, 0, "secret_access_key",
	      "secretaccesskey"),

	TOKEN("GitHub token", "ghp_" D20 D10 "abcdef", CLASS_ALNUM, 20, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
	TOKEN("GitHub fine-grained token", "github_pat_" D20 "_" D20, CLASS_WORD, 20, "github_pat_"),
	TOKEN("GitLab token", "glpat-" D20, CLASS_DOTTED, 16, "glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-",
	      "glagent-"),
	TOKEN("Slack token", "xoxb-" D10 "-abcdefghij", CLASS_DASHED, 10, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-",
	      "xoxc-", "xoxd-", "xoxe-", "xapp-"),
	TOKEN("Slack webhook", "hooks.slack.com/services/T00000000/B00000000/" D20, CLASS_PATH, 24,
	      "hooks.slack.com/services/"),
	TOKEN("Stripe key", "sk_live_" D20, CLASS_ALNUM, 16, "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"),
	TOKEN("Anthropic key", "sk-ant-api03-" D20, CLASS_BASE64URL, 16, "sk-ant-"),
	TOKEN("OpenAI key", "sk-" D20 D20, CLASS_ALNUM, 20, "sk-"),
	TOKEN("OpenAI project key", "sk-proj-" D20 "_" D20, CLASS_BASE64URL, 16, "sk-proj-", "sk-svcacct-", "sk-admin-",
	      "sk-or-v1-"),
	TOKEN("Google API key", "AIza" D20 D10 "abcde", CLASS_BASE64URL, 35, "AIza"),
	TOKEN("Google OAuth token", "ya29." D20, CLASS_DOTTED, 20, "ya29.", "GOCSPX-"),
	TOKEN("Hugging Face token", "hf_" D20 "abcdefghijklmn", CLASS_ALNUM, 30, "hf_"),
	TOKEN("npm token", "npm_" D20 D10 "abcdef", CLASS_ALNUM, 30, "npm_"),
	TOKEN("PyPI token", "pypi-AgEIcHlwaS5vcmc" D20, CLASS_BASE64URL, 24, "pypi-Ag"),
	TOKEN("RubyGems token", "rubygems_" D20 D20 "abcdefgh", CLASS_ALNUM, 30, "rubygems_"),
	TOKEN("Cargo registry token", "cio" D20 D10 "ab", CLASS_ALNUM, 32, "cio"),
	TOKEN("Docker Hub token", "dckr_pat_" D20, CLASS_BASE64URL, 16, "dckr_pat_", "dckr_oat_"),
	TOKEN("SendGrid key", "SG." D20 "ab." D20 D20 "abc", CLASS_DOTTED, 60, "SG."),
	TOKEN("DigitalOcean token", "dop_v1_" D20 D20, CLASS_ALNUM, 32, "dop_v1_", "doo_v1_", "dor_v1_"),
	TOKEN("Shopify token", "shpat_" D20 D10 "ab", CLASS_ALNUM, 30, "shpat_", "shpss_", "shpca_", "shppa_"),
	TOKEN("Vault token", "hvs." D20 "abcd", CLASS_BASE64URL, 20, "hvs.", "hvb.", "hvr."),
	TOKEN("Grafana token", "glsa_" D20 "_abcd", CLASS_WORD, 20, "glsa_", "glc_"),
	TOKEN("age secret key", "AGE-SECRET-KEY-1" D20 D20, CLASS_UPPER, 30, "AGE-SECRET-KEY-1"),
};

const size_t redact_shape_count = ARRAY_LEN(redact_shapes);
