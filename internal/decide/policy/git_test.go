package policy_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const gitDocument = `network_allowlist:
  - { host: git.t.example, git: { repos: ["**"] } }
  - { host: git.t.example, git: { repos: [acme/*, other/one.git], push: allow } }
  - { host: git.t.example, git: { repos: [acme/live], push: hold } }
  - { host: git.t.example, git: { repos: [acme/frozen], push: deny } }
  - { host: git.t.example, git: { repos: [acme/hidden/**], fetch: deny } }
  - { host: git.t.example, methods: [GET, POST, PUT], paths: ["/**"] }
  - { host: held.t.example, git: { repos: [acme/*], push: hold } }
  - { host: bare.t.example, methods: [GET, POST] }
  - { host: both.t.example, git: { repos: [acme/*] } }
  - { host: both.t.example, methods: [GET, POST] }
`

func fetching(repo string) []policy.Request {
	return []policy.Request{
		{Method: "GET", Path: "/" + repo + "/info/refs", Query: "service=git-upload-pack"},
		{Method: "POST", Path: "/" + repo + "/git-upload-pack"},
	}
}

func pushing(repo string) []policy.Request {
	return []policy.Request{
		{Method: "GET", Path: "/" + repo + "/info/refs", Query: "service=git-receive-pack"},
		{Method: "POST", Path: "/" + repo + "/git-receive-pack"},
	}
}

// TestGit: fetches and pushes are judged by repository, the strictest that is said of one
// counts, and no other entry has a say in them.
func TestGit(t *testing.T) {
	p := mustParse(t, gitDocument)
	for _, c := range []struct {
		name     string
		requests []policy.Request
		want     policy.Effect
	}{
		{"git.t.example", fetching("any/body/else.git"), policy.Allow},
		{"git.t.example", fetching("acme/app"), policy.Allow},
		{"git.t.example", fetching("acme/hidden/x"), policy.Deny},
		{"git.t.example", fetching("Acme/HIDDEN/x"), policy.Deny},
		{"git.t.example", pushing("acme/app.git"), policy.Allow},
		{"git.t.example", pushing("other/one"), policy.Allow},
		{"git.t.example", pushing("other/two"), policy.Deny},
		{"git.t.example", pushing("ACME/app"), policy.Deny},
		{"git.t.example", pushing("acme/app/deeper"), policy.Deny},
		{"git.t.example", pushing("acme/live"), policy.Hold},
		{"git.t.example", pushing("acme/LIVE"), policy.Hold},
		{"git.t.example", pushing("acme/frozen"), policy.Deny},
		{"git.t.example", pushing("acme/Frozen"), policy.Deny},
		{"held.t.example", pushing("acme/app"), policy.Hold},
		{"held.t.example", pushing("ACME/app"), policy.Deny},
		{"held.t.example", fetching("acme/app"), policy.Allow},
		{"held.t.example", fetching("other/app"), policy.Deny},
		{"held.t.example", []policy.Request{{Method: "GET", Path: "/acme/app"}}, policy.Deny},
		{"git.t.example", []policy.Request{{Method: "GET", Path: "/acme/app"}, {Method: "PUT", Path: "/other/app"}}, policy.Allow},
		{"bare.t.example", pushing("any/body"), policy.Allow}, // whoever says POST means it
		{"both.t.example", []policy.Request{{Method: "GET", Path: "/acme/app"}, {Method: "POST", Path: "/any/body"}}, policy.Allow},
		{"both.t.example", []policy.Request{{Method: "GET", Path: "/acme//app"}, {Method: "POST", Path: "/any/../body"}, {Method: "GET", Path: "/a%2fb"}}, policy.Deny}, // somebody might find git's in them
		{"both.t.example", pushing("any/body"), policy.Deny},
		{"git.t.example", []policy.Request{
			{Method: "POST", Path: "/acme/app/git%2dreceive-pack"},
			{Method: "POST", Path: "/acme/app/GIT-receive-pack"},
			{Method: "POST", Path: "/acme/app/git-receive-pack/"},
			{Method: "POST", Path: "/acme/app/git-receive-pack", Query: "x=1"},
			{Method: "GET", Path: "/acme/app/info/refs"},
			{Method: "POST", Path: "/acme/x/../app/git-receive-pack"},
			{Method: "GET", Path: "/acme//app"},
			{Method: "POST", Path: "/acme/app.git/y/git-receive-pack"},
		}, policy.Deny},
	} {
		for _, r := range c.requests {
			d, terms := p.Requests().Judge(c.name, 443, r)
			held := d.Allowed() && terms.HeldPush
			carries := r.Method == "POST" && strings.HasSuffix(r.Path, "receive-pack")
			if d.Allowed() != (c.want != policy.Deny) || held != (c.want == policy.Hold && carries) {
				t.Errorf("%s %s%s?%s: %s, held %v (%s)", r.Method, c.name, r.Path, r.Query, d.Effect, held, d.Reason)
			}
		}
	}
	if d, terms := p.Requests().Judge("held.t.example", 443, pushing("acme/app")[1]); terms.Git != gitwire.Push || terms.Limited() || d.Rule != "network_allowlist.held.t.example" {
		t.Errorf("a push is held by %+v, with the terms %+v", d, terms)
	}
	d, _ := p.Requests().Judge("held.t.example", 443, pushing("other/app.git")[1])
	if d.Rule != "network.git" || !strings.Contains(d.Reason, "no push of other/app") {
		t.Errorf("a push elsewhere is refused by %+v", d)
	}
	wider := mustParse(t, d.Suggest)
	if d, terms := wider.Requests().Judge("held.t.example", 443, pushing("other/app")[1]); !d.Allowed() || !terms.HeldPush {
		t.Errorf("with the suggestion it is %+v, %+v", d, terms)
	}
}

// TestGitNarrowed: a policy that narrows another can hold what that allows, and never the
// other way round.
func TestGitNarrowed(t *testing.T) {
	open := mustParse(t, "network_allowlist:\n  - { host: git.t.example, git: { repos: [acme/*], push: allow } }\n")
	held := mustParse(t, "network_allowlist:\n  - { host: git.t.example, git: { repos: [acme/app], push: hold } }\n")
	first, _ := open.NarrowedBy(held)
	second, _ := held.NarrowedBy(open)
	for _, p := range []*policy.Policy{first, second} {
		if d, terms := p.Requests().Judge("git.t.example", 443, pushing("acme/app")[1]); !d.Allowed() || !terms.HeldPush {
			t.Errorf("a push is %+v, %+v", d, terms)
		}
		if d, _ := p.Requests().Judge("git.t.example", 443, fetching("acme/other")[0]); d.Allowed() {
			t.Errorf("a fetch is %+v", d)
		}
	}
}

func TestGitMistakes(t *testing.T) {
	for entry, want := range map[string]string{
		`git: { push: allow }`:                                    "needs repos",
		`git: { repos: [] }`:                                      "has from 1 to",
		`git: { repos: [acme/*], push: ask }`:                     "push",
		`git: { repos: [acme/*], fetch: hold }`:                   "fetch",
		`git: { repos: [/acme/app] }`:                             "empty segment",
		`git: { repos: [acme/../app] }`:                           ". or ..",
		`git: { repos: ["acme/a b"] }`:                            "character",
		`git: { repos: [acme/**x] }`:                              "stand alone",
		`git: { repos: [acme/info/refs] }`:                        "part of git's protocol",
		`git: { repos: [acme/*] }, methods: [GET]`:                "can't stand beside git",
		`git: { repos: [acme/*] }, max_body: 1MB`:                 "can't stand beside git",
		`port: 22, tcp: true, git: { repos: [acme/*] }`:           "can't stand beside tcp",
		`git: { repos: [acme/*], branches: [main], push: allow }`: "branches",
	} {
		_, err := policy.Parse("p", []byte("network_allowlist:\n  - { host: git.t.example, "+entry+" }\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", entry, err)
		}
	}
}
