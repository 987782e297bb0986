package pkgref_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestEcosystemsByTheNameOfAClient: a question may name a client or a registry; a document may
// not, and is told the word that it is to write.
func TestEcosystemsByTheNameOfAClient(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]pkgref.Ecosystem{
		"npm": "node", "pnpm": "node", "NPM": "node", "pip": "python", "uv": "python", "PyPI": "python", "golang": "go", "cargo": "rust", "node": "node", "go": "go",
	} {
		if got, err := pkgref.EcosystemCalled(word); err != nil || got != want {
			t.Errorf("%s is called %s (%v), want %s", word, got, err, want)
		}
		_, err := pkgref.ParseEcosystem(word)
		if isOwn := word == string(want); isOwn != (err == nil) {
			t.Errorf("%s in a document: %v", word, err)
		} else if err != nil && !strings.Contains(err.Error(), "here it is "+string(want)) {
			t.Errorf("%s: the error names no other word: %v", word, err)
		}
	}
	for _, word := range []string{"", "perl", "no de", "Node"} {
		if got, err := pkgref.EcosystemCalled(word); err == nil {
			t.Errorf("%q is called %s", word, got)
		}
	}
}

// TestNoWordIsOfTwoEcosystems: a word would mean the first.
func TestNoWordIsOfTwoEcosystems(t *testing.T) {
	t.Parallel()
	for _, e := range pkgref.Ecosystems() {
		if got, err := pkgref.EcosystemCalled(string(e)); err != nil || got != e {
			t.Errorf("%s is called %s (%v)", e, got, err)
		}
	}
}
