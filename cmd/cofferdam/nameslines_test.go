package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/refusal"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/linediff"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// namePrinters returns the functions that print names from inside, in a review, a list or a note, each with what it
// writes of one.
func namePrinters(t *testing.T, w *workspace.Workspace) map[string]func(name string) string {
	t.Helper()
	changed := func(c workspace.Change) string {
		lines, _ := changeLines(w, []workspace.Change{c}, -1)
		return strings.Join(lines, "\n")
	}
	written := func(write func(b *bytes.Buffer, name string) error) func(string) string {
		return func(name string) string {
			var b bytes.Buffer
			if err := write(&b, name); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
	}
	return map[string]func(name string) string{
		"the head of a difference": func(name string) string {
			return linediff.Unified("a/"+name, "b/"+name, []byte("x\n"), []byte("y\n"))
		},
		"an added file": func(name string) string {
			return changed(workspace.Change{Path: name, How: workspace.Added, Kind: workspace.File})
		},
		"a program": func(name string) string {
			return changed(workspace.Change{Path: name, How: workspace.Added, Kind: workspace.File, Executable: true})
		},
		"a removed one": func(name string) string {
			return changed(workspace.Change{Path: name, How: workspace.Removed, Kind: workspace.File})
		},
		"a directory": func(name string) string {
			return changed(workspace.Change{Path: name, How: workspace.Added, Kind: workspace.Dir})
		},
		"a pipe": func(name string) string { return changed(workspace.Change{Path: name, How: workspace.Added}) },
		"a link": func(name string) string {
			return changed(workspace.Change{Path: name, How: workspace.Added, Kind: workspace.Link, Target: "x"})
		},
		"a link's target": func(name string) string {
			return changed(workspace.Change{Path: "l", How: workspace.Added, Kind: workspace.Link, Target: name})
		},
		"what was brought over":        func(name string) string { return appliedLine(workspace.Change{Path: name, How: workspace.Added}) },
		"a place that has to be named": func(name string) string { return leftOut{top: name}.describePlace(2) },
		"the list of changes": written(func(b *bytes.Buffer, name string) error {
			return writeChanges(b, []workspace.Change{{Path: name, How: workspace.Added, Kind: workspace.File}})
		}),
		"a change that is left out": func(name string) string {
			_, errs := w.Apply(t.Context(), []workspace.Change{{Path: name, How: workspace.Added, Kind: workspace.Link, Target: "x", Refused: "no"}}, false)
			return errs[0].Error()
		},
		"a note on stderr": written(func(b *bytes.Buffer, name string) error {
			ui.NewStderr(b).Say("note: %s is not in the copy", ui.PrintableName(name))
			return nil
		}),
		"an approval's evidence": written(func(b *bytes.Buffer, name string) error {
			var s ui.Sheet
			showEvidence(&s, approval.Request{Evidence: evidence.Evidence{Inside: &evidence.Inside{Modules: []string{name}}}}, time.Now())
			_, err := b.WriteString(s.String())
			return err
		}),
		"an approval of a push": func(name string) string {
			var s ui.Sheet
			showPush(&s, approval.Request{Host: approval.Host{Repository: name}, Evidence: evidence.Evidence{Host: &evidence.Host{Refs: []string{name}}}}, time.Now())
			return s.String()
		},
		"a table": written(func(b *bytes.Buffer, name string) error { return ui.WriteTable(b, [][]string{{name, "x"}}) }),
		"why": func(name string) string {
			return refusal.Text([]refusal.Refusal{{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name}, File: name, Reason: name, Rule: name}})
		},
		"a file's error": func(name string) string {
			return (&channel.Reply{Code: channel.CodeNotFound, Error: name + " is not there"}).Err().Error()
		},
		"JSON": written(func(b *bytes.Buffer, name string) error { return ui.WriteJSONLine(b, api.FileInfo{Path: name}) }),
	}
}

// TestNoNameMakesALine: whatever bytes a name from inside has, it has no more lines than a plain
// one, and draws nothing.
func TestNoNameMakesALine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := workspace.Make(t.Context(), dir, filepath.Join(t.TempDir(), "run"), nil)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(34, 3))
	names := []string{"n\n+++ b/README", "n\r--- a/FILE", "n\u2028removed x", "\xff\n@@ -1 +1 @@", "\v\f\u0085"}
	for len(names) < 10_000 {
		name := make([]byte, 1+random.IntN(24))
		for i := range name {
			name[i] = byte(random.IntN(256))
			if random.IntN(4) == 0 {
				name[i] = "\n\r\v\f\x1b\x85\xe2\x80\xa8"[random.IntN(9)]
			}
		}
		name = bytes.Map(func(r rune) rune { return r }, name) // U+FFFD for what is none, in half of them
		if random.IntN(2) == 0 {
			name = bytes.ReplaceAll(name, []byte("\ufffd"), []byte{0xff})
		}
		names = append(names, strings.NewReplacer("/", "-", "\x00", "-").Replace(string(name)))
	}
	sentences := []string{"a file's error", "an approval's evidence", "an approval of a push", "a table", "why"} // of which a name is a part
	for printer, show := range namePrinters(t, w) {
		t.Run(printer, func(t *testing.T) {
			t.Parallel()
			plain := strings.Count(show("plain"), "\n")
			if show("a\nb") == show(`a\nb`) && !slices.Contains(sentences, printer) {
				t.Error("a name with a line's end is shown as one with a backslash and an n")
			}
			for _, name := range names {
				got := show(name)
				if hostile := strings.ReplaceAll(got, "\n", ""); strings.Count(got, "\n") != plain || strings.ContainsFunc(hostile, text.Hostile) {
					t.Fatalf("%q is shown as %q", name, got)
				}
			}
		})
	}
}

// TestAReviewOfHostileNames: files that are there have a difference of as many lines as one with a plain name.
func TestAReviewOfHostileNames(t *testing.T) {
	t.Parallel()
	w, err := workspace.Make(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "run"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, end := range []string{"", "\n+++ b-README", "\r", "\u2028", "\u0085", "\v\f", "\xff", `\n`, "\t"} {
		if err := os.WriteFile(filepath.Join(w.Dir(), fmt.Sprint(i)+end), []byte("z\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changes, err := w.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var c copying
	c.pointOut(t.Context(), w.Dir(), []string{"a\nb/.bashrc", `a\nb/.bashrc`}, nil)
	if all := strings.Join(c.notes, "|"); !strings.Contains(all, `a\\nb/.bashrc, a\nb/.bashrc`) {
		t.Errorf("%q", all)
	}
	lines, _ := changeLines(w, changes, -1)
	if text := strings.Join(lines, "\n"); len(changes) != 9 || len(lines) != 4*9 || strings.Count(text, "\n")+1 != 4*9 || !strings.Contains(text, `+++ b/1\n+++ b-README`) || !strings.Contains(text, `+++ b/7\\n`) {
		t.Errorf("%d changes:\n%s", len(changes), text)
	}
}
