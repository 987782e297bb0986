package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const requestsDocument = `network_allowlist:
  - { host: api.t.example, methods: [GET, HEAD], paths: ["/repos/acme/**", "/v1/*/info", "/"] }
  - { host: api.t.example, methods: [POST], paths: ["/repos/acme/app/issues"], max_body: 64kB }
  - { host: up.t.example, port: 8443, max_body: 1MB, deny_patterns: ["AKIA[0-9A-Z]{16}"] }
  - { host: "*.any.t.example", methods: [GET] }
  - { host: plain.any.t.example, port: 9000 }
  - "*.t.example"
`

func request(method, path string) policy.Request { return policy.Request{Method: method, Path: path} }

// TestRequests: one entry has to have the method and the path together, and a path that
// could be read in two ways is refused where paths count.
func TestRequests(t *testing.T) {
	p := mustParse(t, requestsDocument)
	for _, c := range []struct {
		name, method, path string
		port               int
		why                string // "": it is allowed
	}{
		{"api.t.example", "GET", "/repos/acme/app", 443, ""},
		{"api.t.example", "HEAD", "/repos/acme/app/pulls/1", 80, ""},
		{"api.t.example", "GET", "/repos/acme/", 443, "has api.t.example, and not GET requests to /repos/acme/"},
		{"api.t.example", "GET", "/v1/x/info", 443, ""},
		{"api.t.example", "GET", "/", 443, ""},
		{"api.t.example", "POST", "/repos/acme/app/issues", 443, ""},
		{"api.t.example", "GET", "/repos/acme/a%20b", 443, ""},
		{"any.t.example", "DELETE", "//x/../y", 443, ""}, // only *.t.example has it, without rules
		{"a.any.t.example", "GET", "//x/%2f/../y", 443, ""},
		{"up.t.example", "PUT", "/a//b", 8443, ""},

		{"api.t.example", "GET", "/repos/acme", 443, "GET requests to /repos/acme of it"},
		{"api.t.example", "GET", "/repos/acmeevil/x", 443, "of it"},
		{"api.t.example", "GET", "/repos/ACME/x", 443, "of it"},
		{"api.t.example", "GET", "/repos/%61cme/x", 443, "of it"},
		{"api.t.example", "GET", "/v1/x/y/info", 443, "of it"},
		{"api.t.example", "GET", "/v1//info", 443, "two slashes in a row"},
		{"api.t.example", "GET", "/x", 443, "of it"},
		{"api.t.example", "POST", "/repos/acme/app", 443, "of it"},
		{"api.t.example", "POST", "/repos/acme/app/issues/", 443, "of it"},
		{"api.t.example", "DELETE", "/repos/acme/app", 443, "not DELETE requests to it"},
		{"api.t.example", "get", "/repos/acme/app", 443, "not get requests to it"},
		{"a.any.t.example", "POST", "/", 443, "not POST requests to it"},
		{"api.t.example", "GET", "/repos/acme/../../user", 443, "a segment . or .."},
		{"api.t.example", "GET", "/repos/acme/..", 443, "a segment . or .."},
		{"api.t.example", "GET", "/repos/acme/./x", 443, "a segment . or .."},
		{"api.t.example", "GET", "/repos/acme/..;a/x", 443, "a segment . or .."},
		{"api.t.example", "GET", "/repos/acme/..%3Ba/x", 443, "a segment . or .."},
		{"api.t.example", "GET", "/repos/acme/%2e%2e/user", 443, "escapes a slash, a backslash, a dot or a %"},
		{"api.t.example", "GET", "/repos/acme/%2E./user", 443, "escapes a slash"},
		{"api.t.example", "GET", "/repos/acme/x%2fy", 443, "escapes a slash"},
		{"api.t.example", "GET", "/repos/acme/x%5cy", 443, "escapes a slash"},
		{"api.t.example", "GET", "/repos/acme/%252e%252e/y", 443, "escapes a slash"},
		{"api.t.example", "GET", "/repos/acme/x%00", 443, "escapes a control character"},
		{"api.t.example", "GET", "/repos/acme/x%0d%0a", 443, "escapes a control character"},
		{"api.t.example", "GET", "/repos/acme/x%zz", 443, "a % that escapes nothing"},
		{"api.t.example", "GET", "/repos/acme/x%2", 443, "a % that escapes nothing"},
		{"api.t.example", "GET", `/repos/acme/..\user`, 443, "a character that a path does not have"},
		{"api.t.example", "GET", "/repos/acme//x", 443, "two slashes in a row"},
		{"api.t.example", "GET", "//repos/acme/x", 443, "two slashes in a row"},
		{"api.t.example", "GET", "/repos/acme/x?y", 443, "a character that a path does not have"},
		{"api.t.example", "GET", "/repos/acme/é", 443, "a character that a path does not have"},
		{"api.t.example", "GET", "repos/acme/x", 443, "does not begin with a /"},
		{"api.t.example", "GET", "/repos/acme/" + strings.Repeat("a", 9_000), 443, "is too long"},
	} {
		d, _ := p.Requests().Judge(c.name, c.port, request(c.method, c.path))
		switch {
		case c.why == "" && !d.Allowed():
			t.Errorf("%s %s%s: %+v", c.method, c.name, c.path, d)
		case c.why != "" && (d.Allowed() || d.Rule != "network.request" || d.ResolvedBy != policy.ByNetwork || !strings.Contains(d.Reason, c.why)):
			t.Errorf("%s %s%s: %+v, want %q", c.method, c.name, c.path, d, c.why)
		}
		if d.Suggest != "" {
			if d, _ := mustParse(t, d.Suggest).Requests().Judge(c.name, c.port, request(c.method, c.path)); !d.Allowed() {
				t.Errorf("%q does not allow %s %s%s: %+v", d.Suggest, c.method, c.name, c.path, d)
			}
		}
	}
}

// TestWhatRequestsAreHeldTo: the terms are those of the entry that has the request, and
// the strictest of all policies'.
func TestWhatRequestsAreHeldTo(t *testing.T) {
	p := mustParse(t, requestsDocument)
	narrow := mustParse(t, "network_allowlist: [ { host: up.t.example, port: 8443, max_body: 1kB, deny_patterns: [secret] }, api.t.example ]\n")
	both, _ := p.NarrowedBy(narrow)
	for _, c := range []struct {
		p      *policy.Policy
		name   string
		port   int
		method string
		path   string
		want   string
	}{
		{p, "api.t.example", 443, "GET", "/repos/acme/app/issues", "-1 []"},
		{p, "api.t.example", 443, "POST", "/repos/acme/app/issues", "64000 []"},
		{p, "up.t.example", 8443, "PUT", "/", "1000000 [AKIA[0-9A-Z]{16}]"},
		{p, "else.t.example", 443, "PUT", "/", "-1 []"},
		{narrow, "up.t.example", 8443, "PUT", "/", "1000 [secret]"},
		{both, "up.t.example", 8443, "PUT", "/", "1000 [AKIA[0-9A-Z]{16} secret]"},
		{both, "api.t.example", 443, "POST", "/repos/acme/app/issues", "64000 []"},
	} {
		d, terms := c.p.Requests().Judge(c.name, c.port, request(c.method, c.path))
		if got := fmt.Sprint(terms.MaxBody, " ", terms.Patterns); !d.Allowed() || got != c.want {
			t.Errorf("%s %s: %s, want %s; %+v", c.method, c.name, got, c.want, d)
		}
	}
}

// TestWhoseRequestsAreJudged: what is said of a host by its name counts before what a star
// says of it, also where only the star has the port.
func TestWhoseRequestsAreJudged(t *testing.T) {
	p := mustParse(t, requestsDocument)
	for name, want := range map[string]struct{ ports, judged string }{
		"api.t.example":       {"[80 443]", "[80 443]"},
		"up.t.example":        {"[8443]", "[8443]"}, // and not by *.t.example on 443
		"a.any.t.example":     {"[80 443]", "[80 443]"},
		"plain.any.t.example": {"[80 443 9000]", "[80 443]"},
		"any.t.example":       {"[80 443]", "[]"},
		"else.t.example":      {"[80 443]", "[]"},
	} {
		judged := []int{}
		for _, port := range []int{80, 443, 8443, 9000} {
			if p.Requests().Judged(name, port) {
				judged = append(judged, port)
			}
		}
		if got := fmt.Sprint(p.HostPorts(name)); got != want.ports || fmt.Sprint(judged) != want.judged {
			t.Errorf("%s: on %s, and judged on %v; want %+v", name, got, judged, want)
		}
	}
	if got := fmt.Sprint(p.Requests().Hosts()); got != "[*.any.t.example api.t.example up.t.example]" {
		t.Error(got)
	}
	by, _ := mustParse(t, "network_allowlist: [ else.t.example ]\n").NarrowedBy(mustParse(t, "network_allowlist: [ { host: else.t.example, methods: [GET] } ]\n"))
	if d, _ := by.Requests().Judge("else.t.example", 443, request("POST", "/")); !by.Requests().Judged("else.t.example", 443) || d.Allowed() || fmt.Sprint(by.Requests().Hosts()) != "[else.t.example]" {
		t.Errorf("a policy that narrows does not judge: %+v", d)
	}
}

// TestNothingComesPastRules: neither another protocol nor a person opens what they judge.
func TestNothingComesPastRules(t *testing.T) {
	p := mustParse(t, `network_unlisted: hold
network_allowlist:
  - { host: api.t.example, port: 443, methods: [GET] }
  - { host: db.t.example, port: 9000, methods: [GET] }
  - { host: "*.t.example", port: 9000, tcp: true }
`)
	if d := p.Host("api.t.example", 80); d.Effect != policy.Deny || fmt.Sprint(p.HostPorts("api.t.example")) != "[443]" {
		t.Errorf("a person is asked about another port of a judged host: %+v, %v", d, p.HostPorts("api.t.example"))
	}
	preset := mustParse(t, "network_presets: [anthropic]\nnetwork_allowlist: [ { host: api.anthropic.com, port: 443, methods: [GET] } ]\n")
	if d, _ := preset.Requests().Judge("api.anthropic.com", 443, request("POST", "/")); d.Allowed() || preset.Host("api.anthropic.com", 80).Allowed() || !preset.Host("api.anthropic.com", 443).Allowed() {
		t.Errorf("a preset opens what is judged: %+v, %+v", d, preset.Host("api.anthropic.com", 80))
	}
	observing := mustParse(t, "mode: observe\nnetwork_allowlist: [ { host: api.t.example, port: 443, methods: [GET] } ]\n")
	if d, _ := observing.Requests().Judge("api.t.example", 443, request("POST", "/")); d.Allowed() || observing.Host("api.t.example", 80).Allowed() || !observing.Host("new.test", 80).Allowed() {
		t.Errorf("observing opens what is judged: %+v, %+v", d, observing.Host("api.t.example", 80))
	}
	if d := p.Host("new.test", 80); d.Effect != policy.Hold {
		t.Errorf("and is not about a new name: %+v", d)
	}
	if d := p.HostTCP("db.t.example", 9000); d.Allowed() || !p.Host("db.t.example", 9000).Allowed() {
		t.Errorf("other protocols pass to a judged host: %+v", d)
	}
	if d := p.HostTCP("else.t.example", 9000); !d.Allowed() {
		t.Errorf("%+v", d)
	}
	tcp, _ := mustParse(t, "network_allowlist: [ { host: db.t.example, port: 9000, tcp: true } ]\n").NarrowedBy(p)
	if d := tcp.HostTCP("db.t.example", 9000); d.Allowed() {
		t.Errorf("a policy that narrows judges, and other protocols pass: %+v", d)
	}
	given := mustParse(t, "network_allowlist: [ { host: \"*.t.example\", port: 9000, tcp: true }, \"db.t.example:9000\" ]\n"+
		"credentials: { inject: [ { host: db.t.example, secret: one } ] }\n")
	if d := given.HostTCP("db.t.example", 9000); d.Allowed() || d.Rule != "network.request" || !strings.Contains(d.Reason, "nothing but HTTP passes there") {
		t.Errorf("other protocols pass to a host that gets a secret: %+v", d)
	}
	if d := given.HostTCP("else.t.example", 9000); !d.Allowed() || !given.Host("db.t.example", 9000).Allowed() {
		t.Errorf("%+v", d)
	}
	opened, _ := mustParse(t, "network_unlisted: hold\n").NarrowedBy(mustParse(t, "network_allowlist: [ { host: api.t.example, methods: [GET] } ]\n"))
	if d, _ := opened.Requests().Judge("api.t.example", 443, request("POST", "/")); opened.Host("api.t.example", 443).Effect != policy.Hold || d.Allowed() {
		t.Errorf("what a person opens under one policy is not judged by the other: %+v", d)
	}
}

// TestRulesThatCannotBe: each with its place and what is wrong.
func TestRulesThatCannotBe(t *testing.T) {
	for entry, want := range map[string]string{
		"{ host: a.t.example, methods: [] }":                                                          "1:52: network_allowlist[0].methods has 0 entries",
		"{ host: a.t.example, methods: [get] }":                                                       "\"get\" is no method in capitals",
		"{ host: a.t.example, methods: [CONNECT] }":                                                   "is no method in capitals, or one that is never passed on",
		"{ host: a.t.example, methods: [TRACE] }":                                                     "never passed on",
		"{ host: a.t.example, methods: GET }":                                                         "network_allowlist[0].methods must be a list",
		"{ host: a.t.example, paths: [] }":                                                            "network_allowlist[0].paths has 0 entries",
		"{ host: a.t.example, paths: [repos] }":                                                       "does not begin with a /",
		"{ host: a.t.example, paths: [\"/a/../b\"] }":                                                 "a segment . or ..",
		"{ host: a.t.example, paths: [\"/a//b\"] }":                                                   "two slashes in a row",
		"{ host: a.t.example, paths: [\"/a%2fb\"] }":                                                  "escapes a slash",
		"{ host: a.t.example, paths: [\"/a?b\"] }":                                                    "a character that a path does not have",
		"{ host: a.t.example, paths: [\"/a**\"] }":                                                    "a ** that does not stand alone between slashes",
		"{ host: a.t.example, paths: [\"/**/**\"] }":                                                  "a ** behind another",
		"{ host: a.t.example, max_body: 1m }":                                                         "is no size",
		"{ host: a.t.example, max_body: -1 }":                                                         "network_allowlist[0].max_body must be from 0",
		"{ host: a.t.example, max_body: 99999999TB }":                                                 "is no size",
		"{ host: a.t.example, deny_patterns: [\"(\"] }":                                               "is not a regular expression",
		"{ host: a.t.example, deny_patterns: [x], max_body: 5MB }":                                    "may have at most 4000000 bytes",
		"{ host: a.t.example, port: 22, tcp: true, methods: [GET] }":                                  "1:64: network_allowlist[0].methods can't stand beside tcp: true",
		"{ host: a.t.example, port: 22, tcp: true, max_body: 0 }":                                     "network_allowlist[0].max_body can't stand beside tcp: true",
		"{ host: gitea, methods: [GET] }":                                                             "network_allowlist[0].methods needs a host with a dot in its name",
		"a.t.example, { host: a.t.example, port: 443, methods: [GET] }":                               "a.t.example:443 is also on line 1, once with rules for requests and once without",
		"{ host: \"*.a.t.example\", methods: [GET] }, \"*.a.t.example:80\"":                           "once with rules for requests and once without",
		"{ host: a.t.example, port: 22, tcp: true }, { host: a.t.example, port: 22, methods: [GET] }": "once with rules for requests and once without",
	} {
		_, err := policy.Parse("p", []byte("network_allowlist: [ "+entry+" ]\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "p:1:") {
			t.Errorf("%s: %v, want %q", entry, err, want)
		}
	}
}

// TestWhatRulesMean is told.
func TestWhatRulesMean(t *testing.T) {
	for _, e := range []struct {
		line    int
		meaning string
	}{
		{2, "api.t.example: TLS to it is ended outside of the sandbox, and each request is judged: GET, HEAD, on 3 paths"},
		{3, "api.t.example: TLS to it is ended outside of the sandbox, and each request is judged: POST, on 1 path, with at most 64000 bytes of body"},
		{4, "up.t.example:8443: TLS to it is ended outside of the sandbox, and each request is judged: every method, with at most 1000000 bytes of body, with nothing of 1 pattern in it"},
	} {
		if !slices.ContainsFunc(mustParse(t, requestsDocument).Check(), func(x policy.Explanation) bool { return x.Enforced && x.Line == e.line && x.Meaning == e.meaning }) {
			t.Errorf("%q is not told", e.meaning)
		}
	}
}
