package quota_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
)

// TestOneOwnerLeavesAPart: whatever one token asks for, the others' part stays, in each of the ways in which a
// sandbox comes to be promised something; the operator's own have no such bound.
func TestOneOwnerLeavesAPart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host  quota.Host
		token string
		fit   int // of sandboxes of one CPU and 1 GiB
		words []string
	}{
		"memory":          {quota.Host{MemoryBytes: 8 << 30, OwnerPart: 0.75}, "t", 6, []string{"6144 MiB", "7168 MiB", "overcommit.owner"}},
		"cpu":             {quota.Host{CPU: 8, OwnerPart: 0.5}, "t", 4, []string{"4 CPU", "5 CPU", "overcommit.owner"}},
		"both":            {quota.Host{CPU: 8, MemoryBytes: 4 << 30, OwnerPart: 0.5}, "t", 2, []string{"2048 MiB", "overcommit.owner"}},
		"all of it":       {quota.Host{CPU: 8, OwnerPart: 1}, "t", 8, []string{"this host is full"}},
		"not set":         {quota.Host{CPU: 8}, "t", 8, []string{"this host is full"}},
		"the operator":    {quota.Host{CPU: 8, OwnerPart: 0.25}, "", 8, []string{"this host is full"}},
		"less than one":   {quota.Host{CPU: 1, OwnerPart: 0.75}, "t", 0, []string{"the sandbox asks for 1 CPU, and overcommit.owner leaves one token 0.75 CPU"}},
		"less memory":     {quota.Host{MemoryBytes: 1 << 30, OwnerPart: 0.75}, "t", 0, []string{"the sandbox asks for 1024 MiB of memory, and overcommit.owner leaves one token 768 MiB"}},
		"nothing bounded": {quota.Host{OwnerPart: 0.1}, "t", 50, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := quota.NewBook(c.host)
			share := quota.Share{Token: c.token, CPU: 1, MemoryBytes: 1 << 30}
			for i := range c.fit {
				if err := b.Take(string(rune('a'+i)), share, token.Quota{}); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
			}
			if c.words == nil {
				return
			}
			refused(t, b.Take("more", share, token.Quota{}), c.words...)
			if c.fit == 0 || c.token == "" || c.host.OwnerPart == 0 || c.host.OwnerPart == 1 {
				return
			}
			b.Rest("a")
			other := share
			other.Token = "u"
			if err := b.Take("other", other, token.Quota{}); err != nil {
				t.Errorf("another token's: %v", err)
			}
			if err := b.Take("more", share, token.Quota{}); err != nil {
				t.Errorf("while one is paused: %v", err)
			}
			refused(t, b.Wake("a", token.Quota{}), "overcommit.owner")
		})
	}
}
