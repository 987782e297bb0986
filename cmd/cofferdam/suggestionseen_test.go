package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
)

// asksFor is a line that asks for the index page of a package, as pip does, and takes a refusal for an answer.
func asksFor(t *testing.T, name string) string {
	t.Helper()
	index, err := all.Clients().Host(t.Context(), pkgref.Python, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	return `/usr/bin/python3 -c 'import urllib.request as u; u.urlopen("` + strings.TrimSuffix(index.Index, "/") + `/` + name + `/")' || :`
}

// TestALookAtASuggestionIsNoYesToIt: an agent asks for a package, is refused, and a person looks at what "policy suggest"
// prints, and writes nothing. Later an agent that may write in the project puts just that into the policy. It decides only
// once a person has seen it there. The control: the same without the trial in a sandbox, and another text.
func TestALookAtASuggestionIsNoYesToIt(t *testing.T) {
	const suggested = strictRules + "allowed_packages:\n  python:\n    - name: idna\n      with_dependencies: true\n"
	for name, flags := range map[string][]string{"control: --no-resolve": {"--no-resolve"}, "as the summary says it": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWorkplace(t)
			w.write("policy.yaml", strictRules)
			w.must(w.run(asksFor(t, "idna"), "--policy", "policy.yaml", "--run-id", "r1"))
			out, err := w.cofferdam(append([]string{"policy", "suggest", "--run", "r1"}, flags...)...)
			w.must(out, err)
			if !strings.Contains(out, "+    - name: idna") {
				t.Fatalf("INCONCLUSIVE: nothing is suggested: %s", out)
			}
			if text, err := os.ReadFile(filepath.Join(w.dir, "policy.yaml")); err != nil || string(text) != strictRules {
				t.Fatalf("INCONCLUSIVE: the policy is %q, %v", text, err)
			}

			writable := []string{"--mount", ".:/w:rw", "--workdir", "/w"}
			w.must(w.run("printf '%s' '"+suggested+"' > policy.yaml", writable...))
			if text, err := os.ReadFile(filepath.Join(w.dir, "policy.yaml")); err != nil || string(text) != suggested {
				t.Fatalf("INCONCLUSIVE: the agent wrote %q, %v", text, err)
			}
			out, err = w.run("true", "--policy", "policy.yaml")
			w.refused("policy", "policy.yaml", out, err)

			w.must(w.run("echo '# another' >> policy.yaml", writable...)) // the control
			out, err = w.run("true", "--policy", "policy.yaml")
			w.refused("policy", "policy.yaml", out, err)
		})
	}
}

// TestALookAtASuggestionTakesNoYesAway: what a person uses stays known, though they looked at what could be in its place.
func TestALookAtASuggestionTakesNoYesAway(t *testing.T) {
	w := newWorkplace(t)
	w.write("policy.yaml", strictRules)
	w.must(w.run(asksFor(t, "idna"), "--policy", "policy.yaml", "--run-id", "r1"))
	w.must(w.cofferdam("policy", "suggest", "--run", "r1"))
	w.must(w.run("true", "--mount", ".:/w:rw"))
	w.must(w.run("true", "--policy", "policy.yaml"))
}

// TestASuggestionIsWrittenAsItWasShown: a person looks at a suggestion, and then has it written. An agent that asks for
// more in between is not among what is written, unless somebody was asked again.
func TestASuggestionIsWrittenAsItWasShown(t *testing.T) {
	w := newWorkplace(t)
	w.write("policy.yaml", strictRules)
	ask := func(name string) {
		w.must(w.run(asksFor(t, name), "--policy", "policy.yaml", "--run-id", "r1"))
	}
	ask("idna")
	shown, err := w.cofferdam("policy", "suggest", "--run", "r1", "--no-resolve")
	w.must(shown, err)
	if !strings.Contains(shown, "idna") || strings.Contains(shown, "attrs") {
		t.Fatalf("INCONCLUSIVE: %s", shown)
	}
	ask("attrs") // the same run, as an agent that goes on
	out, err := w.cofferdam("policy", "suggest", "--run", "r1", "--no-resolve", "--write")
	text, rerr := os.ReadFile(filepath.Join(w.dir, "policy.yaml"))
	if rerr != nil {
		t.Fatal(rerr)
	}
	if strings.Contains(string(text), "attrs") {
		t.Errorf("nobody was asked, what was shown had no attrs, and it is written (%v: %s):\n%s", err, out, text)
	}
	if _, says, found := strings.Cut(shown, "--write --no-resolve --digest "); !found {
		t.Errorf("it does not say how just this is written: %s", shown)
	} else if out, err := w.cofferdam("policy", "suggest", "--run", "r1", "--no-resolve", "--write", "--digest", strings.Fields(says)[0]); err == nil || !strings.Contains(out, "is not the policy that you have read") {
		t.Errorf("what was read is not what is suggested now: %v: %s", err, out)
	}
	again, err := w.cofferdam("policy", "suggest", "--run", "r1", "--no-resolve")
	w.must(again, err)
	_, says, _ := strings.Cut(again, "--digest ")
	w.must(w.cofferdam("policy", "suggest", "--run", "r1", "--no-resolve", "--write", "--digest", strings.Fields(says + " none")[0])) // the control
	if text, err := os.ReadFile(filepath.Join(w.dir, "policy.yaml")); err != nil || !strings.Contains(string(text), "attrs") {
		t.Errorf("what somebody has read is not written: %q, %v", text, err)
	}
}
