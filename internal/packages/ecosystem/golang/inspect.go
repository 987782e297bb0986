package golang

import (
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/license"
)

// Inspect reads a module's zip as strictly as the go command does before it
// unpacks one, and its go.mod. The release is what every path in it begins with.
// Nothing runs when a module is unpacked or built: cgo and generators are the
// toolchain's and the user's.
func (Protocol) Inspect(file ecosystem.File, _ []byte, content ecosystem.Content) (ecosystem.Inspection, error) {
	z, err := openZip(content)
	if err != nil {
		return ecosystem.Inspection{}, err
	}
	t, err := readTree(z.Members(), file.Version)
	if err != nil {
		return ecosystem.Inspection{}, err
	}
	if t.project == "" {
		return ecosystem.Inspection{}, fault.Invalid("the zip of a module has no file")
	}
	in := ecosystem.Inspection{Description: ecosystem.Description{Name: t.project, Version: file.Version}}
	m, err := t.readMod(z)
	if err != nil {
		return ecosystem.Inspection{}, err
	}
	if m.path != "" && m.path != t.project {
		return ecosystem.Inspection{}, fault.Invalid("the go.mod in the zip of %s names another module", t.project)
	}
	in.Requirements = m.requirements
	in.Bundled, err = t.vendored(z)
	// Every byte is read: a member whose checksum is wrong refuses the zip.
	if err == nil {
		err = z.Visit(func(archive.Member, io.Reader) error { return nil })
	}
	in.Inside = t.inside()
	if err != nil {
		return in, err
	}
	in.Said, err = t.saidLicence(z)
	return in, err
}

// saidLicence is what the module says of itself: the licence, by its files' text.
func (t *zipTree) saidLicence(z *archive.ZipReader) (ecosystem.Publication, error) {
	var claims license.Claims
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		if strings.Contains(name, "/") || t.members[t.byName[name]].Mode.IsDir() {
			continue
		}
		err := claims.Collect(name, func(most int64) ([]byte, error) {
			r, err := z.Open(t.members[t.byName[name]].Path)
			if err != nil {
				return nil, err
			}
			return io.ReadAll(io.LimitReader(r, most))
		})
		if err != nil {
			return ecosystem.Publication{}, err
		}
	}
	return ecosystem.Publication{License: claims.String()}.Clipped(), nil
}

// zipTree is the files of a zip.
type zipTree struct {
	project string
	prefix  string // "MODULE@VERSION/"
	members []archive.Member
	byName  map[string]int // below the prefix
}

// readTree checks the paths by the rules of module zips. Paths that differ only
// in case, occur twice or leave the zip were refused when it was opened.
func readTree(members []archive.Member, version string) (*zipTree, error) {
	t := &zipTree{members: members, byName: map[string]int{}}
	for i, m := range members {
		if t.prefix == "" {
			if err := t.beginModule(m.Path, version); err != nil {
				return nil, err
			}
		}
		name, ok := strings.CutPrefix(m.Path, t.prefix)
		if m.Mode.IsDir() && strings.HasPrefix(t.prefix, m.Path+"/") {
			continue // a folder on the way to the files
		}
		if !ok {
			return nil, fault.Invalid("the zip of %s has a file outside of %s", t.project, t.prefix)
		}
		if err := checkFile(name, m); err != nil {
			return nil, err
		}
		t.byName[name] = i
	}
	return t, nil
}

// inside is what the module brings: its packages, and files that are no source.
func (t *zipTree) inside() (in ecosystem.Inside) {
	for name := range t.byName {
		in.AddPath(name, nil)
		if dir := path.Dir(name); path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
			in.AddModule(path.Join(t.project, dir))
		}
	}
	in.Sorted()
	return in
}

// beginModule takes the module's path from the first file's.
func (t *zipTree) beginModule(first, version string) error {
	before, _, ok := strings.Cut(first, "@"+version+"/")
	if !ok || !isRelease(before, version) {
		return fault.Invalid("the zip's files do not lie below a module's path and %s", redact.Cut(version, maxQuoted))
	}
	t.project, t.prefix = before, before+"@"+version+"/"
	return nil
}

// checkFile checks one path below the prefix.
func checkFile(name string, m archive.Member) error {
	if err := module.CheckFilePath(name); err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the zip has a path that the go command refuses")
	}
	if m.Mode.IsDir() {
		return nil
	}
	if strings.EqualFold(path.Base(name), "go.mod") && name != "go.mod" {
		return fault.Invalid("the zip has a go.mod that is not the module's own")
	}
	if (name == "go.mod" && m.Size > maxMod) || (name == "LICENSE" && m.Size > zip.MaxLICENSE) {
		return fault.Invalid("the zip's %s is too large", name)
	}
	return nil
}

// readMod reads the go.mod; the zero value if there is none.
func (t *zipTree) readMod(z *archive.ZipReader) (mod, error) {
	data, err := t.readFile(z, "go.mod", maxMod)
	if errors.Is(err, fault.ErrNotFound) {
		return mod{}, nil
	}
	if err != nil {
		return mod{}, err
	}
	return readMod(data)
}

// readFile gives a file's bytes.
func (t *zipTree) readFile(z *archive.ZipReader, name string, most int64) ([]byte, error) {
	i, ok := t.byName[name]
	if !ok {
		return nil, fault.New(fault.ErrNotFound, "the zip has no such file")
	}
	if t.members[i].Size > most {
		return nil, fault.Invalid("the zip's %s is too large", name)
	}
	r, err := z.Open(t.members[i].Path)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
