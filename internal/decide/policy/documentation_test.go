package policy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// page is a text of docs/.
func page(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// pageExamples are the documents in the pages about policies.
func pageExamples(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, name := range []string{"policy.md", "policy-compatibility.md"} {
		count := len(all)
		for block := range strings.SplitSeq(page(t, name), "```") {
			if document, ok := strings.CutPrefix(block, "yaml\n"); ok {
				all = append(all, document)
			}
		}
		if len(all) == count {
			t.Errorf("no example in docs/%s", name)
		}
	}
	return all
}

// TestDocumentation: every example in the pages about policies is a policy, and every
// key that a document may begin with is explained.
func TestDocumentation(t *testing.T) {
	for _, document := range pageExamples(t) {
		if _, err := policy.Parse("docs", []byte(document)); err != nil {
			t.Errorf("%v\n%s", err, document)
		}
	}
	_, err := policy.Parse("p", []byte("no_such_key_at_all: 1\n"))
	if err == nil {
		t.Fatal("an unknown key is accepted")
	}
	text := page(t, "policy.md") + page(t, "policy-compatibility.md")
	_, known, _ := strings.Cut(err.Error(), "known here: ")
	for key := range strings.SplitSeq(known, ", ") {
		if !strings.Contains(text, "`"+key) {
			t.Errorf("no page explains %s", key)
		}
	}
}
