package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// TestPrivateNames: a registry that is not its own never hears a private name,
// whichever list says so, though the client asks there, and it has a file of
// that name.
func TestPrivateNames(t *testing.T) {
	t.Parallel()
	const public, private = "public.example", "private.example"
	l := liar.New(t, public, private)
	wheel, digest := bigWheel(t, 1<<10)
	data, err := os.ReadFile(wheel)
	if err != nil {
		t.Fatal(err)
	}
	page := liar.Body("text/html", fmt.Appendf(nil, `<!DOCTYPE html><html><body><a href="/files/big-1.0-py3-none-any.whl#sha256=%s">big-1.0-py3-none-any.whl</a></body></html>`, digest))
	for _, host := range []string{public, private} {
		l.Script(host+"/simple/big/", page)
		l.Script(host+"/files/big-1.0-py3-none-any.whl", liar.Body("application/octet-stream", data))
	}
	// Clients are told of the first upstream only.
	first := strings.Replace(localUpstream(t, l, public), "[big]", "[]", 1)
	second := strings.ReplaceAll(localUpstream(t, l, private), "probe_projects: [big]\n", "")
	config := strings.Replace(second, "upstreams:\n", first[:strings.Index(first, "probe_projects")], 1) + "probe_projects: []\n"
	policy := "allowed_packages: { python: [ { name: big } ] }\n"
	namespace := func(upstream string) string {
		return fmt.Sprintf("namespaces: [ { ecosystem: python, pattern: big, upstream: 'https://%s/simple/' } ]\n", upstream)
	}
	for _, c := range []struct {
		name, config, policy    string
		installs                bool
		askedPublic, askedOwner bool
	}{
		{"nobody's own", config, policy, true, true, false},
		{"the configuration's", config + namespace(private), policy, true, false, true},
		{"the policy's", config, policy + namespace(private), true, false, true},
		{"the policy's, of an upstream that is not there", config, policy + namespace("elsewhere.example"), false, false, false},
	} {
		asked := func(host string) int {
			return l.Count(host+"/simple/big/") + l.Count(host+"/files/big-1.0-py3-none-any.whl")
		}
		publicBefore, ownBefore := asked(public), asked(private)
		in := start(t, c.config)
		got := in.run(in.create("debian", c.policy), "uv", "pip", "install", "big")
		if (got.Exit.Code == 0) != c.installs || strings.Contains(got.Stderr, "its name belongs to another upstream") == c.installs {
			t.Errorf("%s: uv ended with %+v\n%s", c.name, got.Exit, got.Stderr)
		}
		if n := asked(public) - publicBefore; (n > 0) != c.askedPublic {
			t.Errorf("%s: the public registry was asked %d times", c.name, n)
		}
		if n := asked(private) - ownBefore; (n > 0) != c.askedOwner {
			t.Errorf("%s: its own registry was asked %d times", c.name, n)
		}
	}
}
