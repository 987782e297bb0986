package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// pythonEntry is what a client takes an entry of a lockfile for.
type pythonEntry struct {
	Name      string   `json:"name"`    // "": it is found out from the file
	Version   string   `json:"version"` // "": not one alone
	Hashes    []string `json:"hashes"`  // "algorithm:hex"
	Own       bool     `json:"own"`     // a folder of the project's own
	Elsewhere bool     `json:"elsewhere"`
}

type pythonAnswer struct {
	Error   string        `json:"error"`
	Entries []pythonEntry `json:"entries"`
}

func startPythonReader(t *testing.T) lockfileReader {
	t.Helper()
	bin := pythonBin(t)
	script, err := filepath.Abs(filepath.Join("testdata", "pylocks.py"))
	if err != nil {
		t.Fatal(err)
	}
	return lockfileReader{start(t, nil, filepath.Join(bin, "python"), "-W", "ignore", script, filepath.Join(bin, "uv"))}
}

func (r lockfileReader) readPython(t *testing.T, tool string, files map[string][]byte) pythonAnswer {
	t.Helper()
	dir := t.TempDir()
	all := map[string][]byte{"pyproject.toml": nil, "lib/pyproject.toml": nil, "member/pyproject.toml": nil}
	maps.Copy(all, files)
	for name, content := range all {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
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
	var a pythonAnswer
	if err := json.Unmarshal(line, &a); err != nil {
		t.Fatalf("the readers' process said %q: %v", line, err)
	}
	return a
}

// hasPythonEntry tells whether a client has an entry for a pin, with each of its digests.
func hasPythonEntry(entries []pythonEntry, name string, p policyPin) bool {
	return slices.ContainsFunc(entries, func(e pythonEntry) bool {
		canonical, err := pkgref.CanonicalName(pkgref.Python, e.Name)
		return err == nil && canonical == name && !e.Own && !e.Elsewhere && pkgref.SameVersion(pkgref.Python, e.Version, p.Version) &&
			len(p.Digests) > 0 && !slices.ContainsFunc(p.Digests, func(digest string) bool { return !slices.Contains(e.Hashes, digest) })
	})
}

// isPythonTold tells whether a lockfile pins or refuses an entry's name, or says why it is left out.
func isPythonTold(lock *lockfile.Lockfile, e pythonEntry) bool {
	canonical, err := pkgref.CanonicalName(pkgref.Python, e.Name)
	if err != nil || e.Own {
		return e.Own || len(lock.Skipped) > 0
	}
	return len(lock.Unpinned[canonical]) > 0 || slices.ContainsFunc(lock.Skipped, func(s lockfile.Skipped) bool { return strings.Contains(s.Name, e.Name) }) ||
		slices.ContainsFunc(lock.Pins[canonical], func(p policyPin) bool { return pkgref.SameVersion(pkgref.Python, p.Version, e.Version) })
}

// tellPythonLocked says in which ways our reader and the client's differ, by what may not be.
func tellPythonLocked(lock *lockfile.Lockfile, entries []pythonEntry) (faults []string) {
	for _, e := range entries {
		if !isPythonTold(lock, e) {
			faults = append(faults, fmt.Sprintf("nothing is said of %+v", e))
		}
	}
	for name, pins := range lock.Pins {
		for _, p := range pins {
			if !hasPythonEntry(entries, name, p) {
				faults = append(faults, fmt.Sprintf("%s %s (line %d, %v) is pinned, and the client has %+v", name, p.Version, p.Line, p.Digests, entries))
			}
		}
	}
	return faults
}

// TestPythonLockfilesAreReadAsTheirClientsDo: what pip, packaging and uv find in a lockfile is
// pinned by no digest but theirs, refused, or left out with a reason, and nothing else is pinned.
func TestPythonLockfilesAreReadAsTheirClientsDo(t *testing.T) {
	t.Parallel()
	reader, d := startPythonReader(t), roll(t)
	for _, format := range []struct {
		tool, file string
		many       int
		make       func() map[string][]byte
	}{
		{"requirements", "requirements.txt", 400, func() map[string][]byte { return map[string][]byte{"requirements.txt": d.requirementsLock()} }},
		{"pylock", "pylock.toml", 300, func() map[string][]byte { return map[string][]byte{"pylock.toml": d.pylock()} }},
		{"uv", "uv.lock", 60, func() map[string][]byte {
			project, lock := d.uvProject()
			return map[string][]byte{"pyproject.toml": project, "uv.lock": lock}
		}},
	} {
		read, refused, theirsRefused := 0, 0, 0
		many := rounds(format.many, 100*format.many)
		for range many {
			files := format.make()
			theirs := reader.readPython(t, format.tool, files)
			text := files[format.file]
			ours, err := lockfile.Parse(format.file, text)
			switch {
			case err != nil:
				if refused++; !strings.Contains(err.Error(), format.file+":") && !strings.Contains(err.Error(), "line ") {
					t.Errorf("%s: the refusal names no line: %v\n%s", format.tool, err, text)
				}
				continue
			case theirs.Error != "":
				theirsRefused++
				continue // we may read what the client can't
			}
			read++
			for _, fault := range tellPythonLocked(ours, theirs.Entries) {
				t.Errorf("%s: %s\n%s", format.tool, fault, text)
			}
			if t.Failed() {
				return
			}
		}
		if t.Logf("%s: %d read, %d refused by us, %d by the client", format.tool, read, refused, theirsRefused); read < many/4 {
			t.Errorf("%s: three of four files are refused; the test says little", format.tool)
		}
	}
}
