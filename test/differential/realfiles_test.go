package differential

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	wants "github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// askedName is a package that a project asks for, as its client has it.
type askedName struct {
	Name      string `json:"name"`
	Elsewhere bool   `json:"elsewhere"` // it comes from no registry
}

// askedAnswer is what a client says of a project's manifests.
type askedAnswer struct {
	Error string      `json:"error"`
	Names []askedName `json:"names"`
	Own   []string    `json:"own"` // names of the project itself, and those that it takes from elsewhere
	May   []askedName `json:"may"` // names that may be asked for, such as those of catalogs and overrides
}

// request asks a worker about a file or a directory.
func (w *worker) request(t *testing.T, tool, file string, into any) {
	t.Helper()
	order, err := json.Marshal(map[string]string{"tool": tool, "file": file})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.in.Write(append(order, '\n')); err != nil {
		t.Fatal(err)
	}
	line, err := w.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the readers' process has ended: %v", err)
	}
	if err := json.Unmarshal(line, into); err != nil {
		t.Fatalf("the readers' process said %q: %v", line, err)
	}
}

// projectOnDisk are the files of a directory.
type projectOnDisk struct{ dir string }

func (d projectOnDisk) Read(name string) ([]byte, error) {
	at := filepath.Join(d.dir, filepath.FromSlash(path.Clean(name)))
	if strings.HasPrefix(path.Clean(name), "../") || isFolder(at) {
		return nil, nil
	}
	data, err := os.ReadFile(at)
	if os.IsNotExist(err) {
		return nil, nil
	}
	return data, err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (d projectOnDisk) Folders(name string) (dirs, links []string, err error) {
	entries, err := os.ReadDir(filepath.Join(d.dir, name))
	if os.IsNotExist(err) {
		return nil, nil, nil
	}
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, e.Name())
		}
	}
	return dirs, links, err
}

// askedHere reads a project's manifests of an ecosystem by our readers: those of a format, of which one is read as a file, or all ("").
func askedHere(files wants.Files, ecosystem pkgref.Ecosystem, only, file string) (*wants.Wants, []wants.Root, error) {
	w := wants.NewWants(files, func(name string) (string, bool) { return canonicalName(ecosystem, name) })
	w.AssumePublic() // which registry a project names is another test's
	for _, client := range all.Installers() {
		reader, can := client.(installer.ManifestReader)
		if !can || client.Ecosystem() != ecosystem {
			continue
		}
		for _, format := range reader.Manifests() {
			if only != "" && format.Name != only {
				continue
			}
			name := format.Name
			if only != "" {
				name = file
			}
			if _, err := w.Include(format, name); err != nil {
				return w, nil, err
			}
		}
	}
	roots, err := w.Roots()
	return w, roots, err
}

func canonicalName(ecosystem pkgref.Ecosystem, name string) (string, bool) {
	if ecosystem.Traits().Extras {
		name, _, _ = strings.Cut(name, "[")
	}
	canonical, err := pkgref.CanonicalName(ecosystem, strings.TrimSpace(name))
	return canonical, err == nil
}

// tellAsked says in which ways our readers and a client differ: a name that the client asks a registry for, and that is neither a root
// nor named among what was left out; and a root that the client takes from elsewhere, or does not ask for.
func tellAsked(ecosystem pkgref.Ecosystem, w *wants.Wants, roots []wants.Root, theirs askedAnswer) (faults []string) {
	canonical := func(name string) string { c, _ := canonicalName(ecosystem, name); return c }
	ours, public, elsewhere := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range roots {
		ours[canonical(r.Name)] = true
	}
	for _, name := range theirs.Own {
		elsewhere[canonical(name)] = true
	}
	for _, n := range theirs.Names {
		if n.Elsewhere {
			elsewhere[canonical(n.Name)] = true
		}
	}
	for _, n := range slices.Concat(theirs.Names, theirs.May) {
		public[canonical(n.Name)] = true
	}
	for _, n := range theirs.Names {
		if c := canonical(n.Name); !ours[c] && !isLeftOut(ecosystem, w, n.Name) {
			faults = append(faults, fmt.Sprintf("nothing is said of %q, which the client asks for (elsewhere: %t)", n.Name, elsewhere[c]))
		}
	}
	for name := range ours {
		switch {
		case name != "" && elsewhere[name]:
			faults = append(faults, fmt.Sprintf("%q is allowed from the registry, and the client takes it from elsewhere", name))
		case !public[name]:
			faults = append(faults, fmt.Sprintf("%q is allowed from the registry, and the client does not ask for it", name))
		}
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

// isLeftOut tells whether a name is named among what was left out.
func isLeftOut(ecosystem pkgref.Ecosystem, w *wants.Wants, name string) bool {
	canonical, ok := canonicalName(ecosystem, name)
	return slices.ContainsFunc(w.LeftOut(), func(l wants.LeftOut) bool {
		if strings.Contains(l.Text, name) {
			return true
		}
		for word := range strings.FieldsFuncSeq(l.Text, func(c rune) bool { return strings.ContainsRune(" \t[]@;<>=!~,", c) }) {
			if c, is := canonicalName(ecosystem, word); ok && is && c == canonical {
				return true
			}
		}
		return false
	})
}

// realFiles are files of real projects: those of COFFERDAM_REAL_FILES, a directory in which each project has one; with COFFERDAM_LONG=1
// those in released packages, which come from the machine's registries; and otherwise this repository's own, which are few. least is
// how many there are.
func realFiles(t *testing.T) (dir string, files []string, least int) {
	t.Helper()
	switch least = 50; {
	case os.Getenv("COFFERDAM_REAL_FILES") != "":
		dir = os.Getenv("COFFERDAM_REAL_FILES")
	case os.Getenv("COFFERDAM_LONG") != "":
		dir = releasedFiles(t)
	default:
		dir, least = filepath.Join("..", ".."), 7
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || least < 50 && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir, files, least
}

// counts are how many files of a format there were, and what came of them.
type counts struct{ files, equal, neither, odd int }

// realLook is one look at real files, with the clients' readers, which start when a file is theirs.
type realLook struct {
	top                string
	python, node       func() *worker
	locks, pythonLocks func() lockfileReader
	formats            map[string]*counts
}

// count notes what came of a file: neither tells that the client can't read it.
func (r *realLook) count(t *testing.T, format, file, theirError string, faults []string) {
	t.Helper()
	c := r.formats[format]
	if c == nil {
		c = &counts{}
		r.formats[format] = c
	}
	c.files++
	switch {
	case theirError != "":
		c.neither++
	case len(faults) == 0:
		c.equal++
	default:
		c.odd++
		shown, err := filepath.Rel(r.top, file)
		if err != nil {
			shown = file
		}
		t.Errorf("%s:\n  %s", shown, strings.Join(faults, "\n  "))
	}
}

// TestRealFilesAreReadAsTheirClientsDo: of each manifest and lockfile of real projects, each name that the client asks a registry
// for is allowed, or named with why it is not, and no other is allowed.
func TestRealFilesAreReadAsTheirClientsDo(t *testing.T) {
	t.Parallel()
	top, files, least := realFiles(t)
	look := &realLook{
		top:         top,
		python:      sync.OnceValue(func() *worker { return startPythonManifests(t) }),
		node:        sync.OnceValue(func() *worker { return startNodeManifests(t) }),
		locks:       sync.OnceValue(func() lockfileReader { return startLockfileReader(t) }),
		pythonLocks: sync.OnceValue(func() lockfileReader { return startPythonReader(t) }),
		formats:     map[string]*counts{},
	}
	for _, file := range files {
		look.file(t, file)
	}
	total := 0
	for _, format := range slices.Sorted(mapKeys(look.formats)) {
		c := look.formats[format]
		total += c.files
		t.Logf("%-22s %4d files: %4d equal, %3d that their client can't read, %3d otherwise", format, c.files, c.equal, c.neither, c.odd)
	}
	if t.Logf("%d files", total); total < least {
		t.Errorf("INCONCLUSIVE: there are %d files", total)
	}
}
