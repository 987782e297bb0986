package lockfile

import (
	"net/url"
	"path"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// pythonFile checks that a file's name, or the last part of its URL, is that of
// a file of the release. Otherwise the lockfile gives a package another one's
// file under a hash that is right.
func (b *builder) pythonFile(line int, location string, ref pkgref.Ref) error {
	name := path.Base(location)
	if u, err := url.Parse(location); err == nil {
		name = path.Base(u.Path)
	}
	if !isFileOf(name, ref) {
		return b.wrong(line, "%q is not a file of %s %s", excerpt.Of(name, maxQuoted), ref.Name, ref.Version)
	}
	return nil
}

func isFileOf(file string, ref pkgref.Ref) bool {
	f, err := pkgref.ParsePythonFile(file, ref.Name)
	return err == nil && pkgref.SameVersion(ref.Ecosystem, f.Version, ref.Version)
}
