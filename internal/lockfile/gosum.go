package lockfile

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// emptyGoMod is the hash of a go.mod file without content, which an old version of go wrote
// by mistake and all later ones pass over.
const emptyGoMod = "h1:G7mAYYxgmS0lVkHyy2hEOLQCFB0DlQFTMLWggykrydY="

// readGoSum reads go.sum. A line "module version h1:..." is a release's zip, one
// with "version/go.mod" its go.mod file. A release with only the latter is a
// pin without digests: its metadata are in, and no file is.
func readGoSum(b *builder, data []byte) error {
	if err := b.lines(data, maxLine); err != nil {
		return err
	}
	releases := map[pkgref.Ref]*policy.Pin{}
	var order []pkgref.Ref
	line := 0
	for raw := range strings.Lines(string(data)) {
		line++
		fields := strings.Fields(raw)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 {
			return b.wrong(line, "a line must be module, version and hash")
		}
		if fields[2] == emptyGoMod {
			b.skip(line, fields[0]+" "+fields[1], "has the hash of an empty file, which go ignores")
			continue
		}
		version, metadata := strings.CutSuffix(fields[1], "/go.mod")
		ref, err := b.ref(line, fields[0], version)
		if err != nil {
			return err
		}
		if err := b.goSum(line, fields[2]); err != nil {
			return err
		}
		pin := releases[ref]
		if pin == nil {
			pin = &policy.Pin{Version: ref.Version, Lockfile: b.name, Line: line}
			releases[ref], order = pin, append(order, ref)
		}
		if !addGoSum(pin, metadata, fields[2]) {
			return b.wrong(line, "%s %s has two different hashes", ref.Name, fields[1])
		}
	}
	for _, ref := range order {
		if err := b.add(ref, *releases[ref]); err != nil {
			return err
		}
	}
	return nil
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

func (b *builder) goSum(line int, sum string) error {
	encoded, ok := strings.CutPrefix(sum, "h1:")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(raw) != 32 || base64.StdEncoding.EncodeToString(raw) != encoded {
		return b.wrong(line, "%q is not a hash of go.sum", excerpt.Of(sum, maxQuoted))
	}
	return nil
}
