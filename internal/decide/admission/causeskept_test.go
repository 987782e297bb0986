package admission

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

func wants(name, specifier string) door.IndexRequirement {
	return door.IndexRequirement{Name: name, Specifier: specifier}
}

// told are the names that the host is told of a run as causes.
func (g *grove) told(t *testing.T) string {
	t.Helper()
	list, err := g.RefusalsOf(t.Context(), Sought{Run: "run1", Causes: true})
	must(t, err)
	var names []string
	for _, r := range list {
		if r.Cause {
			names = append(names, r.Package.Name)
		}
	}
	return strings.Join(names, ", ")
}

// TestACauseReadLaterIsTold: a client reads a project's page for the first that requires it, and ends at another
// that it reads later; and equal requirements of several releases are all looked at, of which edges keep one.
func TestACauseReadLaterIsTold(t *testing.T) {
	web := map[string][]door.IndexRequirement{
		"1.0.0": {wants("lib", "^2.0.0")},
		"4.0.0": {wants("lib", "^1.0.0"), wants("helper", "^1.0.0"), wants("runner", "*")},
	}
	helper := map[string][]door.IndexRequirement{"1.0.0": {wants("lib", "^2.0.0")}}
	unsure := []door.File{archive(node("runner", "1.0.0")), script("runner", "2.0.0")}
	lib := []door.File{archive(node("lib", "1.0.0")), script("lib", "2.0.0")}
	helpers := []door.File{archive(node("helper", "1.0.0"))}
	for name, show := range map[string]func(g *grove){
		"before": func(g *grove) { g.showsPage(t, "helper", helper, helpers...); g.showsPage(t, "lib", nil, lib...) },
		"after":  func(g *grove) { g.showsPage(t, "lib", nil, lib...); g.showsPage(t, "helper", helper, helpers...) },
	} {
		g := newGrove(t, toolsDocument, Limits{})
		_, err := g.Command(t.Context(), "sb1", "c1", []string{"npm", "install"})
		must(t, err)
		g.showsPage(t, "runner", nil, unsure...)
		g.showsPage(t, "web", web, archive(node("web", "1.0.0")), archive(node("web", "4.0.0")))
		show(g)
		must(t, g.CommandFinished(t.Context(), "sb1", "c1", channel.Exit{Code: 1, Claimed: true}))
		if got := g.told(t); got != "lib" {
			t.Errorf("%s: %q is told", name, got)
		}
	}
}

// TestAProjectThatIsWithheldWholeIsWeighedAnew: first only a release that nobody would choose requires it, and then the
// one of a page that is read later; there is no page of it that a client was shown.
func TestAProjectThatIsWithheldWholeIsWeighedAnew(t *testing.T) {
	web := map[string][]door.IndexRequirement{
		"1.0.0": {wants("lib", "^2.0.0")},
		"4.0.0": {wants("helper", "^1.0.0"), wants("runner", "*")},
	}
	helper := map[string][]door.IndexRequirement{"1.0.0": {wants("lib", "^2.0.0")}}
	g := newGrove(t, toolsDocument, Limits{})
	_, err := g.Command(t.Context(), "sb1", "c1", []string{"npm", "install"})
	must(t, err)
	g.showsPage(t, "runner", nil, archive(node("runner", "1.0.0")), script("runner", "2.0.0"))
	g.showsPage(t, "web", web, archive(node("web", "1.0.0")), archive(node("web", "4.0.0")))
	g.showsPage(t, "lib", nil, script("lib", "2.0.0"))
	g.showsPage(t, "helper", helper, archive(node("helper", "1.0.0")))
	must(t, g.CommandFinished(t.Context(), "sb1", "c1", channel.Exit{Code: 1, Claimed: true}))
	if got := g.told(t); got != "lib" {
		t.Errorf("%q is told", got)
	}
}

// TestNoCauseStandsForAnother: a sure cause of one install is no reason why another failed, nor where
// nobody knows which install a refusal ended.
func TestNoCauseStandsForAnother(t *testing.T) {
	root := []door.File{archive(node("runner", "1.0.0")), script("runner", "2.0.0")}
	for name, c := range map[string]struct {
		commands [][]string
		want     string
	}{
		"one install":                 {[][]string{{"npm", "install"}}, "other"},
		"one of a shell":              {[][]string{{"bash", "-lc", "cd app && npm install"}}, "other"},
		"an agent":                    {[][]string{{"claude", "-p", "npm install"}}, "runner, other"},
		"a shell's loop":              {[][]string{{"sh", "-c", "for i in runner other; do npm install $i; done"}}, "runner, other"},
		"two installs at once":        {[][]string{{"npm", "install"}, {"npm", "ci"}}, "runner, other"},
		"an install beside something": {[][]string{{"npm", "install"}, {"sleep", "9"}}, "runner, other"},
	} {
		g := newGrove(t, toolsDocument, Limits{})
		for i, argv := range c.commands {
			_, err := g.Command(t.Context(), "sb1", string(rune('a'+i)), argv)
			must(t, err)
		}
		g.showsPage(t, "runner", nil, root...)
		g.showsPage(t, "other", nil, archive(node("other", "1.0.0")))
		if got := g.told(t); got != c.want {
			t.Errorf("%s: %q is told, want %q", name, got, c.want)
		}
	}
}

// TestRecordsOfAnEarlierVersionAreCauses: a log that says nothing of how clients were led to what a page withheld
// hides none of it behind another.
func TestRecordsOfAnEarlierVersionAreCauses(t *testing.T) {
	part := audit.Record{Kind: audit.KindPackage, Outcome: audit.Withheld, Detail: map[string]string{records.DetailWhat: records.WhatIndex}}
	if w := weighCause(part, false); w != certain {
		t.Errorf("it weighs %d", w)
	}
	whole := audit.Record{Kind: audit.KindPackage, Outcome: audit.Withheld, Detail: map[string]string{records.DetailWhat: records.WhatPackage}}
	if w := weighCause(whole, false); w != certain {
		t.Errorf("it weighs %d", w)
	}
}

// TestWithheldIsNotSilent: what only something optional lacks is no cause where all ended well, and the
// summary has it all the same: the program may miss it when it runs.
func TestWithheldIsNotSilent(t *testing.T) {
	optional := wants("watch", "~2.0.0")
	optional.Optional = true
	g := newGrove(t, toolsDocument, Limits{})
	_, err := g.Command(t.Context(), "sb1", "c1", []string{"npm", "install"})
	must(t, err)
	g.showsPage(t, "web", map[string][]door.IndexRequirement{"4.0.0": {optional}}, archive(node("web", "4.0.0")))
	g.showsPage(t, "watch", nil, script("watch", "2.0.0"))
	must(t, g.CommandFinished(t.Context(), "sb1", "c1", channel.Exit{Claimed: true}))
	sum, err := g.Summary(t.Context(), "run1")
	must(t, err)
	if refused, withheld := lineOf(sum.Refused), lineOf(sum.Withheld); refused != "" || withheld != "watch 2.0.0" {
		t.Errorf("refused %q, withheld %q", refused, withheld)
	}
}

// TestTheLastRefusalOfAPageIsACause: of a page the last refusal is shown, and the one before may be the cause.
func TestTheLastRefusalOfAPageIsACause(t *testing.T) {
	c := newCauses()
	c.noteCause(audit.Record{Sandbox: "sb1", Ecosystem: "node", Package: "lib", RequestID: "first"})
	last := door.Refusal{Sandbox: "sb1", Package: pkgref.Ref{Ecosystem: pkgref.Node, Name: "lib"}, Outcome: string(audit.Withheld), RequestID: "second"}
	if !c.isCause(last) {
		t.Error("it is behind --all")
	}
}
