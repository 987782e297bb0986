package policy

import "testing"

// TestARepositoryWithADotBehindIt: file systems of Windows take dots off the end of a name, as they
// take capitals for small letters, and what restricts counts for a name in capitals.
func TestARepositoryWithADotBehindIt(t *testing.T) {
	p, err := Parse("p", []byte("network_allowlist: [ { host: git.example, git: { repos: [\"acme/*\"], push: allow } }, { host: git.example, git: { repos: [acme/app], fetch: deny, push: deny } } ]"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Effect{
		"/acme/lib/git-upload-pack":      Allow, // the control
		"/acme/app/git-upload-pack":      Deny,
		"/ACME/App.git/git-receive-pack": Deny,
		"/acme/app./git-upload-pack":     Deny,
		"/acme/app./git-receive-pack":    Deny,
		"/acme./app/git-receive-pack":    Deny,
		"/acme/app.git./git-upload-pack": Deny,
		"/acme/App.git../info/refs":      Deny,
		"/acme/app..git/git-upload-pack": Deny,
		"/acme/lib./git-upload-pack":     Allow, // what allows has it as it is written
	} {
		if d, _ := p.Requests().Judge("git.example", 443, Request{Method: "POST", Path: path}); d.Effect != want {
			t.Errorf("%s: %s, want %s", path, d.Effect, want)
		}
	}
}
