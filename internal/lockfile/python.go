package lockfile

import (
	"net/url"
	"path"
	"strings"

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
		return b.wrong(line, "%q is not a file of %s %s", clip(name), ref.Name, ref.Version)
	}
	return nil
}

func isFileOf(file string, ref pkgref.Ref) bool {
	if stem, ok := strings.CutSuffix(file, ".whl"); ok {
		parts := strings.Split(stem, "-")
		return (len(parts) == 5 || len(parts) == 6) && isRelease(parts[0], strings.ReplaceAll(parts[1], "_", "-"), ref)
	}
	for _, suffix := range []string{".tar.gz", ".tgz", ".zip", ".tar.bz2", ".tar.xz", ".tar"} {
		stem, ok := strings.CutSuffix(file, suffix)
		if !ok {
			continue
		}
		for i := range len(stem) {
			if stem[i] == '-' && isRelease(stem[:i], stem[i+1:], ref) {
				return true
			}
		}
		return false
	}
	return false
}

func isRelease(name, version string, ref pkgref.Ref) bool {
	other, err := pkgref.New(pkgref.Python, name, version)
	return err == nil && other.Name == ref.Name && pkgref.SameVersion(pkgref.Python, other.Version, ref.Version)
}
