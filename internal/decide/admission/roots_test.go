package admission

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// The roots of a run are what its commands asked for: with the version that was chosen,
// and what is only required by a root stands under it. A release that nobody should be led to allow is none.
func TestRootsAreWhatWasAskedFor(t *testing.T) {
	h := newHouse(t, Limits{})
	ctx := t.Context()
	_, err := h.Command(ctx, "sb1", "c1", []string{"sh", "-c", "cd /x; pip install -q 'rich[jupyter]>=13' numpy evil && true"})
	must(t, err)
	for _, served := range []string{"1.26.3", "1.26.4"} {
		if a, err := h.Serve(ctx, serving("numpy", served)); err != nil || !a.Decision.Allowed() {
			t.Fatal(a, err)
		}
	}
	must(t, h.Edges(ctx, "sb1", python("numpy", "1.26.4"), []door.Requirement{{Name: "mkl", Specifier: ">=2024"}}))
	for _, ask := range []door.JudgeAsk{judging("rich", "13.7.1"), judging("rich", "13.6.0"), judging("mkl", "2024.1.0"), judging("evil", "1.0")} {
		if a, err := h.Judge(ctx, ask); err != nil || a.Decision.Allowed() {
			t.Fatal(a, err)
		}
	}
	_, err = h.Index(ctx, indexOf("pandas", "i1", wheel("pandas", "2.2.2"), wheel("pandas", "3.0.0rc1")))
	must(t, err)
	got, err := h.Roots(ctx, "run1")
	must(t, err)
	want := Roots{
		Roots: []Root{
			{Package: python("numpy", "1.26.4"), Asked: "numpy", Had: true},
			{Package: python("pandas", "")},
			{Package: python("rich", "13.7.1"), Asked: "rich[jupyter]>=13", Extras: []string{"jupyter"}},
		},
		Required: []policy.Wanted{{Package: python("mkl", "2024.1.0"), Through: []pkgref.Ref{python("numpy", "")}}},
		Stays:    []string{"python evil 1.0: evil is on the blocklist; no line of a policy that could be suggested allows it"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What is wanted by what was refused itself goes back to whom nobody wanted, however they
// want each other.
func TestRootsAreAtTheTop(t *testing.T) {
	wanted := func(name, parents string) audit.Record {
		return audit.Record{Kind: audit.KindPackage, Outcome: audit.Blocked, Ecosystem: "python", Package: name, Detail: map[string]string{records.DetailParents: parents}}
	}
	s := rootsSearch{parents: map[pkgref.Ref][]pkgref.Ref{}, served: map[pkgref.Ref]pkgref.Version{}, extras: map[pkgref.Ref][]string{}}
	for _, r := range []audit.Record{wanted("mdurl", "markdown-it-py"), wanted("markdown-it-py", "rich mdit"), wanted("mdit", "markdown-it-py mdit"), wanted("a", "b"), wanted("b", "a")} {
		s.takeRecord(r)
	}
	for name, want := range map[string][]pkgref.Ref{
		"mdurl": {python("rich", "")}, "markdown-it-py": {python("rich", "")}, "mdit": {python("rich", "")}, "rich": nil, "a": nil, "b": nil,
	} {
		if diff := cmp.Diff(want, s.findTops(python(name, ""))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAskedWords(t *testing.T) {
	for name, tt := range map[string]struct {
		argv []string
		want []askedWord
	}{
		"pip":    {[]string{"python3", "-m", "pip", "install", "-r", "x.txt", "Foo_Bar[a,b]~=1.0", "./here", "git+https://x.example/y"}, []askedWord{{python("foo-bar", ""), "Foo_Bar[a,b]~=1.0"}}},
		"npm":    {[]string{"npm", "i", "--save-dev", "@a/b@^1", "c"}, []askedWord{{pkgref.Ref{Ecosystem: pkgref.Node, Name: "@a/b"}, "@a/b@^1"}, {pkgref.Ref{Ecosystem: pkgref.Node, Name: "c"}, "c"}}},
		"go":     {[]string{"go", "get", "x.example/m/cmd@latest", "./..."}, []askedWord{{pkgref.Ref{Ecosystem: pkgref.Go, Name: "x.example/m/cmd"}, "x.example/m/cmd@latest"}}},
		"others": {[]string{"echo", "pip", "install", "x"}, nil},
	} {
		var got []askedWord
		for _, a := range askedWords(all.Asked, tt.argv) {
			if a.word != "x.txt" { // may be a package's name, and is asked about as such only if that was refused
				got = append(got, a)
			}
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(askedWord{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	s := rootsSearch{asked: askedWords(all.Asked, []string{"go", "get", "x.example/m/cmd@latest"})}
	if word := s.wordFor(pkgref.Ref{Ecosystem: pkgref.Go, Name: "x.example/m"}); word != "x.example/m/cmd@latest" {
		t.Errorf("%q", word)
	}
}
