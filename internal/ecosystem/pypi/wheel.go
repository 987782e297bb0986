package pypi

import (
	"archive/zip"
	"io"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// Limits of a wheel's archive.
const (
	maxWheelEntries = 500_000
	maxMetadata     = 8 << 20
)

// Sidecar extracts METADATA from a wheel. It refuses an archive that two
// unpackers would read in two ways: an entry twice, a path that leaves the
// archive, two dist-info folders.
func (Protocol) Sidecar(file ecosystem.File, content ecosystem.Content) ([]byte, error) {
	if file.Kind != policy.KindWheel {
		return nil, fault.New(fault.ErrNotFound, "a source distribution's metadata is not served")
	}
	z, err := zip.NewReader(content, content.Size())
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the wheel is not an archive that can be read")
	}
	entry, err := findMetadata(file, z)
	if err != nil {
		return nil, err
	}
	r, err := entry.Open()
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the wheel's METADATA can't be read")
	}
	metadata, err := io.ReadAll(io.LimitReader(r, maxMetadata+1))
	closeErr := r.Close()
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.ErrInvalid, err, "the wheel's METADATA can't be read")
	case closeErr != nil:
		return nil, fault.Wrap(fault.ErrInvalid, closeErr, "the wheel's METADATA can't be read")
	case len(metadata) > maxMetadata:
		return nil, fault.Invalid("the wheel's METADATA has more than %d bytes", maxMetadata)
	}
	return metadata, nil
}

func findMetadata(file ecosystem.File, z *zip.Reader) (*zip.File, error) {
	if len(z.File) > maxWheelEntries {
		return nil, fault.Invalid("the wheel has more than %d entries", maxWheelEntries)
	}
	seen := make(map[string]bool, len(z.File))
	var metadata *zip.File
	info := ""
	for _, f := range z.File {
		if !plainPath(f.Name) {
			return nil, fault.Invalid("the wheel has an entry whose path leaves the archive")
		}
		if seen[f.Name] {
			return nil, fault.Invalid("the wheel has an entry twice")
		}
		seen[f.Name] = true
		top, rest, ok := strings.Cut(f.Name, "/")
		if !ok || !strings.HasSuffix(top, ".dist-info") {
			continue
		}
		if info != "" && top != info {
			return nil, fault.Invalid("the wheel has two dist-info folders")
		}
		info = top
		if rest == "METADATA" {
			metadata = f
		}
	}
	if metadata == nil || !infoOf(file, info) {
		return nil, fault.Invalid("the wheel has no METADATA of the release that its name says")
	}
	return metadata, nil
}

// infoOf reports whether a dist-info folder is the file's own release's.
func infoOf(file ecosystem.File, folder string) bool {
	name, version, ok := strings.Cut(strings.TrimSuffix(folder, ".dist-info"), "-")
	if !ok {
		return false
	}
	d, err := parseFilename(file.Name, "")
	if err != nil {
		return false
	}
	ref, err := pkgref.New(pkgref.Python, name, strings.ReplaceAll(version, "_", "-"))
	return err == nil && ref.Name == d.project && pkgref.SameVersion(pkgref.Python, ref.Version, d.version)
}

// plainPath: relative, forward slashes, no "..", no control characters.
func plainPath(p string) bool {
	if p == "" || p[0] == '/' || strings.ContainsAny(p, "\\\x00\r\n") {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return false
		}
	}
	return true
}
