package main

import (
	"strings"
	"testing"
)

// TestOneValue: a second policy, template or engine is refused, and does not replace the first.
func TestOneValue(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{
		{"run", "policy"},
		{"run", "template"},
		{"run", "isolation"},
		{"create", "policy"},
		{"mcp", "policy"},
		{"call", "policy"},
		{"call", "named-policy"},
		{"env", "policy"},
		{"token create", "policy"},
	} {
		cmd, _, err := newRoot().Find(strings.Fields(words[0]))
		if err != nil {
			t.Fatal(err)
		}
		flag := "--" + words[1]
		if err := cmd.ParseFlags([]string{flag, "a"}); err != nil { // the control
			t.Errorf("%s %s: %v", words[0], flag, err)
		}
		if err := cmd.ParseFlags([]string{flag, "b"}); err == nil || !strings.Contains(err.Error(), "has one already") {
			t.Errorf("%s %s given twice: %v", words[0], flag, err)
		}
		if got := cmd.Flag(words[1]).Value.String(); got != "a" {
			t.Errorf("%s %s is %q", words[0], flag, got)
		}
	}
}
