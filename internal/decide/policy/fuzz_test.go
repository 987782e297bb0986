package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func examples(tb testing.TB) map[string][]byte {
	tb.Helper()
	paths, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no examples: %v", err)
	}
	documents := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		documents[filepath.Base(path)] = data
	}
	return documents
}

// FuzzParse: any bytes are a policy or Problems with places; a policy answers,
// and Suggest gives a document that is one too.
func FuzzParse(f *testing.F) {
	for _, data := range examples(f) {
		f.Add(data)
	}
	f.Add([]byte("rules: [ { name: a, condition: { field: code, operator: matches, value: \"a$|(b{2,3})\" }, action: deny } ]"))
	f.Add([]byte("a: &x [*x]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := policy.Parse("p", data)
		if err != nil {
			problems, ok := errors.AsType[policy.Problems](err)
			if !ok || len(problems) == 0 || !errors.Is(err, fault.ErrInvalid) {
				t.Fatalf("an error without problems: %v", err)
			}
			for _, problem := range problems {
				if problem.Line < 1 || problem.Column < 1 || problem.Sentence == "" {
					t.Fatalf("a problem without a place: %v", problem)
				}
			}
			return
		}
		text := string(data)
		wellFormed(t, p.DecideCommand(policy.CommandInput{Command: &text, Code: &text}))
		ref := pkgref.Ref{Ecosystem: pkgref.Python, Name: "some-name", Version: "1.2.3"}
		wellFormed(t, p.Decide(clock(), policy.Input{Subject: policy.Subject{Package: ref}, FileFacts: policy.FileFacts{Kind: policy.KindWheel}}))
		if edited, _, err := policy.Suggest(data, []pkgref.Ref{ref}); err == nil {
			mustParse(t, string(edited))
		}
	})
}

// FuzzDecide: every question has an answer.
func FuzzDecide(f *testing.F) {
	var policies []*policy.Policy
	for name, data := range examples(f) {
		p, err := policy.Parse(name, data)
		if err != nil {
			f.Fatal(err)
		}
		policies = append(policies, p)
	}
	policies = append(policies, &policy.Policy{})
	f.Add("python", "requests", "2.31.0", "wheel", int64(0), "rich", "allowed_packages.python.rich", ">=2,<3")
	f.Add("node", "@s/x", "1.2.3-rc.1", "other", int64(1<<40), "x", "", "^1")
	f.Add("", "", "", "", int64(-1), "", "allowed_packages.python.", "===")
	f.Add("go", "example.com/x", "v1.2.3", "sdist", int64(1), "example.com/y", "allowed_packages.go.example.com/y", "")
	f.Add("node", "a", "1.0.0", "package", int64(1), "1.0.0", "sha512:aa", "0")
	f.Fuzz(func(t *testing.T, ecosystem, name, version, kind string, published int64, parent, through, specifier string) {
		in := policy.Input{
			Subject:   policy.Subject{Package: pkgref.Ref{Ecosystem: pkgref.Ecosystem(ecosystem), Name: name, Version: version}},
			FileFacts: policy.FileFacts{Kind: policy.ArtifactKind(kind), Published: time.Unix(published, 0)},
		}
		in.Edges = []policy.Edge{{
			Parent: pkgref.Ref{Ecosystem: in.Package.Ecosystem, Name: parent}, Through: through, Name: name, Specifier: specifier,
		}}
		for _, p := range policies {
			d := p.Decide(clock(), in)
			wellFormed(t, d)
			if d.Allowed() && !pkgref.IsCanonicalName(in.Package.Ecosystem, name) {
				t.Fatalf("%q is allowed: %+v", name, d)
			}
			wellFormed(t, p.Judge(clock(), in.Subject).Name())
			facts := in // the same texts as other facts
			facts.Malware = []policy.Malware{{ID: name, Versions: []string{specifier}}, {ID: parent, Ranges: []policy.AffectedRange{{Introduced: parent, Fixed: through, LastAffected: specifier}}}}
			facts.Lookalike, facts.Owner, facts.Upstream = &policy.Lookalike{Name: name, How: parent}, parent, through
			wellFormed(t, p.Decide(clock(), facts))
			facts.Malware, facts.Owner, facts.Digests, facts.Scripts = nil, "", []string{through}, true
			facts.Lock = &policy.Lock{Mode: policy.LockMode(parent), Pins: []policy.Pin{{Version: version, Digests: []string{through, specifier}, Lockfile: name, Line: int(published)}}}
			wellFormed(t, p.Decide(clock(), facts))
			wellFormed(t, p.Judge(clock(), facts.Subject).Name())
		}
	})
}
