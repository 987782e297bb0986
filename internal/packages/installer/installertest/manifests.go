package installertest

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// manifests: each file has an example whose names are found, and what is cut or nonsense is
// refused or names less.
func (s Sample) manifests(t *testing.T) {
	reader, can := s.Installer.(installer.ManifestReader)
	if !can {
		return
	}
	for _, m := range reader.Manifests() {
		want, given := s.Manifests[m.Name]
		if !given || len(want.Roots) == 0 {
			t.Errorf("%s has no example", m.Name)
		}
		got, err := rootsOf(m, want.Text)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		for _, root := range want.Roots {
			if !slices.Contains(got, root) {
				t.Errorf("%s: %q does not have %s", m.Name, got, root)
			}
		}
		for _, bad := range []string{"", "\xff\xfe", "\xff", "{", strings.Repeat("[", 100_000), want.Text[:len(want.Text)/2]} {
			if some, err := rootsOf(m, bad); err == nil && len(some) > strings.Count(want.Text, "\n")+len(want.Roots)+1 {
				t.Errorf("%s: %.20q has %d roots", m.Name, bad, len(some))
			}
		}
	}
}

// rootsOf are the names of a manifest's roots, in a project that has nothing else.
func rootsOf(m manifest.Format, text string) (names []string, err error) {
	w := manifest.NewWants(Files{m.Name: text}, func(name string) (string, bool) { return strings.ToLower(name), name != "" })
	if _, err := w.Include(m, m.Name); err != nil {
		return nil, err
	}
	roots, err := w.Roots()
	for _, r := range roots {
		names = append(names, r.Name)
	}
	return names, err
}

// Files is a project in memory: texts by their names.
type Files map[string]string

// Read implements manifest.Files.
func (f Files) Read(name string) ([]byte, error) {
	if text, has := f[path.Clean(name)]; has {
		return []byte(text), nil
	}
	return nil, nil
}

// Folders implements manifest.Files.
func (f Files) Folders(name string) (dirs, links []string, err error) {
	found := map[string]bool{}
	for file := range f {
		below := file
		if name != "." {
			var is bool
			if below, is = strings.CutPrefix(file, name+"/"); !is {
				continue
			}
		}
		if first, _, deeper := strings.Cut(below, "/"); deeper {
			found[first] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil, nil
}
