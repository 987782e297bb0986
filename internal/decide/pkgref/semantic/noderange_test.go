package semantic_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref/semantic"
)

// The answers below are those of semver 7.8.5, which npm 11 brings; half a
// million drawn pairs of a range and a version were compared with it as well.

func nodeVersions() []string {
	return strings.Fields(`0.0.0 0.0.3 0.0.4 0.0.3-beta 0.2.3 0.2.9 0.3.0 1.0.0 1.2.2 1.2.3 1.2.3+other 1.2.4 1.3.0 1.9.9 1.2.3-alpha.3 1.2.3-beta.1 1.2.3-beta.2 1.2.3-beta.10 1.2.4-beta 2.0.0-0 2.0.0-rc.1 2.0.0-rc.2 2.0.0 2.3.4 2.3.5 3.0.0-a 3.0.0`)
}

func nodeRanges() map[string]string {
	return map[string]string{
		"^1.2.3":                  "000000000111110000000000000",
		"^1.2":                    "000000001111110000000000000",
		"^1":                      "000000011111110000000000000",
		"^0.2.3":                  "000011000000000000000000000",
		"^0.0.3":                  "010000000000000000000000000",
		"^0.0":                    "111000000000000000000000000",
		"^0":                      "111011100000000000000000000",
		"^1.2.3-beta.2":           "000000000111110011000000000",
		"^0.2.3-beta":             "000011000000000000000000000",
		"^0.0.3-beta":             "010100000000000000000000000",
		"^1.x":                    "000000011111110000000000000",
		"^x":                      "111011111111110000000011101",
		"~1.2.3":                  "000000000111000000000000000",
		"~1.2":                    "000000001111000000000000000",
		"~1":                      "000000011111110000000000000",
		"~0.2.3":                  "000011000000000000000000000",
		"~1.2.3-beta.2":           "000000000111000011000000000",
		"~>1.2":                   "000000001111000000000000000",
		"~ 1.2.3":                 "000000000111000000000000000",
		"1.2.3":                   "000000000110000000000000000",
		"=1.2.3":                  "000000000110000000000000000",
		"v1.2.3":                  "000000000110000000000000000",
		"=v1.2.3":                 "000000000110000000000000000",
		"1.2":                     "000000001111000000000000000",
		"1":                       "000000011111110000000000000",
		"1.x":                     "000000011111110000000000000",
		"1.2.x":                   "000000001111000000000000000",
		"1.2.*":                   "000000001111000000000000000",
		"1.X":                     "000000011111110000000000000",
		"*":                       "111011111111110000000011101",
		"x":                       "111011111111110000000011101",
		"":                        "111011111111110000000011101",
		">=1.2.3":                 "000000000111110000000011101",
		">1.2.3":                  "000000000001110000000011101",
		"<1.2.3":                  "111011111000000000000000000",
		"<=1.2.3":                 "111011111110000000000000000",
		">1":                      "000000000000000000000011101",
		">1.2":                    "000000000000110000000011101",
		"<=1":                     "111011111111110000000000000",
		"<=1.2":                   "111011111111000000000000000",
		"<2":                      "111011111111110000000000000",
		"<2.0":                    "111011111111110000000000000",
		">=2":                     "000000000000000000000011101",
		">=0.0.0":                 "111011111111110000000011101",
		">= 1.2.3":                "000000000111110000000011101",
		"1.2.3 - 2.3.4":           "000000000111110000000011000",
		"1.2 - 2.3.4":             "000000001111110000000011000",
		"1.2.3 - 2.3":             "000000000111110000000011100",
		"1.2.3 - 2":               "000000000111110000000011100",
		"1.2.3-beta - 2.0.0-rc.1": "000000000111110111011000000",
		"* - 2":                   "111011111111110000000011100",
		"1.2.3 || 2.0.0":          "000000000110000000000010000",
		"^1.0.0 || ^2.0.0":        "000000011111110000000011100",
		"1.2.3||2.0.0-rc.1":       "000000000110000000001000000",
		">=1.2.3 <2.0.0":          "000000000111110000000000000",
		">1.2.3-alpha.3":          "000000000111110111000011101",
		">=2.0.0-rc.1":            "000000000000000000001111101",
		"<2.0.0-rc.2":             "111011111111110000011000000",
		"<2.0.0-0":                "111011111111110000000000000",
		">=1.2.3-beta.1 <1.3.0":   "000000000111000111000000000",
		"* || 2.0.0-rc.1":         "111011111111110000000011101",
		">=0.0.0 || 2.0.0-rc.1":   "111011111111110000000011101",
		">=*":                     "111011111111110000000011101",
		">*":                      "000000000000000000000000000",
		"<*":                      "000000000000000000000000000",
		"1.2.3+build":             "000000000110000000000000000",
		">=1.2.3 <1.2.3":          "000000000000000000000000000",
		"2.0.0-rc.1":              "000000000000000000001000000",
	}
}

func TestNodeRange(t *testing.T) {
	for text, want := range nodeRanges() {
		r, ok := semantic.ParseNodeRange(text)
		if !ok {
			t.Errorf("%q is refused", text)
			continue
		}
		for i, version := range nodeVersions() {
			v, ok := semantic.Parse(version)
			if !ok {
				t.Fatalf("%q is refused", version)
			}
			if got := r.Match(v); got != (want[i] == '1') {
				t.Errorf("%q matches %q: %v", text, version, got)
			}
			if r.Match(v) && !r.MatchPreReleases(v) && !v.PreRelease() {
				t.Errorf("%q matches %q only without pre-releases", text, version)
			}
		}
	}
}

// TestNodePreReleases: for lists that name them at large, order decides.
func TestNodePreReleases(t *testing.T) {
	for _, tt := range []struct {
		text, version string
		want          bool
	}{
		{"^1.2.3", "1.9.0-rc.1", true},
		{"^1.2.3", "2.0.0-rc.1", false},
		{"<2.0.0", "2.0.0-rc.1", false},
		{"<2.0.0", "1.9.0-rc.1", true},
		{"<2.0.0-rc.2", "2.0.0-rc.1", true},
		{"<=2.0.0", "2.0.0-rc.1", true},
		{"*", "2.0.0-rc.1", true},
		{"1.2.x", "1.2.0-rc.1", false},
		{"1.2.x", "1.2.1-rc.1", true},
	} {
		r, _ := semantic.ParseNodeRange(tt.text)
		v, _ := semantic.Parse(tt.version)
		if got := r.MatchPreReleases(v); got != tt.want {
			t.Errorf("%q matches %q: %v", tt.text, tt.version, got)
		}
	}
}

func TestNodeRangeRefused(t *testing.T) {
	for _, text := range []string{
		"latest", "next", "npm:x@^1", "file:../x", "github:u/r", "git+ssh://h.example/r.git", "https://files.example/x.tgz", "workspace:*", "1.2.3.4", "^^1", "~^1", ">=1,<2", "==1.2.3", "!=1.2.3",
		"^1.2.3 | ^2", "- 2", "1 -", "01.2.3", "1.02.3", "1.2.3-01", "1.2.3-", "1.2.3-a..b", "9007199254740992.0.0", "x.1.2", "1.x.2", "a", "^", ">", "||latest", "1.2.3 - 2.0.0 3", ">= > 1", "1.2.3\u00a0",
		strings.Repeat("1 ", 65), strings.Repeat("1||", 65), strings.Repeat(" ", 3000),
	} {
		if _, ok := semantic.ParseNodeRange(text); ok {
			t.Errorf("the range %q is understood", text)
		}
	}
	if (semantic.NodeRange{}).Match(semantic.Version{}) {
		t.Error("the zero range matches")
	}
	huge, _ := semantic.Parse("9007199254740992.0.0")
	if r, _ := semantic.ParseNodeRange("*"); r.Match(huge) {
		t.Error("a version that node can't read is matched")
	}
}

func FuzzParseNodeRange(f *testing.F) {
	for text := range nodeRanges() {
		f.Add(text, "1.2.3-beta.2")
	}
	f.Fuzz(func(t *testing.T, text, version string) {
		r, ok := semantic.ParseNodeRange(text)
		v, okV := semantic.Parse(version)
		if !ok || !okV {
			return
		}
		if again, _ := semantic.ParseNodeRange("  " + text + "\t"); again.Match(v) != r.Match(v) {
			t.Fatalf("blanks change what %q means for %q", text, version)
		}
		if either, ok := semantic.ParseNodeRange("1.0.0 || " + text); ok && r.Match(v) && !either.Match(v) {
			t.Fatalf("an alternative to %q takes %q away", text, version)
		}
	})
}
