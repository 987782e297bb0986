package policy_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestPackagesOfTheDistribution: only a document that says so lets them in, whatever its
// default is, and only as long as all that narrow it agree.
func TestPackagesOfTheDistribution(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]policy.Effect{
		"name: none\n": policy.Deny, "packages: { default: allow }\n": policy.Deny, "packages: { default: hold }\n": policy.Deny,
		"packages: { default: allow, system: deny }\n": policy.Deny, "packages: { default: deny, system: allow }\n": policy.Allow,
	} {
		p, err := policy.Parse("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		d := p.System()
		if d.Effect != want || d.Rule != "packages.system" || d.Reason == "" {
			t.Errorf("%q: %+v, want %s", text, d, want)
		}
		if want != policy.Deny {
			continue
		}
		if q, err := policy.Parse("p", []byte(d.Suggest)); err != nil || !q.System().Allowed() {
			t.Errorf("%q: the lines that it suggests do not allow it: %q, %v", text, d.Suggest, err)
		}
		open, err := policy.Parse("q", []byte("packages: { system: allow }\n"))
		if err != nil {
			t.Fatal(err)
		}
		if narrowed, ok := open.NarrowedBy(p); !ok || narrowed.System().Allowed() {
			t.Errorf("%q does not narrow one that allows them", text)
		}
	}
	if _, err := policy.Parse("p", []byte("packages: { system: hold }\n")); err == nil || !strings.Contains(err.Error(), "packages.system must be deny or allow") {
		t.Errorf("nobody can be asked about them, and hold gives %v", err)
	}
}
