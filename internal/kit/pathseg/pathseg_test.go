package pathseg_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/pathseg"
)

// TestDots: whatever some server trims or decodes to a dot, or two, is one; other names are
// themselves.
func TestDots(t *testing.T) {
	for _, s := range []string{
		".", "..", "...", "..;a=b", "..%3Ba", "%2e%2E", "%252e.", "..%20", "%20..", "..+", ". .", "..%c2%a0", "..%09", "..%e2%80%8b", "%ef%bc%8e%ef%bc%8e", "%e2%80%a4.", "%e2%80%a5",
		"%e2%80%a6", "..%ef%bb%bf", "%e3%80%82.", "..%00", "..;", "%ef%bd%a1%ef%bd%a1",
		"..%ef%b8%8f", ".%ef%b8%80.", ".%cd%8f.", "..%e2%a0%80", "..%e3%85%a4", "..%ef%be%a0", "..%c2%ad", ".%e2%81%a0.", "..%e1%a0%8b", "..%f3%a0%84%80", "..%e1%85%9f", "..%e2%80%a8", "..%f3%a0%80%81",
		"..%cc%81", ".%e2%83%9d.",
	} {
		if folded, wrong := pathseg.Fold(s); wrong != "" || !pathseg.Dots(folded) {
			t.Errorf("%s: %q, %q", s, folded, wrong)
		}
	}
	for _, s := range []string{"%c0%ae%c0%ae", "%e0%80%ae", "%ff", "a%c0%af", "..%ef%bc%8f", "a%ef%bc%bcb", "%e9"} {
		if folded, wrong := pathseg.Fold(s); wrong == "" {
			t.Errorf("%s: %q", s, folded)
		}
	}
	for s, want := range map[string]string{"": "", "a": "a", "A.b": "a.b", "..a": "..a", "caf%C3%A9": "café", "a%20b": "ab", "%ef%b8%8f": "", "a%ef%b8%8fb": "ab", "%e0%a4%95%e0%a4%bf": "कि", "100%": "100%", "%zz": "%zz", "Info;x": "info", "Re%66s": "refs"} {
		if folded, wrong := pathseg.Fold(s); wrong != "" || folded != want || pathseg.Dots(folded) {
			t.Errorf("%s: %q, %q", s, folded, wrong)
		}
	}
}
