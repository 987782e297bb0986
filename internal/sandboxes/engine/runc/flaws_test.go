package runc

import (
	"strings"
	"testing"
)

// TestDoubts: each version has the flaws that were fixed after it in its own line, and a
// distribution's is doubted, not judged.
func TestDoubts(t *testing.T) {
	const old, young = "CVE-2024-21626", "CVE-2025-31133"
	for says, want := range map[string][]string{
		"runc version 1.0.3\ncommit: v1.0.3-0-gf46b6ba2":        {old, young},
		"runc version 1.1.11\ncommit: v1.1.11-0-g4bccb38c":      {old + ", by which a container reaches the host: install 1.1.12 or later", young},
		"runc version 1.1.12\ncommit: v1.1.12-0-g51d5e946":      {young},
		"runc version 1.2.7\n":                                  {young},
		"runc version 1.2.8\n":                                  {},
		"runc version 1.3.2\n":                                  {young},
		"runc version 1.3.3\n":                                  {},
		"runc version 1.4.0-rc.2\n":                             {young},
		"runc version 1.4.0-rc.3\n":                             {},
		"runc version 1.5.2\n":                                  {},
		"runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\n": {"the distribution's 1.1.5+ds1-1+deb12u1; as published, that version has " + old, "is the distribution's to say"},
		"runc version 1.3.3-0ubuntu1~24.04.2\n":                 {},
		"runc version 1.2.5-0ubuntu1~24.04.1\n":                 {"the distribution's 1.2.5-0ubuntu1~24.04.1"},
		"runc version 1.3.4+ds1\n":                              {},
		"runc version unknown\n":                                {"does not say which version"},
		"something else\n":                                      {"does not say which version"},
	} {
		got := doubts("/sbin/runc", says)
		if len(got) != len(want) {
			t.Errorf("%q: %d doubts %q, want %d", says, len(got), got, len(want))
			continue
		}
		for i, w := range want {
			if !strings.Contains(got[i], w) {
				t.Errorf("%q: %q lacks %q", says, got[i], w)
			}
		}
	}
}
