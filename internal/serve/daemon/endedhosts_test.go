package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestWhoseAuthoritiesAreSpared: those of named policies, and of what sandboxes and
// snapshots were made with; where one of these can't be read, nothing is known to be unused.
func TestWhoseAuthoritiesAreSpared(t *testing.T) {
	t.Parallel()
	document := func(host string) []byte {
		return fmt.Appendf(nil, "network_allowlist:\n  - { host: %s, methods: [GET] }\n", host)
	}
	named, err := policy.Parse("named", document("named.example"))
	if err != nil {
		t.Fatal(err)
	}
	text := func(digest string) ([]byte, error) {
		switch digest {
		case "sha256:1":
			return document("living.example"), nil
		case "sha256:2":
			return []byte("packages: { default: deny }\n"), nil
		case "sha256:3":
			return []byte("packages: ["), nil
		}
		return nil, fault.New(fault.ErrNotFound, "no such policy")
	}
	got, err := hostsOf([]*namedpolicy.Named{{Policy: named}}, map[string]bool{"": true, "sha256:1": true, "sha256:2": true}, text)
	if all := strings.Fields(strings.Trim(fmt.Sprint(slices.Concat(got...)), "[]")); err != nil || !slices.Equal(all, []string{"named.example", "living.example"}) {
		t.Errorf("%v %v", all, err)
	}
	for _, digest := range []string{"sha256:3", "sha256:4"} {
		if _, err := hostsOf(nil, map[string]bool{"sha256:1": true, digest: true}, text); err == nil {
			t.Errorf("%s: what it is for is not known, and nobody is told", digest)
		}
	}
}
