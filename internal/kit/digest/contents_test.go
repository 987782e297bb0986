package digest_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cofferdam-dev/cofferdam/internal/kit/digest"
)

func digestOf(t *testing.T, files ...string) string {
	t.Helper()
	f := digest.Files{}
	for _, file := range files {
		name, text, _ := strings.Cut(file, "=")
		if err := f.Add(name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return f.Digest()
}

// TestDigest: files have one digest in any order, and another if a path or a byte
// differs, wherever one ends and the next begins.
func TestDigest(t *testing.T) {
	want := digestOf(t, "package.json={}", "lib/a.js=1")
	for _, same := range [][]string{
		{"lib/a.js=1", "package.json={}"},
		{"lib/a.js=1", "package.json={}", ".npmignore=x", "lib/.gitignore=y"},
	} {
		if got := digestOf(t, same...); got != want {
			t.Errorf("%q has another digest", same)
		}
	}
	seen := map[string]bool{want: true}
	for _, other := range [][]string{
		{"package.json={}"},
		{"package.json={}", "lib/a.js=2"},
		{"package.json={}", "lib/b.js=1"},
		{"package.json={}", "lib/a.js=1", "evil.js="},
		{"package.json={}\nlib/a.js=1"},
		{"x=", "y="},
		{"x\ny="},
	} {
		if got := digestOf(t, other...); seen[got] || got == "" {
			t.Errorf("%q has a digest that others have", other)
		} else {
			seen[got] = true
		}
	}
	if digestOf(t) != "" {
		t.Error("no files have a digest")
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	f := digest.Files{}
	if f.Add("a", iotest.ErrReader(errors.New("broken"))) == nil || f.Digest() != "" {
		t.Error("a file that can't be read counts")
	}
}
