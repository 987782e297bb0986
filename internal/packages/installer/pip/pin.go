package pip

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Pins implements installer.Pinner.
func (client) Pins(base string) bool { return IsRequirements(base) }

// Pin implements installer.Pinner. Markers of the lines that a pin takes the place of stay.
func (client) Pin(text []byte, release pkgref.Ref, digests []string) ([]byte, error) {
	var hashes []string
	for _, d := range digests {
		if strings.HasPrefix(d, "sha256:") {
			hashes = append(hashes, d)
		}
	}
	if len(hashes) == 0 {
		return nil, fault.Invalid("no sha256 of a file of %s is known, so it can't be locked", release)
	}
	feed := "\n"
	if strings.Contains(string(text), "\r\n") {
		feed = "\r\n"
	}
	lines := slices.Collect(strings.Lines(string(text)))
	for from := 0; from < len(lines); {
		to := from + 1
		for to < len(lines) && strings.HasSuffix(strings.TrimRight(lines[to-1], "\r\n"), `\`) {
			to++
		}
		if old := pinOfLine(lines[from]); old.name == release.Name {
			if pkgref.SameVersion(release.Ecosystem, old.version, release.Version) {
				hashes = append(hashesOf(lines[from:to]), hashes...)
			}
			return []byte(strings.Join(slices.Replace(lines, from, to, old.withVersion(release.Version, hashes, feed)), "")), nil
		}
		from = to
	}
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += feed
	}
	added := pinned{name: release.Name, head: release.Name}
	return []byte(strings.Join(append(lines, added.withVersion(release.Version, hashes, feed)), "")), nil
}

// pinned is the first line of a pin, "name[extras]==version ; marker # comment".
type pinned struct {
	name    string // canonical, "" if the line is no pin
	head    string // the name as it is written, with extras
	version string
	marker  string
	comment string
}

func pinOfLine(line string) pinned {
	spec, _, _ := strings.Cut(line, "--hash")
	spec, comment, _ := strings.Cut(spec, " #")
	spec = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(spec), `\`))
	spec, marker, _ := strings.Cut(spec, ";")
	head, version, ok := strings.Cut(spec, "==")
	if !ok {
		return pinned{}
	}
	head = strings.TrimSpace(head)
	bare, _, _ := strings.Cut(head, "[")
	name, err := pkgref.CanonicalName(pkgref.Python, strings.TrimSpace(bare))
	if err != nil {
		return pinned{}
	}
	return pinned{
		name: name, head: head, version: strings.TrimSpace(strings.TrimPrefix(version, "=")),
		marker: strings.TrimSpace(marker), comment: strings.TrimSpace(comment),
	}
}

// withVersion is the pin of a version; a comment stands above it, where no hash can
// follow it on its line.
func (p pinned) withVersion(version string, hashes []string, feed string) string {
	var b strings.Builder
	if p.comment != "" {
		b.WriteString("# " + p.comment + feed)
	}
	b.WriteString(p.head + "==" + version)
	if p.marker != "" {
		b.WriteString(" ; " + p.marker)
	}
	slices.Sort(hashes)
	for _, h := range slices.Compact(hashes) {
		b.WriteString(` \` + feed + "    --hash=" + h)
	}
	return b.String() + feed
}

// hashesOf are the digests in the lines of a pin.
func hashesOf(lines []string) []string {
	var hashes []string
	for word := range strings.FieldsSeq(strings.ReplaceAll(strings.Join(lines, " "), "--hash=", "--hash ")) {
		if algorithm, sum, ok := strings.Cut(word, ":"); ok && slices.Contains([]string{"sha256", "sha384", "sha512"}, algorithm) && sum != "" {
			hashes = append(hashes, word)
		}
	}
	return hashes
}
