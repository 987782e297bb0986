package golang

import (
	"errors"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// maxVendorList bounds vendor/modules.txt.
const maxVendorList = 4 << 20

// vendored lists the modules that vendor/modules.txt names and of which there
// are files: the go command leaves most of a vendor folder out of a zip, and
// the list in. A file in vendor that is not listed has no name.
func (t *zipTree) vendored(z *archive.ZipReader) ([]ecosystem.Bundled, error) {
	data, err := t.readFile(z, "vendor/modules.txt", maxVendorList)
	if errors.Is(err, fault.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	folders := t.vendorFolders()
	var out []ecosystem.Bundled
	for line := range strings.Lines(string(data)) {
		b, ok := vendorLine(line)
		if ok && folders[b.Name] && len(out) < ecosystem.MaxBundled {
			out = append(out, b)
			delete(folders, b.Name)
		}
	}
	return out, nil
}

// vendorFolders are all folders below vendor that have a file, at any depth.
func (t *zipTree) vendorFolders() map[string]bool {
	folders := map[string]bool{}
	for name, i := range t.byName {
		rest, ok := strings.CutPrefix(name, "vendor/")
		if !ok || t.members[i].Mode.IsDir() {
			continue
		}
		for at := strings.LastIndexByte(rest, '/'); at > 0 && !folders[rest[:at]]; at = strings.LastIndexByte(rest[:at], '/') {
			folders[rest[:at]] = true
		}
	}
	return folders
}

// vendorLine reads "# MODULE VERSION", with or without a replacement.
func vendorLine(line string) (ecosystem.Bundled, bool) {
	f := strings.Fields(line)
	if len(f) < 2 || f[0] != "#" || !pkgref.IsCanonicalName(pkgref.Go, f[1]) {
		return ecosystem.Bundled{}, false
	}
	b := ecosystem.Bundled{Name: f[1]}
	if len(f) > 2 && isRelease(f[1], f[2]) {
		b.Version = f[2]
	}
	return b, true
}
