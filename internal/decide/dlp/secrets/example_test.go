package secrets_test

import (
	"encoding/base64"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
)

// checked is a token of the form that ends with a checksum of what is before it.
func checked(prefix, text string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum, end := crc32.ChecksumIEEE([]byte(text)), ""
	for range 6 {
		end = string(digits[sum%62]) + end
		sum /= 62
	}
	return prefix + text + end
}

func letters(n int) string { return strings.Repeat("aB3dE6gH9k", n/10+1)[:n] }

func word(n int) string { return strings.Repeat("aBcdEfgHik", n/10+1)[:n] }

func hexed(n int) string { return strings.Repeat("0f1e2d3c4b", n/10+1)[:n] }

// examples is a value for each form, made here: none of them opens anything, and none
// stands in the source as it is looked for.
func examples() map[string][]string {
	classic := checked("ghp_", letters(30))
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	head := "-----BEGIN "
	return map[string][]string{
		"anthropic-key":       {"sk-ant-" + "api03-" + letters(90)},
		"circleci-token":      {"CCIPAT_" + letters(22) + "_" + hexed(40), "CCIPRJ_" + letters(22) + "_" + hexed(40)},
		"digitalocean-token":  {"dop_v1_" + hexed(64)},
		"google-api-key":      {"AIzaSy" + "A" + letters(32)},
		"google-access-token": {"ya29." + letters(60)},
		"github-token": {
			classic, checked("gho_", letters(30)), checked("ghs_", letters(30)), checked("ghu_", letters(30)),
			base64.StdEncoding.EncodeToString([]byte(classic)),
		},
		"xai-key":              {"xai-" + letters(80), "xai-token-" + letters(80)},
		"huggingface-token":    {"hf_" + word(34)},
		"npm-token":            {"npm_" + letters(36)},
		"openrouter-key":       {"sk-or-v1-" + hexed(64)},
		"openai-key":           {"sk-" + "proj-" + letters(40) + "T3BlbkFJ" + letters(40)},
		"perplexity-key":       {"pplx-" + letters(48)},
		"postman-key":          {"PMAK-" + hexed(24) + "-" + hexed(34)},
		"pypi-token":           {"pypi-" + letters(120)},
		"rubygems-key":         {"rubygems_" + hexed(48)},
		"sendgrid-key":         {"SG." + letters(22) + "." + letters(43)},
		"slack-token":          {"xapp-" + "1-" + letters(11) + "-1234567890123-" + hexed(64), "xoxb-" + "1234567890-1234567890-" + letters(24)},
		"stripe-key":           {"sk_live_" + letters(30), "rk_live_" + letters(30), "whsec_" + letters(32)},
		"aws-access-key-id":    {"AKIA" + "Q2W3E4R5T6Y7U2I3"},
		"aws-secret-key":       {letters(40)},
		"gitlab-token":         {"glpat-" + letters(20)},
		"e2b-key":              {"e2b_" + hexed(40)},
		"docker-token":         {"dckr_pat_" + letters(27)},
		"google-client-secret": {"GOCSPX-" + letters(28)},
		"jwt":                  {part(`{"alg":"HS256"}`) + "." + part(`{"sub":"somebody"}`) + "." + letters(43)},
		"private-key": {
			head + "EC PRIVATE KEY-----\n" + letters(64) + "\n" + letters(64) + "\n-----END " + "EC PRIVATE KEY-----",
			head + "PRIVATE KEY-----\\n" + letters(64) + "\\n" + letters(20) + "==\\n-----END " + "PRIVATE KEY-----",
			head + "OPENSSH PRIVATE KEY-----\n" + letters(70) + "\n" + letters(30),
		},
		"url-password": {"h0rsebattery"},
	}
}

// around is how a value stands in a text, where it is no value by itself.
func around(name string) (before, after string) {
	switch name {
	case "aws-secret-key":
		return `aws_secret_access_key = `, "\n"
	case "url-password":
		return "https://somebody:", "@host.example/"
	case "private-key":
		return "key: ", "\n(and more)"
	}
	return "value=", " and more"
}

// TestEveryRule: each rule finds its own, exactly as long as it is, and each has an example
// here: a library that was changed so that a rule finds nothing is seen.
func TestEveryRule(t *testing.T) {
	set := dlp.NewSet(secrets.Rules()...)
	seen := map[string]bool{}
	for name, values := range examples() {
		before, after := around(name)
		seen[name] = true
		for _, v := range values {
			masked, found := set.Text(before+v+after, dlp.Plan{Secrets: dlp.Report})
			if len(found) != 1 || found[0].Rule != name || found[0].At != int64(len(before)) || found[0].Length != len(v) {
				t.Errorf("%s in %q: %+v", name, before+v+after, found)
				continue
			}
			if want := before + strings.Repeat("*", len(v)) + after; masked != want {
				t.Errorf("%s: %q, want %q", name, masked, want)
			}
		}
	}
	for _, name := range set.Rules() {
		if !seen[name] {
			t.Errorf("%s has no example", name)
		}
	}
}

// TestNotQuite: what looks like a secret and is none.
func TestNotQuite(t *testing.T) {
	set := dlp.NewSet(secrets.Rules()...)
	classic := checked("ghp_", letters(30))
	for _, text := range []string{
		classic[:len(classic)-1] + "_",          // another checksum
		"AKIA" + "IOSFODNN7" + "EXAMPLE",        // the documentation's
		"AKIA" + "Q2W3E4R5T6Y7U2I3X",            // longer than one is
		"task-ant-colony-optimisation",          // a word
		"sk-" + "ant-api03-short",               //
		"npm_config_registry=https://a.example", // a variable
		"https://user:password@host.example",    // says that it is one
		"https://user:${TOKEN_1}@host.example",
		"https://host.example:8080/@scope/name@1.2.3",
		"-----BEGIN " + "PRIVATE KEY-----\n...\n-----END " + "PRIVATE KEY-----",
		"eyJ" + letters(40) + ".eyJ" + letters(40) + ".x", // no JSON in it
		"xoxb-" + "your-token-here",
	} {
		if _, found := set.Text(text, dlp.Plan{Secrets: dlp.Report}); len(found) != 0 {
			t.Errorf("%q: %+v", text, found)
		}
	}
}

func TestLiteral(t *testing.T) {
	rule, ok := secrets.Literal("of-the-run", "hunter2hunter2")
	if !ok {
		t.Fatal("no rule")
	}
	set := dlp.NewSet(append(secrets.Rules(), rule)...)
	masked, found := set.Text("is it hunter2hunter2hunter2?", dlp.Plan{Secrets: dlp.Report})
	if len(found) != 1 || found[0].Rule != "of-the-run" || masked != "is it **************hunter2?" {
		t.Errorf("%q, %+v", masked, found)
	}
	if _, ok := secrets.Literal("short", "1234567"); ok {
		t.Error("a value of 7 bytes is taken")
	}
}
