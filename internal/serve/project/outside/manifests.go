package outside

import (
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// manifests notes the directories that a project's manifests name, if they are projects of such a client. A manifest that
// can't be read names none here: its client says why.
func (f *finder) manifests(files manifest.Files) {
	for _, client := range all.Installers() {
		reader, can := client.(installer.ManifestReader)
		if !can {
			continue
		}
		formats := reader.Manifests()
		spared := sparing{files: files}
		w := manifest.NewWants(&spared, func(name string) (string, bool) { return name, true })
		for _, format := range formats {
			spared.left = mostLooks
			_, _ = w.Include(format, format.Name) // one that is wrong ends here, with what it has named so far
		}
		for _, o := range w.Outside() {
			f.folder(o, formats)
		}
	}
}

// mostLooks bounds how often something is looked at for one manifest before each start: a workspace may be all directories
// below the project. Anything beyond counts as not there.
const mostLooks = 1000

// sparing are files of which so many are looked at, and no more.
type sparing struct {
	files manifest.Files
	left  int
}

func (s *sparing) Read(name string) ([]byte, error) {
	if s.left--; s.left < 0 && strings.Contains(name, "/") { // the project's own are read all the same
		return nil, nil
	}
	return s.files.Read(name)
}

func (s *sparing) Folders(name string) (dirs, links []string, err error) {
	if s.left--; s.left < 0 {
		return nil, nil, nil
	}
	return s.files.Folders(name)
}

// folder notes a directory that a manifest names.
func (f *finder) folder(o manifest.Outside, formats []manifest.Format) {
	path, looked := placeAt(o.Path, f.of.Source, f.of.Destination)
	if f.isShown(path, looked) || strings.HasPrefix(f.of.Source+"/", path+"/") { // one that has the project in it
		return
	}
	dir := openDir(path)
	if dir == nil {
		return // its client says that it is not there
	}
	defer dir.Close()
	for _, name := range append(namesOf(formats), "setup.py") {
		if hasEntry(dir, name, hostpath.File) {
			f.addPart(Part{File: filepath.ToSlash(o.File), Path: path, Why: look + "it is not there without", Flags: []Flag{{Source: path, Destination: looked}}})
			return
		}
	}
}

func namesOf(formats []manifest.Format) []string {
	names := make([]string, 0, len(formats))
	for _, format := range formats {
		names = append(names, format.Name)
	}
	return names
}
