package mountpolicy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// laidOut makes files below a new directory, by their names; with "-" as its text a directory.
func laidOut(t *testing.T, files map[string]string) (at func(string) string) {
	t.Helper()
	dir := t.TempDir()
	at = func(name string) string { return filepath.Join(dir, name) }
	for name, text := range files {
		err := os.MkdirAll(filepath.Dir(at(name)), 0o755)
		if text == "-" {
			err = errors.Join(err, os.MkdirAll(at(name), 0o755))
		} else {
			err = errors.Join(err, os.WriteFile(at(name), []byte(text), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// covers are where hidden files and directories lie of a request.
func covers(all []engine.Mount) (hidden []string) {
	for _, m := range all {
		if !m.Around.IsZero() {
			hidden = append(hidden, m.Destination)
		}
	}
	slices.Sort(hidden)
	return hidden
}

// TestAnIgnoreFileHoldsWhereverItsDirectoryIsShown: whole or in part, in whatever request, by whatever
// name, a sandbox sees nothing of what the ignore file hides, and a copy has nothing of it. The controls are files that it does not name,
// and directories beside it.
func TestAnIgnoreFileHoldsWhereverItsDirectoryIsShown(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"p/" + IgnoreFile: ".env\n/service/key.pem\n/vault/\ndata/*.crt\n", "p/.env": "s", "p/main": "", "p/service/.env": "s", "p/service/key.pem": "s",
		"p/service/main": "", "p/service/deep/.env": "s", "p/service/deep/key.pem": "", "p/vault/x": "s", "p/vault/in/y": "s", "p/data/a.crt": "s", "p/data/a.txt": "",
		"q/.env": "", "q/key.pem": "",
	}
	for name, c := range map[string]struct {
		mounts  []Mount
		allowed []string // projects
		want    []string
		refused string
	}{
		"the directory":                  {mounts: []Mount{{Source: "p"}}, want: []string{"/0/.env", "/0/data/a.crt", "/0/service/.env", "/0/service/deep/.env", "/0/service/key.pem", "/0/vault"}},
		"one below it":                   {mounts: []Mount{{Source: "p/service"}}, want: []string{"/0/.env", "/0/deep/.env", "/0/key.pem"}},
		"one deep below it":              {mounts: []Mount{{Source: "p/service/deep"}}, want: []string{"/0/.env"}},
		"both":                           {mounts: []Mount{{Source: "p/service"}, {Source: "p/data", ReadWrite: true}}, want: []string{"/0/.env", "/0/deep/.env", "/0/key.pem", "/1/a.crt"}},
		"one that is hidden":             {mounts: []Mount{{Source: "p/vault"}}, refused: IgnoreFile + " hides it"},
		"one in what is hidden":          {mounts: []Mount{{Source: "p/vault/in"}}, refused: IgnoreFile + " hides it"},
		"a file that is hidden":          {mounts: []Mount{{Source: "p/service/.env"}}, refused: IgnoreFile + " hides it"},
		"control: a file":                {mounts: []Mount{{Source: "p/service/main"}}},
		"control: one beside it":         {mounts: []Mount{{Source: "q"}}},
		"above a project":                {mounts: []Mount{{Source: "."}}, allowed: []string{"p"}, want: []string{"/0/p/.env", "/0/p/data/a.crt", "/0/p/service/.env", "/0/p/service/deep/.env", "/0/p/service/key.pem", "/0/p/vault"}},
		"above a project, written":       {mounts: []Mount{{Source: ".", ReadWrite: true}}, allowed: []string{"p"}, refused: "lies under the read-write mount"},
		"control: of no known directory": {mounts: []Mount{{Source: "."}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := laidOut(t, files)
			var asked []Mount
			for i, m := range c.mounts {
				asked = append(asked, Mount{Source: at(m.Source), Destination: "/" + string(rune('0'+i)), ReadWrite: m.ReadWrite})
			}
			rules := Rules{EmptyFile: "/empty", Projects: func() (all []string, err error) {
				for _, dir := range c.allowed {
					all = append(all, at(dir))
				}
				return all, nil
			}}
			all, err := rules.Lay(t.Context(), asked, nil)
			if c.refused != "" {
				if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%v, and %q are hidden; want a refusal", err, covers(all))
				}
				return
			}
			if got := covers(all); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q are hidden, %v; want %q", got, err, c.want)
			}
			if len(asked) > 1 {
				return
			}
			if left := leftOut(t, rules, asked[0].Source); !slices.Equal(left, c.want) {
				t.Errorf("a copy is without %q; want %q", left, c.want)
			}
		})
	}
}

// leftOut is what a copy would be without.
func leftOut(t *testing.T, rules Rules, source string) (all []string) {
	t.Helper()
	c := opened(t, Mount{Source: source, Destination: "/0"})[0]
	hides, err := rules.Ignored(t.Context(), c.path)
	if err != nil {
		t.Fatal(err)
	}
	if hides == nil || c.Origin().Type != hostpath.Dir {
		return nil
	}
	err = fs.WalkDir(os.DirFS(source), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !hides(name, d) {
			return err
		}
		if all = append(all, filepath.Join("/0", name)); d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// TestWhatWasHiddenStaysHiddenInParts: what an ignore file has hidden is hidden under another name, too,
// where a part of its directory is shown, or one above it. A sandbox that was shown a part alone is believed
// as well. Without the record, as the control, it is shown.
func TestWhatWasHiddenStaysHiddenInParts(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"kept": true, "control: not kept": false} {
		at := laidOut(t, map[string]string{"p/" + IgnoreFile: "/a/key.pem\n/b/key.pem\n/c/\n", "p/a/key.pem": "s", "p/b/key.pem": "s", "p/c/x": "s", "p/d": "-"})
		rules := Rules{EmptyFile: "/empty"}
		if kept {
			h, err := OpenHidden(filepath.Join(t.TempDir(), "hidden"))
			if err != nil {
				t.Fatal(err)
			}
			rules.Hidden = h
		}
		hides := func(source string) []string {
			t.Helper()
			all, err := rules.Lay(t.Context(), []Mount{{Source: at(source), Destination: "/w"}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return covers(all)
		}
		for _, part := range []string{"p/a", "p/b"} {
			if got := hides(part); !slices.Equal(got, []string{"/w/key.pem"}) {
				t.Fatalf("%s: %q", part, got)
			}
		}
		hides("p")
		if err := errors.Join(os.Rename(at("p/a/key.pem"), at("p/d/plain")), os.Rename(at("p/b"), at("p/bee")), os.Rename(at("p/c"), at("p/open"))); err != nil {
			t.Fatal(err)
		}
		for part, want := range map[string][]string{"p/d": {"/w/plain"}, "p/bee": {"/w/key.pem"}, "p": {"/w/bee/key.pem", "/w/d/plain", "/w/open"}, ".": {"/w/p/bee/key.pem", "/w/p/d/plain", "/w/p/open"}} {
			if got := hides(part); slices.Equal(got, want) != kept {
				t.Errorf("%s: in %s %q are hidden, want %q: %v", name, part, got, want, kept)
			}
		}
		if _, err := rules.Lay(t.Context(), []Mount{{Source: at("p/open"), Destination: "/w"}}, nil); (err != nil) != kept {
			t.Errorf("%s: a directory that was hidden: %v", name, err)
		}
	}
}

// TestManyHiddenPartsAreLookedThroughTogether: once too many files are known of parts, all of the directory is looked through,
// and what is there is known. The control is what a part alone has hidden, which stays known.
func TestManyHiddenPartsAreLookedThroughTogether(t *testing.T) {
	t.Parallel()
	at := laidOut(t, map[string]string{IgnoreFile: "/*/key.pem\n", "a/key.pem": "s", "b/key.pem": "s", "c": "-"})
	h := &Hidden{path: filepath.Join(t.TempDir(), "hidden"), most: 10, mostIDs: 3}
	rules := Rules{EmptyFile: "/empty", Hidden: h}
	hides := func(part string) []string {
		t.Helper()
		all, err := rules.Lay(t.Context(), []Mount{{Source: at(part), Destination: "/w"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return covers(all)
	}
	hides("a")
	for i := range 6 { // as a build does that makes it anew
		name := at(filepath.Join("b", "key.pem"))
		if err := errors.Join(os.Rename(name, name+".old"), os.WriteFile(name, nil, 0o600), os.Remove(name+".old")); err != nil {
			t.Fatal(err)
		}
		if got := hides("b"); !slices.Equal(got, []string{"/w/key.pem"}) {
			t.Fatalf("round %d: %q", i, got)
		}
	}
	if err := os.Rename(at("a/key.pem"), at("c/plain")); err != nil {
		t.Fatal(err)
	}
	if got := hides("c"); !slices.Equal(got, []string{"/w/plain"}) {
		t.Errorf("%q are hidden", got)
	}
}

// TestIgnoreFilesAboveOtherNames: a part of a directory with an ignore file that is mounted elsewhere on the host shows no more there, and
// neither does what it is mounted in. The control is the same directory from which nothing is mounted.
func TestIgnoreFilesAboveOtherNames(t *testing.T) {
	t.Parallel()
	at := laidOut(t, map[string]string{
		"p/" + IgnoreFile: "/data/key.pem\n/vault/\n", "p/data/key.pem": "s", "p/data/main": "", "p/vault/x": "s",
		"alias": "-", "q/in": "-", "q/vault": "-", "r/key.pem": "", "r/vault/x": "",
	})
	for place, source := range map[string]string{"alias": "p/data", "q/in": "p/data", "q/vault": "p/vault"} {
		if err := unix.Mount(at(source), at(place), "", unix.MS_BIND, ""); err != nil {
			processtest.NeedRoot(t, err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(at(place), unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	for source, want := range map[string][]string{"alias": {"/w/key.pem"}, "q": {"/w/in/key.pem", "/w/vault"}, "q/in": {"/w/key.pem"}, "r": nil} {
		all, err := Rules{EmptyFile: "/empty"}.Lay(t.Context(), []Mount{{Source: at(source), Destination: "/w"}}, nil)
		if got := covers(all); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q are hidden, %v; want %q", source, got, err, want)
		}
	}
}

// TestIgnoreFilesThatDoNotHold: those above the copies of runs, and those of strangers where everybody may make files. The controls are
// the same ones elsewhere.
func TestIgnoreFilesThatDoNotHold(t *testing.T) {
	t.Parallel()
	at := laidOut(t, map[string]string{IgnoreFile: "key.pem\n", "copies/run/copy/key.pem": "", "copies/run/copy/own/" + IgnoreFile: "x", "copies/run/copy/own/x": ""})
	for copies, want := range map[string][]string{at("copies"): nil, "": {"/w/key.pem"}} {
		all, err := Rules{EmptyFile: "/empty", Copies: copies}.Lay(t.Context(), []Mount{{Source: at("copies/run/copy"), Destination: "/w"}}, nil)
		if got := covers(all); err != nil || !slices.Equal(got, want) {
			t.Errorf("copies in %q: %q are hidden, %v; want %q", copies, got, err, want)
		}
	}
	at = laidOut(t, map[string]string{IgnoreFile: "key.pem\n", "mine/key.pem": ""})
	if err := os.Lchown(at(IgnoreFile), 65_534, 65_534); err != nil {
		processtest.NeedRoot(t, err)
	}
	for mode, want := range map[fs.FileMode][]string{0o777 | fs.ModeSticky: nil, 0o755: {"/w/key.pem"}} {
		if err := os.Chmod(at("."), mode); err != nil {
			t.Fatal(err)
		}
		all, err := Rules{EmptyFile: "/empty"}.Lay(t.Context(), []Mount{{Source: at("mine"), Destination: "/w"}}, nil)
		if got := covers(all); err != nil || !slices.Equal(got, want) {
			t.Errorf("in a directory of mode %v: %q are hidden, %v; want %q", mode, got, err, want)
		}
	}
}
