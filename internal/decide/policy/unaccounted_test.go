package policy

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

func TestUnaccounted(t *testing.T) {
	for text, want := range map[string]Unaccounted{
		"packages: { default: deny }":        UnaccountedAlarm,
		"packages: { unaccounted: record }":  UnaccountedRecord,
		"packages: { unaccounted: alarm }":   UnaccountedAlarm,
		"packages: { unaccounted: end }":     UnaccountedEnd,
		"version: \"1\"":                     UnaccountedAlarm,
		"packages: { unaccounted: nothing }": "",
		"packages: { unaccounted: true }":    "",
	} {
		p, err := Parse("p", []byte(text))
		switch {
		case want == "" && err == nil:
			t.Errorf("%s is a policy", text)
		case want == "" && !strings.Contains(err.Error(), "packages.unaccounted"):
			t.Errorf("%s: %v", text, err)
		case want != "" && (err != nil || p.Unaccounted() != want):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if new(Policy).Unaccounted() != UnaccountedAlarm {
		t.Error("a run without a policy has no alarm")
	}
}

func TestLists(t *testing.T) {
	p, err := Parse("p", []byte("allowed_packages: { python: [ { name: six } ] }\nblocked_packages: { node: [ { name: left-pad, version: \"1\" } ] }\n"))
	if err != nil {
		t.Fatal(err)
	}
	for pkg, want := range map[pkgref.Ref]bool{
		{Ecosystem: pkgref.Python, Name: "six"}:    true,
		{Ecosystem: pkgref.Node, Name: "left-pad"}: true,
		{Ecosystem: pkgref.Node, Name: "six"}:      false,
		{Ecosystem: pkgref.Python, Name: "attrs"}:  false,
	} {
		if p.Lists(pkg) != want {
			t.Errorf("%v: %t", pkg, !want)
		}
	}
}
