package pkgref_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestCanonicalName(t *testing.T) {
	long := strings.Repeat("a", 300)
	tests := []struct {
		ecosystem pkgref.Ecosystem
		name      string
		want      string // "" is refused
	}{
		{pkgref.Python, "requests", "requests"},
		{pkgref.Python, "Foo._-Bar", "foo-bar"},
		{pkgref.Python, "foo-bar", "foo-bar"},
		{pkgref.Python, "FOO__BAR", "foo-bar"},
		{pkgref.Python, "zope.interface", "zope-interface"},
		{pkgref.Python, "7", "7"},
		{pkgref.Python, "", ""},
		{pkgref.Python, "-foo", ""},
		{pkgref.Python, "foo-", ""},
		{pkgref.Python, "foo bar", ""},
		{pkgref.Python, "foo%2fbar", ""},
		{pkgref.Python, "foo/../bar", ""},
		{pkgref.Python, "foo\x00", ""},
		{pkgref.Python, "foo\n", ""},
		{pkgref.Python, "r\u0435quests", ""}, // a Cyrillic letter
		{pkgref.Python, "\u212aeras", ""},    // the Kelvin sign, whose lower case is k
		{pkgref.Python, "..", ""},
		{pkgref.Python, long, ""},
		{pkgref.Node, "lodash", "lodash"},
		{pkgref.Node, "@scope/name", "@scope/name"},
		{pkgref.Node, "JSONStream", "JSONStream"}, // a package of its own
		{pkgref.Node, "@scope%2fname", ""},
		{pkgref.Node, "@scope", ""},
		{pkgref.Node, "@/name", ""},
		{pkgref.Node, "@scope/na/me", ""},
		{pkgref.Node, "scope/name", ""},
		{pkgref.Node, ".hidden", ""},
		{pkgref.Node, "_x", ""},
		{pkgref.Node, "node_modules", ""},
		{pkgref.Node, "@s/..", ""},
		{pkgref.Node, long, ""},
		{pkgref.Go, "example.com/Mod/v2", "example.com/Mod/v2"},
		{pkgref.Go, "example.com/!mod", ""},
		{pkgref.Go, "example.com/../x", ""},
		{pkgref.Go, "example.com//x", ""},
		{pkgref.Go, "Example.com/x", ""},
		{pkgref.Go, "fmt", ""},
		{pkgref.Go, "example.com/Mod/v1", ""},
		{pkgref.Go, "example.com/Mod/v02", ""},
		{pkgref.Go, "gopkg.in/yaml.v3", "gopkg.in/yaml.v3"},
		{pkgref.Go, "gopkg.in/yaml", ""},
		{pkgref.Go, "example.com/con", ""},
		{pkgref.Go, "example.com/x~1", ""},
		{pkgref.Go, "example.com/.x", ""},
		{pkgref.Rust, "serde_json", "serde-json"},
		{pkgref.Rust, "Serde-JSON", "serde-json"},
		{pkgref.Rust, "1x", ""},
		{pkgref.Rust, "a.b", ""},
		{"ruby", "rails", ""},
		{"", "x", ""},
	}
	for _, tt := range tests {
		got, err := pkgref.CanonicalName(tt.ecosystem, tt.name)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("CanonicalName(%s, %q) = %q, %v; want %q", tt.ecosystem, tt.name, got, err, tt.want)
		}
		if err != nil && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("CanonicalName(%s, %q): %v is no ErrInvalid", tt.ecosystem, tt.name, err)
		}
	}
}

func TestCanonicalVersion(t *testing.T) {
	tests := []struct {
		ecosystem     pkgref.Ecosystem
		version, want string
	}{
		{pkgref.Python, "1.0-RC1", "1.0rc1"},
		{pkgref.Python, "1.0.0", "1.0.0"},
		{pkgref.Python, "v1.0-1", "1.0.post1"},
		{pkgref.Python, "latest", ""},
		{pkgref.Python, "", ""},
		{pkgref.Node, "1.2.3-rc.1+build", "1.2.3-rc.1+build"},
		{pkgref.Node, "v1.2.3", ""},
		{pkgref.Node, "1.2", ""},
		{pkgref.Node, "01.2.3", ""},
		{pkgref.Go, "v1.2.3", "v1.2.3"},
		{pkgref.Go, "v2.2.3+incompatible", "v2.2.3+incompatible"},
		{pkgref.Go, "v1.2.3+incompatible", ""},
		{pkgref.Go, "v1.2.3+meta", ""},
		{pkgref.Go, "v0.0.0-20200101000000-0123456789ab", "v0.0.0-20200101000000-0123456789ab"},
		{pkgref.Go, "v1.2", ""},
		{pkgref.Go, "v1.02.0", ""},
		{pkgref.Go, "1.2.3", ""},
		{pkgref.Go, "main", ""},
		{pkgref.Rust, "1.0.0", "1.0.0"},
		{pkgref.Rust, "1.0.0-", ""},
		{"ruby", "1.0", ""},
		{pkgref.Python, strings.Repeat("1.", 400) + "0", ""},
	}
	for _, tt := range tests {
		got, err := pkgref.CanonicalVersion(tt.ecosystem, tt.version)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("CanonicalVersion(%s, %q) = %q, %v; want %q", tt.ecosystem, tt.version, got, err, tt.want)
		}
	}
}

// TestGoRelease: a module's path and its version's major agree.
func TestGoRelease(t *testing.T) {
	tests := []struct {
		path, version string
		ok            bool
	}{
		{"example.com/x", "v1.0.0", true},
		{"example.com/x", "v2.0.0", false},
		{"example.com/x", "v2.0.0+incompatible", true},
		{"example.com/x/v2", "v2.0.0", true},
		{"example.com/x/v2", "v2.0.0+incompatible", false},
		{"example.com/x/v2", "v3.0.0", false},
		{"gopkg.in/yaml.v3", "v3.0.1", true},
		{"gopkg.in/check.v1", "v0.0.0-20161208181325-20d25e280405", true},
		{"gopkg.in/check.v1", "v2.0.0", false},
	}
	for _, tt := range tests {
		ref, err := pkgref.New(pkgref.Go, tt.path, tt.version)
		if (err == nil) != tt.ok || (err != nil && !errors.Is(err, fault.ErrInvalid)) {
			t.Errorf("New(%s, %s) = %v, %v", tt.path, tt.version, ref, err)
		}
	}
}

func TestSameVersion(t *testing.T) {
	tests := []struct {
		ecosystem pkgref.Ecosystem
		a, b      string
		want      bool
	}{
		{pkgref.Python, "1.0", "1.0.0", true},
		{pkgref.Python, "1.0", "1.0.post1", false},
		{pkgref.Python, "x", "y", false},
		{pkgref.Node, "1.0.0", "1.0.0", true},
		{pkgref.Node, "1.0.0", "1.0.0+b", false},
	}
	for _, tt := range tests {
		if got := pkgref.SameVersion(tt.ecosystem, tt.a, tt.b); got != tt.want {
			t.Errorf("SameVersion(%s, %s, %s) = %v", tt.ecosystem, tt.a, tt.b, got)
		}
	}
}

// FuzzCanonicalName: a canonical name is its own canonical name, and printable
// ASCII that neither YAML nor a message needs to escape.
func FuzzCanonicalName(f *testing.F) {
	for _, s := range []string{"Foo._-Bar", "@scope/name", "example.com/a/v2", "serde_json", "\u212a", "a\"b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, e := range pkgref.Ecosystems() {
			got, err := pkgref.CanonicalName(e, name)
			if err != nil {
				continue
			}
			if !pkgref.IsCanonicalName(e, got) {
				t.Fatalf("%s: %q becomes %q, which is not canonical", e, name, got)
			}
			if strings.Trim(got, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~@/") != "" {
				t.Fatalf("%s: %q becomes %q", e, name, got)
			}
		}
	})
}
