package lockfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// MaxBytes bounds a lockfile; the largest real ones have some megabytes.
const MaxBytes = 16 << 20

// maxPins bounds the releases in one lockfile.
const maxPins = 100_000

// formatReader reads one format.
type formatReader func(b *builder, data []byte) error

// formats is the list of the formats that are read, by the names in pkgref by which they
// are told, as their tools do. A new one is its file and one line here.
func formats() map[string]formatReader {
	return map[string]formatReader{
		"*.txt":               readRequirements,
		"uv.lock":             readUV,
		"pylock.toml":         readPylock,
		"pylock.*.toml":       readPylock,
		"package-lock.json":   readPackageLock,
		"npm-shrinkwrap.json": readPackageLock,
		"pnpm-lock.yaml":      readPnpm,
		"go.sum":              readGoSum,
		"go.work.sum":         readGoSum,
	}
}

// formatOf is nil for what no lockfile is called.
func formatOf(base string) (formatReader, pkgref.Ecosystem) {
	for _, ecosystem := range pkgref.Ecosystems() {
		for _, l := range ecosystem.Lockfiles() {
			if l.Is(base) {
				return formats()[l.Name], ecosystem
			}
		}
	}
	return nil, ""
}

// originsOf are the formats that say it, also those that hold no run to anything.
func originsOf(base string) (read originReader, parse func(b *builder, data []byte) (*value, error)) {
	switch base {
	case "package-lock.json", "npm-shrinkwrap.json":
		return (*origins).readNPM, (*builder).readJSON
	case "Pipfile.lock":
		return (*origins).pipfile, (*builder).readJSON
	case "uv.lock":
		return (*origins).readUV, (*builder).readTOML
	case "poetry.lock":
		return (*origins).poetry, (*builder).readTOML
	case "pdm.lock":
		return (*origins).readPDM, (*builder).readTOML
	case "pylock.toml":
		return (*origins).pylock, (*builder).readTOML
	case "pnpm-lock.yaml":
		return (*origins).readPNPM, func(b *builder, data []byte) (*value, error) {
			documents, err := b.readYAML(data, 2)
			if err != nil {
				return nil, err
			}
			return documents[len(documents)-1], nil
		}
	}
	return nil, nil
}

// Parse reads a lockfile. Its format is told by the last part of its name. The
// error is ErrInvalid and reads "name:line: sentence".
func Parse(name string, data []byte) (*Lockfile, error) {
	return parseLockfile(name, data, &builder{})
}

// ParseResolved reads what a resolver left in a lockfile's format. An entry that it could not pin
// is named: a file that is made only when somebody wants it has no digest before. Other entries
// that pin nothing are errors, since a resolver was asked for releases alone.
func ParseResolved(name string, data []byte) (lock *Lockfile, unpinned []pkgref.Ref, err error) {
	b := &builder{resolved: true}
	lock, err = parseLockfile(name, data, b)
	return lock, b.unpinned, err
}

func parseLockfile(name string, data []byte, b *builder) (*Lockfile, error) {
	read, ecosystem := formatOf(path.Base(name))
	switch {
	case read == nil:
		return nil, fault.Invalid("%s is not a known lockfile; known lockfiles: %s", name, pkgref.KnownLockfiles())
	case len(data) > MaxBytes:
		return nil, fault.Invalid("%s has %d bytes; a lockfile may have %d", name, len(data), MaxBytes)
	}
	b.name, b.ecosystem, b.pins, b.requires, b.unpinnables = name, ecosystem, map[string][]policy.Pin{}, map[pkgref.Ref][]Requirement{}, map[string][]policy.Unpinned{}
	bare := bytes.TrimPrefix(data, []byte("\ufeff")) // some editors begin a file with a mark, which their tools ignore
	if err := b.checkText(bare); err != nil {
		return nil, err
	}
	if err := read(b, bare); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return &Lockfile{
		Name: name, Digest: "sha256:" + hex.EncodeToString(sum[:]), Ecosystem: ecosystem,
		Pins: b.pins, Requires: b.requires, Scripts: b.scripts, Unpinned: b.unpinnables, Skipped: b.skipped,
	}, nil
}

// builder collects the pins of one lockfile.
type builder struct {
	name      string
	ecosystem pkgref.Ecosystem
	pins      map[string][]policy.Pin
	requires  map[pkgref.Ref][]Requirement
	count     int // of pins, and of entries that pin nothing
	values    int // of a document

	unpinnables map[string][]policy.Unpinned
	skipped     []Skipped
	scripts     map[string]int

	resolved bool         // unpinned releases are no error
	unpinned []pkgref.Ref // those
}

// wrongLine is an error in a line.
func (b *builder) wrongLine(line int, format string, args ...any) error {
	return fault.Invalid("%s:%d: %s", b.name, line, fmt.Sprintf(format, args...))
}

// checkText refuses bytes that are no text, and what an editor would not show.
func (b *builder) checkText(data []byte) error {
	line, rest := 1, data
	for len(rest) > 0 {
		r, n := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			return b.wrongLine(line, "the file is not UTF-8 text")
		case r == '\ufeff':
			return b.wrongLine(line, "the file has a byte order mark in it; take it out")
		case r == '\n':
			line++
		case (r < ' ' && r != '\t' && r != '\r') || r == 0x7f:
			return b.wrongLine(line, "the file has a control character")
		}
		rest = rest[n:]
	}
	return nil
}

// maxLine bounds a line of a format that is read line by line.
const maxLine = 64 << 10

// checkLines refuses lines of more than most bytes.
func (b *builder) checkLines(data []byte, most int) error {
	line := 0
	for text := range bytes.Lines(data) {
		if line++; len(text) > most {
			return b.wrongLine(line, "the line has more than %d bytes", most)
		}
	}
	return nil
}

// refOf makes the canonical name and version of a pin. is false for an entry that pins nothing: then its name is refused, or it is one
// that no registry has, and that nobody can ask one for. A resolver's answer must not have such an entry.
func (b *builder) refOf(line int, name, version string) (ref pkgref.Ref, is bool, err error) {
	ref, err = pkgref.New(b.ecosystem, name, version)
	if err == nil && ref.Version != "" {
		return ref, true, nil
	}
	if b.resolved {
		return ref, false, b.wrongLine(line, "%q %q is not the name and version of a package", text.Shorten(name, maxQuoted), text.Shorten(version, maxQuoted))
	}
	if _, err := pkgref.CanonicalName(b.ecosystem, name); err != nil {
		b.skipEntry(line, fmt.Sprintf("%q", text.Shorten(name, maxQuoted)), "is no name that a registry has")
		return ref, false, nil //nolint:nilerr // nobody can ask a registry for it
	}
	return ref, false, b.unpinnable(line, name, "", hasNoVersion)
}

// noteScripts notes a release whose entry says that it runs something when it is installed, as npm or as pnpm writes it.
func (b *builder) noteScripts(ref pkgref.Ref, entry *value) {
	if _, noted := b.scripts[ref.Name]; noted || !entry.isTrue("hasInstallScript") && !entry.isTrue("requiresBuild") {
		return
	}
	if b.scripts == nil {
		b.scripts = map[string]int{}
	}
	b.scripts[ref.Name] = entry.line
}

// pinRelease adds a release. One without a digest would let any file of the release in,
// or none: its name is refused.
func (b *builder) pinRelease(line int, ref pkgref.Ref, digests []string) error {
	if len(digests) == 0 && b.resolved && len(b.unpinned) < maxPins {
		b.unpinned = append(b.unpinned, ref)
		return nil
	}
	if len(digests) == 0 {
		return b.unpinnable(line, ref.Name, ref.Version, hasNoHash)
	}
	return b.addPin(ref, policy.Pin{Version: ref.Version, Digests: digests, Lockfile: b.name, Line: line})
}

func (b *builder) addPin(ref pkgref.Ref, pin policy.Pin) error {
	if b.count++; b.count > maxPins {
		return b.wrongLine(pin.Line, "the file has more than %d entries", maxPins)
	}
	b.pins[ref.Name] = append(b.pins[ref.Name], pin)
	return nil
}

// maxQuoted bounds others' text in a sentence.
const maxQuoted = 100
