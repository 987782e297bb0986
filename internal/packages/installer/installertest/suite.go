// Package installertest is the conformance suite of installer.Installer: what every
// package client's rewrites and resolvers must do.
//
// Each client's test gives the suite a sample, from which the suite derives hostile ones.
package installertest

import (
	"errors"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// Sample is what an installer's test gives the suite.
type Sample struct {
	Installer installer.Installer
	Rewrites  []Rewrite
	// Refused are installs that can't be rewritten, and a part of the sentence that says why.
	Refused map[string]string
	// Others are words of this client that are no installs.
	Others []string
	// Results are good documents.
	Results []Result
	// Wanted are two releases of its ecosystem, by canonical names.
	Wanted [2]installer.Wanted
	// Manifests are examples of each file that a ManifestReader reads, by its name.
	Manifests map[string]Manifest
	// Asked are commands with one word "x" that they install.
	Asked []string
}

// Rewrite is an install, and what its rewrite must have.
type Rewrite struct {
	Command  string // words, with spaces between
	Resolver string
	Lines    []string // of the script
	Not      string   // what the script must not have; "": nothing is asked
}

// Manifest is a file, and the roots in it.
type Manifest struct {
	Text  string
	Roots []string // in any order; what is no name need not be there
}

// Result is a rewrite's output.
type Result struct {
	Command   string // whose rewrite's resolver reads it
	Documents installer.Documents
	Releases  []string // "NAME VERSION", in order
	LockNames []string // beside the resolver's own, those that fit
}

// Run runs the suite.
func Run(t *testing.T, s Sample) {
	t.Helper()
	t.Run("rewrites", s.rewrites)
	t.Run("words stay words", s.wordsStayWords)
	t.Run("refusals", s.refusals)
	t.Run("what is no install", s.others)
	t.Run("results", s.results)
	t.Run("hostile documents", s.hostile)
	t.Run("lockfiles", s.testLockfiles)
	t.Run("installs by name", s.byName)
	t.Run("what is asked for", s.testAsks)
	t.Run("a project's roots", s.manifests)
	t.Run("pins", s.testPins)
	t.Run("variables", s.variables)
}

// rewrite must succeed.
func (s Sample) rewrite(t *testing.T, argv []string) installer.Rewrite {
	t.Helper()
	before := slices.Clone(argv)
	r, mine, err := s.Installer.Rewrite(argv, installer.Project{})
	if !mine || err != nil {
		t.Fatalf("%q: it is an install: %v; %v", argv, mine, err)
	}
	if !slices.Equal(before, argv) {
		t.Errorf("%q became %q", before, argv)
	}
	if r.Resolver.Ecosystem != s.Installer.Ecosystem() || r.Resolver.Name == "" || len(r.Resolver.Documents) == 0 || r.Resolver.LockName == "" {
		t.Errorf("%q: its resolver is %+v", argv, r.Resolver)
	}
	return r
}

// script is the part of a rewrite behind what all of them begin with; sh must read it.
func script(t *testing.T, r installer.Rewrite) string {
	t.Helper()
	if len(r.Argv) != 3 || r.Argv[0] != "sh" || r.Argv[1] != "-c" {
		t.Fatalf("the rewrite is %q", r.Argv)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-n", "-c", r.Argv[2]).CombinedOutput(); err != nil {
		t.Fatalf("sh does not read the script: %v\n%s\n%s", err, out, r.Argv[2])
	}
	_, rest, _ := strings.Cut(r.Argv[2], "cd \"$work\" || exit 125\n")
	return rest
}

func (s Sample) rewrites(t *testing.T) {
	for _, want := range s.Rewrites {
		r := s.rewrite(t, strings.Fields(want.Command))
		text := script(t, r)
		if r.Resolver.Name != want.Resolver {
			t.Errorf("%s is read by %s, want %s", want.Command, r.Resolver.Name, want.Resolver)
		}
		for _, line := range want.Lines {
			if !strings.Contains("\n"+text, "\n"+line+"\n") {
				t.Errorf("%s: the script has no line %q:\n%s", want.Command, line, text)
			}
		}
		if want.Not != "" && strings.Contains(text, want.Not) {
			t.Errorf("%s: the script has %q:\n%s", want.Command, want.Not, text)
		}
		if !slices.ContainsFunc(r.Resolver.Documents, func(d string) bool { return strings.Contains(text, "emit "+d+" ") }) {
			t.Errorf("%s: the script puts out no document of %q:\n%s", want.Command, r.Resolver.Documents, text)
		}
	}
	for _, command := range s.Installer.Plannable() {
		if _, mine, _ := s.Installer.Rewrite(strings.Fields(command), installer.Project{}); !mine {
			t.Errorf("%q is said to be plannable and is no install", command)
		}
	}
}

// wordsStayWords: whatever a word has in it, the rewrite hands it on as one, or refuses it.
func (s Sample) wordsStayWords(t *testing.T) {
	for _, want := range s.Rewrites {
		for _, word := range []string{"$(touch x)", "a;b", "`id`", "it's", "a\nb", "*"} {
			r, mine, err := s.Installer.Rewrite(append(strings.Fields(want.Command), word), installer.Project{})
			if !mine {
				t.Errorf("%s %q is no install any more", want.Command, word)
			}
			if err == nil && !strings.Contains(r.Argv[2], installer.Quote(word)) && strings.Contains(script(t, r), word) {
				t.Errorf("%s %q: the word is not quoted:\n%s", want.Command, word, r.Argv[2])
			}
		}
	}
}

func (s Sample) refusals(t *testing.T) {
	for command, why := range s.Refused {
		r, mine, err := s.Installer.Rewrite(strings.Fields(command), installer.Project{})
		if !mine || !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), why) || r.Argv != nil {
			t.Errorf("%q gave %q, %v; want an error about %q", command, r.Argv, err, why)
		}
	}
}

func (s Sample) others(t *testing.T) {
	for _, command := range append([]string{"", "make install", s.Installer.Name(), "not-" + s.Installer.Name() + " install x"}, s.Others...) {
		if r, mine, err := s.Installer.Rewrite(strings.Fields(command), installer.Project{}); mine || err != nil {
			t.Errorf("%q is an install: %q, %v", command, r.Argv, err)
		}
	}
}

func (s Sample) results(t *testing.T) {
	for _, want := range s.Results {
		r := s.rewrite(t, strings.Fields(want.Command)).Resolver
		for name := range want.Documents {
			if !slices.Contains(r.Documents, name) {
				t.Errorf("%s: no frame may be called %q", want.Command, name)
			}
		}
		got, err := r.Result(want.Documents)
		var releases []string
		for _, c := range got.Choices {
			releases = append(releases, c.Name+" "+c.Version)
			if ref, err := pkgref.New(r.Ecosystem, c.Name, c.Version); err != nil || ref.Name != c.Name {
				t.Errorf("%s: the choice %s %s is not canonical: %v", want.Command, c.Name, c.Version, err)
			}
			if len(c.Digests) == 0 {
				t.Errorf("%s: the choice %s %s has no digest", want.Command, c.Name, c.Version)
			}
		}
		if err != nil || got.Ecosystem != s.Installer.Ecosystem() || !slices.Equal(releases, want.Releases) {
			t.Errorf("%s: %q, %v; want %q", want.Command, releases, err, want.Releases)
		}
	}
}

// hostile: documents that are cut, doubled or nonsense give an error or less; never more,
// and no panic.
func (s Sample) hostile(t *testing.T) {
	for _, good := range s.Results {
		r := s.rewrite(t, strings.Fields(good.Command)).Resolver
		for name, data := range good.Documents {
			for _, bad := range [][]byte{nil, []byte("[]"), []byte("\xff\xfe{}"), data[:len(data)/2], slices.Concat(data, data), []byte(strings.Repeat("[", 100_000))} {
				docs := maps.Clone(good.Documents)
				docs[name] = bad
				got, err := r.Result(docs)
				if err != nil && (!errors.Is(err, fault.ErrInvalid) || got.Choices != nil) {
					t.Errorf("%s with %.20q for %s: %d choices, %v", good.Command, bad, name, len(got.Choices), err)
				}
				if len(got.Choices) > len(good.Releases) {
					t.Errorf("%s with %.20q for %s names %d releases", good.Command, bad, name, len(got.Choices))
				}
			}
		}
		if got, err := r.Result(nil); err == nil && len(got.Choices) > 0 {
			t.Errorf("%s: no document gave %+v", good.Command, got)
		}
	}
}

func (s Sample) testLockfiles(t *testing.T) {
	for _, good := range s.Results {
		r := s.rewrite(t, strings.Fields(good.Command)).Resolver
		result, err := r.Result(good.Documents)
		if err != nil {
			t.Fatal(err)
		}
		if lock, err := r.WriteLock(good.Documents, result); err != nil || len(lock) == 0 {
			t.Errorf("%s: the lockfile is %q, %v", good.Command, lock, err)
		}
		for _, name := range append(good.LockNames, r.LockName, "folder/"+r.LockName) {
			if err := r.CheckLockName(name); err != nil {
				t.Errorf("%s: %v", good.Command, err)
			}
		}
		for _, name := range []string{"", "lock.of.nobody", r.LockName + ".bak"} {
			if err := r.CheckLockName(name); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), r.Name) {
				t.Errorf("%s: the lockfile may be called %q: %v", good.Command, name, err)
			}
		}
	}
}

func (s Sample) byName(t *testing.T) {
	argv := s.Installer.Install(s.Wanted[:])
	if argv == nil {
		return
	}
	s.rewrite(t, argv)
	for _, w := range s.Wanted {
		if !slices.ContainsFunc(argv, func(word string) bool { return strings.Contains(word, w.Name) && strings.Contains(word, w.Version) }) {
			t.Errorf("%q does not install %s %s", argv, w.Name, w.Version)
		}
	}
	asked := installer.Wanted{Name: s.Wanted[0].Name, Version: s.Wanted[0].Version, Asked: s.Wanted[0].Name + "@as-asked"}
	if argv := s.Installer.Install([]installer.Wanted{asked}); !slices.Contains(argv, asked.Asked) {
		t.Errorf("%q does not have the word %q", argv, asked.Asked)
	}
}

// testAsks: what an install names is found behind it, and no other command asks for anything.
func (s Sample) testAsks(t *testing.T) {
	commands := s.Asked
	if argv := s.Installer.Install([]installer.Wanted{{Name: "x", Asked: "x"}}); argv != nil {
		commands = append(commands, strings.Join(argv, " "))
	}
	if len(commands) == 0 {
		t.Error("no command asks for anything")
	}
	for _, command := range commands {
		words, ok := s.Installer.Asks(strings.Fields(command))
		if !ok || !slices.ContainsFunc(words, func(w string) bool { return w == "x" || strings.HasPrefix(w, "x@") }) {
			t.Errorf("%q asks for %q, %v", command, words, ok)
		}
	}
	for _, command := range []string{"", "make install x", s.Installer.Name(), s.Installer.Name() + " --x", s.Installer.Name() + " uninstall x", "not-" + s.Installer.Name() + " install x"} {
		if words, ok := s.Installer.Asks(strings.Fields(command)); ok {
			t.Errorf("%q asks for %q", command, words)
		}
	}
}

// variables: what a sandbox sets for the client can be set, and a registry is named where
// the client would ask another.
func (s Sample) variables(t *testing.T) {
	around := installer.Surroundings{Bundle: "/b.pem", CA: "/ca.pem", Timeout: 77, Downloads: "https://downloads.example/"}
	named := s.Installer.Mirror(installer.Registry{Index: "https://index.example/a/"})
	for _, env := range []map[string]string{s.Installer.Unbuilt(), s.Installer.Settings(around), named} {
		for name, value := range env {
			if name == "" || strings.ContainsAny(name, "=\x00 ") || value == "" || strings.ContainsAny(value, "\x00\n") {
				t.Errorf("the variable %q is %q", name, value)
			}
		}
	}
	if named == nil {
		return // another client's variables are this one's too
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(named)), func(v string) bool { return strings.HasPrefix(v, "https://index.example/a") }) {
		t.Errorf("no variable of %v names the registry", named)
	}
}

// testPins: what a Pinner writes holds a run to exactly these files.
func (s Sample) testPins(t *testing.T) {
	pinner, can := s.Installer.(installer.Pinner)
	if !can {
		return
	}
	name := ""
	for _, l := range s.Installer.Ecosystem().Lockfiles() {
		if base := strings.ReplaceAll(l.Name, "*", "x"); pinner.Pins(base) {
			name = base
		}
	}
	if name == "" || pinner.Pins("lock.of.nobody") {
		t.Fatal("what it writes is none of its ecosystem's lockfiles")
	}
	digest := "sha256:" + strings.Repeat("ab", 32)
	var text []byte
	releases := slices.DeleteFunc(slices.Clone(s.Wanted[:]), func(w installer.Wanted) bool { return w.Version == "" })
	if len(releases) == 0 {
		t.Fatal("no release is wanted")
	}
	for _, w := range releases {
		ref, err := pkgref.New(s.Installer.Ecosystem(), w.Name, w.Version)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = pinner.Pin(text, ref, []string{digest}); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := lockfile.Parse(name, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, w := range releases {
		if pins := lock.Pins[w.Name]; len(pins) != 1 || pins[0].Version != w.Version || !slices.Equal(pins[0].Digests, []string{digest}) {
			t.Errorf("%s %s is pinned as %+v", w.Name, w.Version, pins)
		}
	}
}
