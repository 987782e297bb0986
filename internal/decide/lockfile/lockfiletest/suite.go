// Package lockfiletest is the suite that the reader of every lockfile format passes.
package lockfiletest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Format is a format by an example of it.
type Format struct {
	// Sample is a whole lockfile that pins one release of Package. The text {version}
	// stands where the release's version is, as often as the format has it, and {hashes}
	// where the file's digests are, with what surrounds them in this format.
	Sample           string
	Package, Version string
	// Hashes is what stands at {hashes} for a strong digest, and Pinned the digest that
	// is pinned then; OtherHashes and OtherPinned are of another file.
	Hashes, Pinned           string
	OtherHashes, OtherPinned string
	// Weak is what stands there for a digest that somebody can forge, and None if there
	// is no digest. A Weak of "" says that the format has no such digests.
	Weak, None string
}

// Read is what is tested; it is lockfile.Parse.
type Read func(name string, data []byte) (*lockfile.Lockfile, error)

// Conforms runs the suite for a file with this name.
func Conforms(t *testing.T, read Read, name string, ecosystem pkgref.Ecosystem, f Format) {
	t.Helper()
	for _, fault := range Faults(read, name, ecosystem, f) {
		t.Errorf("%s: %s", name, fault)
	}
}

// Faults are what is wrong with a reader, a sentence each.
func Faults(read Read, name string, ecosystem pkgref.Ecosystem, f Format) (faults []string) {
	s := &suite{read: read, name: "folder/" + name, ecosystem: ecosystem, format: f}
	s.wantPin(f.Version, f.Hashes, f.Pinned)
	s.wantPin(f.Version, f.OtherHashes, f.OtherPinned)
	s.unpinned("a release without a digest", s.sample(f.Version, f.None))
	if f.Weak != "" {
		s.unpinned("a digest that can be forged", s.sample(f.Version, f.Weak))
	}
	whole := s.sample(f.Version, f.Hashes)
	s.unpinned("a digest that is cut off", whole[:strings.Index(whole, f.Hashes)+len(f.Hashes)/2])
	s.unpinned("a release without a version", s.sample("", f.Hashes))
	s.unpinned("a version that is none", s.sample("../1.0", f.Hashes))
	s.refuses("bytes that are no text", whole+"\xff")
	s.refuses("a control character", whole+"\x00")
	s.refuses("a byte order mark within", whole+"\ufeff")
	for _, mark := range []string{"", "\ufeff"} { // as editors of some systems begin and end what they write
		for _, end := range []string{"\n", "\r\n"} {
			s.mark, s.end = mark, end
			s.wantPin(f.Version, f.Hashes, f.Pinned)
		}
	}
	return s.faults
}

type suite struct {
	read      Read
	name      string
	ecosystem pkgref.Ecosystem
	format    Format
	mark      string // before the text
	end       string // of its lines; "": as the sample has them
	faults    []string
}

func (s *suite) wantRefusal(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *suite) sample(version, hashes string) string {
	text := strings.NewReplacer("{version}", version, "{hashes}", hashes).Replace(s.format.Sample)
	if s.end != "" {
		text = strings.ReplaceAll(text, "\n", s.end)
	}
	return s.mark + text
}

// wantPin: the release is pinned to the digest, once, with the line where that is said, and
// nothing else is pinned.
func (s *suite) wantPin(version, hashes, digest string) {
	text := s.sample(version, hashes)
	got, err := s.read(s.name, []byte(text))
	if err != nil {
		s.wantRefusal("a whole lockfile, begun with %q, its lines ended by %q, is refused: %v", s.mark, s.end, err)
		return
	}
	if got.Ecosystem != s.ecosystem {
		s.wantRefusal("it is read as one of %s; it is of %s", got.Ecosystem, s.ecosystem)
	}
	pins := got.Pins[s.format.Package]
	if len(got.Pins) != 1 || len(pins) != 1 {
		s.wantRefusal("it pins %v; want one release of %s", got.Pins, s.format.Package)
		return
	}
	if p := pins[0]; p.Version != version || !slices.Equal(p.Digests, []string{digest}) {
		s.wantRefusal("it pins %s to %q; want %s to %q", p.Version, p.Digests, version, digest)
	}
	if p := pins[0]; p.Lockfile != s.name || p.Line < 1 || p.Line > strings.Count(text, "\n")+1 {
		s.wantRefusal("the pin is said to be at %s:%d", p.Lockfile, p.Line)
	}
}

// unpinned: nothing is pinned. Either the package's name is noted as one that can be held to no file, or it is an error.
func (s *suite) unpinned(what, text string) {
	got, err := s.read(s.name, []byte(text))
	if err != nil {
		s.refuses(what, text)
		return
	}
	noted := got.Unpinned[s.format.Package]
	if len(got.Pins) > 0 || len(noted) != 1 || noted[0].Lockfile != s.name || noted[0].Line < 1 || noted[0].Reason == "" {
		s.wantRefusal("%s pins %v, and %+v is noted; want no pin and a reason", what, got.Pins, got.Unpinned)
	}
}

// refuses: it is an error that names the file and the line, and no lockfile.
func (s *suite) refuses(what, text string) {
	got, err := s.read(s.name, []byte(text))
	switch {
	case err == nil:
		s.wantRefusal("%s is no error; it pins %v", what, got.Pins)
	case got != nil:
		s.wantRefusal("%s is an error and a lockfile", what)
	case !errors.Is(err, fault.ErrInvalid) || !regexp.MustCompile(`^`+regexp.QuoteMeta(s.name)+`:\d+: `).MatchString(err.Error()):
		s.wantRefusal("%s is refused with %q; want %s, a line and a sentence", what, err, s.name)
	}
}
