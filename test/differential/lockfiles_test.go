package differential

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// lockedEntry is what a client takes an entry of a lockfile for.
type lockedEntry struct {
	Name      string `json:"name"`
	Installed string `json:"installed"` // the name under which it lies in the project
	Version   string `json:"version"`   // "": none that a registry has
	Integrity string `json:"integrity"`
	Resolved  string `json:"resolved"`
	Own       bool   `json:"own"`     // a folder of the project's own
	Bundled   bool   `json:"bundled"` // it comes in another one's file, and no registry is asked for it
}

type lockedAnswer struct {
	Error   string        `json:"error"`
	Entries []lockedEntry `json:"entries"`
}

// lockfileReader is the clients' own readers, in one process.
type lockfileReader struct{ *worker }

func startLockfileReader(t *testing.T) lockfileReader {
	t.Helper()
	env := node(t)
	argv := []string{"npm", "install", "--prefix=.", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "npm@11", "@pnpm/lockfile.fs@1001", "@pnpm/lockfile.utils@1003"}
	modules := filepath.Join(installed(t, "lockfiles", env, argv...), "node_modules")
	return lockfileReader{start(t, env, "node", filepath.Join("testdata", "lockfiles.cjs"), modules)}
}

func (r lockfileReader) read(t *testing.T, tool, name string, text []byte) lockedAnswer {
	t.Helper()
	dir := t.TempDir()
	for file, content := range map[string][]byte{name: text, "package.json": []byte("{}")} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	order, err := json.Marshal(map[string]string{"tool": tool, "file": dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.in.Write(append(order, '\n')); err != nil {
		t.Fatal(err)
	}
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the readers' process has ended: %v", err)
	}
	var a lockedAnswer
	if err := json.Unmarshal(line, &a); err != nil {
		t.Fatalf("the readers' process said %q: %v", line, err)
	}
	return a
}

// tellLocked says in which ways our reader and the client's differ, by what may not be: an entry that we say nothing of, and a pin that
// the client does not have.
func tellLocked(lock *lockfile.Lockfile, entries []lockedEntry) (faults []string) {
	var theirs []string
	for _, e := range entries {
		theirs = append(theirs, e.Name+"@"+e.Version)
		if !e.Bundled && !isTold(lock, e) {
			faults = append(faults, fmt.Sprintf("nothing is said of %+v", e))
		}
	}
	for name, pins := range lock.Pins {
		for _, p := range pins {
			if name == toolName {
				continue
			}
			at := slices.IndexFunc(entries, func(e lockedEntry) bool {
				return strings.EqualFold(e.Name, name) && pkgref.SameVersion(pkgref.Node, e.Version, p.Version) && !e.Own && (len(p.Digests) == 0 || e.Integrity != "")
			})
			if at < 0 {
				faults = append(faults, fmt.Sprintf("%s %s (line %d) is pinned, and the client has %v", name, p.Version, p.Line, theirs))
			}
		}
	}
	return faults
}

// isTold tells whether a lockfile pins or refuses an entry's name, or says why it is left out.
func isTold(lock *lockfile.Lockfile, e lockedEntry) bool {
	for _, name := range []string{e.Name, e.Installed} {
		canonical, err := pkgref.CanonicalName(pkgref.Node, name)
		if err != nil {
			if e.Own {
				return true // no registry has it, and nobody asks one for it
			}
			continue
		}
		if len(lock.Unpinned[canonical]) > 0 {
			return true
		}
		if slices.ContainsFunc(lock.Pins[canonical], func(p policyPin) bool { return pkgref.SameVersion(pkgref.Node, p.Version, e.Version) }) {
			return true
		}
	}
	return slices.ContainsFunc(lock.Skipped, func(s lockfile.Skipped) bool {
		return s.Name == e.Name || strings.HasPrefix(s.Name, e.Name+"@")
	})
}

// TestLockfilesAreReadAsTheirClientsDo: what npm and pnpm find in a lockfile is pinned, refused, or left out with a reason,
// and nothing else is pinned. A file that we refuse is refused with its line.
func TestLockfilesAreReadAsTheirClientsDo(t *testing.T) {
	t.Parallel()
	reader, d := startLockfileReader(t), roll(t)
	for _, format := range []struct {
		tool, file string
		make       func(dice) []byte
	}{{"npm", "package-lock.json", dice.packageLock}, {"pnpm", "pnpm-lock.yaml", dice.pnpmLock}} {
		read, refused := 0, 0
		for range rounds(400, 50_000) {
			text := format.make(d)
			theirs := reader.read(t, format.tool, format.file, text)
			ours, err := lockfile.Parse(format.file, text)
			switch {
			case err != nil:
				if refused++; !strings.Contains(err.Error(), format.file+":") && !strings.Contains(err.Error(), "line ") {
					t.Errorf("%s: the refusal names no line: %v\n%s", format.tool, err, text)
				}
				continue
			case theirs.Error != "":
				continue // we may read what the client can't
			}
			read++
			for _, fault := range tellLocked(ours, theirs.Entries) {
				t.Errorf("%s: %s\n%s", format.tool, fault, text)
			}
			if t.Failed() {
				return
			}
		}
		if t.Logf("%s: %d read, %d refused by us", format.tool, read, refused); read < refused {
			t.Errorf("%s: most files are refused; the test says little", format.tool)
		}
	}
}
