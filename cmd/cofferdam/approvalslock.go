package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/approval"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

func readLockfile(path string) (fileEdit, error) {
	actual, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return fileEdit{}, fault.Invalid("the folder of the lockfile %s %s", path, because(err))
		}
		return fileEdit{path: path, isNew: true}, nil
	}
	if err != nil {
		return fileEdit{}, fault.Invalid("the lockfile %s %s", path, because(err))
	}
	text, err := readDocument("lockfile", actual, lockfile.MaxBytes)
	if err != nil {
		return fileEdit{}, err
	}
	if _, err := lockfile.Parse(path, text); err != nil {
		return fileEdit{}, err // it is none, or a hash is missing: that is the person's to mend
	}
	return fileEdit{path: actual, before: text}, nil
}

// lockRelease puts one release into the text: in the place of the lines that pin
// its name already, or at the end. Markers of those lines stay.
func lockRelease(text []byte, r approval.Request) ([]byte, error) {
	if r.Package.Ecosystem != pkgref.Python {
		return nil, fault.Invalid("%s is no Python package: only requirements.txt is written here; other lockfiles are written by their own tools, see cofferdam plan --lock", releaseText(r))
	}
	var hashes []string
	for _, d := range approval.Digests(r.Files) {
		if strings.HasPrefix(d, "sha256:") {
			hashes = append(hashes, d)
		}
	}
	if len(hashes) == 0 {
		return nil, fault.Invalid("no sha256 of a file of %s is known, so it can't be locked", releaseText(r))
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
		if old := pinOf(lines[from]); old.name == r.Package.Name {
			if pkgref.SameVersion(pkgref.Python, old.version, r.Package.Version) {
				hashes = append(hashesOf(lines[from:to]), hashes...)
			}
			return []byte(strings.Join(slices.Replace(lines, from, to, old.with(r.Package.Version, hashes, feed)), "")), nil
		}
		from = to
	}
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += feed
	}
	added := pinned{name: r.Package.Name, head: r.Package.Name}
	return []byte(strings.Join(append(lines, added.with(r.Package.Version, hashes, feed)), "")), nil
}

// pinned is the first line of a pin, "name[extras]==version ; marker # comment".
type pinned struct {
	name    string // canonical, "" if the line is no pin
	head    string // the name as it is written, with extras
	version string
	marker  string
	comment string
}

func pinOf(line string) pinned {
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

// with is the pin of a version; a comment stands above it, where no hash can
// follow it on its line.
func (p pinned) with(version string, hashes []string, feed string) string {
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
