package lockfile

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// emptyGoMod is the hash of a go.mod file without content, which an old version of go wrote
// by mistake and all later ones pass over.
const emptyGoMod = "h1:G7mAYYxgmS0lVkHyy2hEOLQCFB0DlQFTMLWggykrydY="

// readGoSum reads go.sum. A line "module version h1:..." is a release's zip, one
// with "version/go.mod" its go.mod file. A release with only the latter is a
// pin without digests: its metadata are in, and no file is.
func readGoSum(b *builder, data []byte) error {
	if err := b.checkLines(data, maxLine); err != nil {
		return err
	}
	s := sums{b: b, releases: map[pkgref.Ref]*policy.Pin{}, refused: map[pkgref.Ref]bool{}}
	line := 0
	for raw := range strings.Lines(string(data)) {
		line++
		fields := strings.Fields(raw)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 {
			return b.wrongLine(line, "a line must be module, version and hash")
		}
		if fields[2] == emptyGoMod {
			b.skipEntry(line, fields[0]+" "+fields[1], "has the hash of an empty file, which go ignores")
			continue
		}
		if err := s.readLine(line, fields[0], fields[1], fields[2]); err != nil {
			return err
		}
	}
	for _, ref := range s.order {
		if s.refused[ref] {
			continue
		}
		if err := b.addPin(ref, *s.releases[ref]); err != nil {
			return err
		}
	}
	return nil
}

// sums are the releases of a go.sum, and those of them that it pins nothing of.
type sums struct {
	b        *builder
	releases map[pkgref.Ref]*policy.Pin
	order    []pkgref.Ref
	refused  map[pkgref.Ref]bool
}

func (s *sums) readLine(line int, module, version, hash string) error {
	version, metadata := strings.CutSuffix(version, "/go.mod")
	ref, is, err := s.b.refOf(line, module, version)
	if err != nil || !is {
		return err
	}
	pin := s.releases[ref]
	if pin == nil {
		pin = &policy.Pin{Version: ref.Version, Lockfile: s.b.name, Line: line}
		s.releases[ref], s.order = pin, append(s.order, ref)
	}
	lacks := ""
	switch {
	case !isGoSum(hash):
		lacks = hasOddHash
	case !addGoSum(pin, metadata, hash):
		lacks = hasTwoHashes
	default:
		return nil
	}
	s.refused[ref] = true
	return s.b.unpinnable(line, ref.Name, ref.Version, lacks)
}

// addGoSum adds a hash to a pin, and is false if that has another one.
func addGoSum(pin *policy.Pin, metadata bool, hash string) bool {
	digests := &pin.Digests
	if metadata {
		digests = &pin.Metadata
	}
	if len(*digests) == 0 {
		*digests = []string{hash}
	}
	return slices.Contains(*digests, hash)
}

// isGoSum tells whether a hash is of the one kind that go knows.
func isGoSum(sum string) bool {
	encoded, ok := strings.CutPrefix(sum, "h1:")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	return ok && err == nil && len(raw) == 32 && base64.StdEncoding.EncodeToString(raw) == encoded
}
