package policy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// TestDocumentation: every example in docs/policy.md is a policy, and every
// key that a document may begin with is in it.
func TestDocumentation(t *testing.T) {
	data, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(data), "```")
	count := 0
	for _, block := range blocks {
		if document, ok := strings.CutPrefix(block, "yaml\n"); ok {
			count++
			if _, err := policy.Parse("docs/policy.md", []byte(document)); err != nil {
				t.Errorf("%v\n%s", err, document)
			}
		}
	}
	if count == 0 {
		t.Error("no example in docs/policy.md")
	}
	_, err = policy.Parse("p", []byte("no_such_key_at_all: 1\n"))
	if err == nil {
		t.Fatal("an unknown key is accepted")
	}
	_, known, _ := strings.Cut(err.Error(), "known here: ")
	for key := range strings.SplitSeq(known, ", ") {
		if !strings.Contains(string(data), "`"+key) {
			t.Errorf("docs/policy.md does not explain %s", key)
		}
	}
}
