package semantic_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/semantic"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		text, version string
		want          bool
	}{
		{"", "1.2.3", true},
		{">=1.2.0,<2", "1.9.9", true},
		{">=1.2.0,<2", "2.0.0", false},
		{"<2", "2.0.0-rc.1", false},
		{"<2.0.0-rc.2", "2.0.0-rc.1", true},
		{">1.2.3", "1.2.4-alpha", true},
		{"==1.2.*", "1.2.9", true},
		{"==1.2.*", "1.3.0", false},
		{"!=1.2.*", "1.3.0", true},
		{"==1.2.3", "1.2.3+build", true},
		{"<=v1.2.3", "1.2.3", true},
		{">=1.0.0-2", "1.0.0-10", true},
		{">=1.0.0-2", "1.0.0-1", false},
		{">1.0.0-9", "1.0.0-a", true},
	}
	for _, tt := range tests {
		r, ok := semantic.ParseRange(tt.text)
		v, okV := semantic.Parse(tt.version)
		if !ok || !okV {
			t.Errorf("%q or %q is refused", tt.text, tt.version)
			continue
		}
		if got := r.Match(v); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.text, tt.version, got)
		}
	}
}

// TestRefused: what would need a full range language admits nothing.
func TestRefused(t *testing.T) {
	for _, text := range []string{
		"^1.2.3", "~1.2.3", "1.2.3", "1.x", ">=1 <2", ">=1||<2", "*", "latest", "1 - 2", "==1.2.3.*", ">=1.*", "==*", "=1.0.0",
		"==1.2.3.4", ">=1,", ",", "==-1.*", "==1.-a.*", "npm:x@1", "file:x",
	} {
		if _, ok := semantic.ParseRange(text); ok {
			t.Errorf("the range %q is understood", text)
		}
	}
}

// TestGoMinimum: what a go.mod requires, as ">=" its version.
func TestGoMinimum(t *testing.T) {
	order := []string{
		"v0.0.0-20190101000000-abcdefabcdef", "v0.0.0-20240101000000-abcdefabcdef", "v0.1.0", "v1.2.3-0.20240101000000-abcdefabcdef", "v1.2.3-alpha",
		"v1.2.3-pre.0.20240101000000-abcdefabcdef", "v1.2.3", "v1.2.4-0.20240101000000-abcdefabcdef", "v1.10.0", "v2.0.0+incompatible", "v3.0.1+incompatible",
	}
	for i, least := range order {
		r, ok := semantic.ParseRange(">=" + least)
		if !ok {
			t.Fatalf(">=%s is refused", least)
		}
		for k, version := range order {
			v, ok := semantic.ParseGo(version)
			if !ok || r.Match(v) != (k >= i) {
				t.Errorf(">=%s matches %s: %v", least, version, r.Match(v))
			}
		}
	}
}

func FuzzParseRange(f *testing.F) {
	f.Add(">=1.2.0,<2", "1.2.3-rc.1+b")
	f.Add("==1.*", "0.0.0")
	f.Fuzz(func(t *testing.T, text, version string) {
		r, ok := semantic.ParseRange(text)
		v, okV := semantic.Parse(version)
		if okV && v.Compare(v) != 0 {
			t.Fatalf("%q differs from itself", version)
		}
		if ok && okV {
			r.Match(v)
		}
	})
}
