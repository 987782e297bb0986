package pypi

import (
	"io"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

const maxMetadata = 8 << 20

// infoSuffix ends the name of the folder that describes an installed release.
const infoSuffix = ".dist-info"

// openedWheel is a wheel whose archive can be read in one way only.
type openedWheel struct {
	zip     *archive.ZipReader
	members []archive.Member
	info    string // the folder of its description
}

// Sidecar extracts METADATA from a wheel. It refuses an archive that two
// unpackers would read in two ways, and one with two dist-info folders.
func (Protocol) Sidecar(file ecosystem.File, content ecosystem.Content) ([]byte, error) {
	if file.Kind != policy.KindWheel {
		return nil, fault.New(fault.ErrNotFound, "a source distribution's metadata is not served")
	}
	w, err := openWheel(file, content)
	if err != nil {
		return nil, err
	}
	return w.readFile("METADATA", maxMetadata)
}

// openWheel finds the one folder that describes the file's release.
func openWheel(file ecosystem.File, content ecosystem.Content) (*openedWheel, error) {
	z, err := archive.Zip(content, content.Size(), archive.Limits{})
	if err != nil {
		return nil, err
	}
	w := &openedWheel{zip: z, members: z.Members()}
	for _, m := range w.members {
		top, _, _ := strings.Cut(m.Path, "/")
		if !strings.HasSuffix(top, infoSuffix) {
			continue
		}
		if w.info != "" && top != w.info {
			return nil, fault.Invalid("the wheel has two dist-info folders")
		}
		w.info = top
	}
	if !infoOf(file, w.info) {
		return nil, fault.Invalid("the wheel has no dist-info folder of the release that its name says")
	}
	return w, nil
}

// readFile reads a file of the description.
func (w *openedWheel) readFile(name string, most int64) ([]byte, error) {
	r, err := w.zip.Open(w.info + "/" + name)
	if err != nil {
		return nil, fault.Invalid("the wheel has no %s", name)
	}
	return readAll(r, name, most)
}

// readAll reads a file of a description to its end, at which its checksum is
// checked. name is one that the formats give.
func readAll(r io.Reader, name string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fault.Invalid("the file's %s has more than %d bytes", name, most)
	}
	return data, nil
}

// infoOf reports whether a dist-info folder is the file's own release's.
func infoOf(file ecosystem.File, folder string) bool {
	ref, ok := pkgref.ParseDistInfo(folder)
	if !ok {
		return false
	}
	d, err := pkgref.ParsePythonFile(file.Name, "")
	return err == nil && ref.Name == d.Project && pkgref.SameVersion(pkgref.Python, ref.Version, d.Version)
}
