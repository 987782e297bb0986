// Package planning weighs installs without making them: what a plan's run was shown, what
// of that its resolver chose, and, for an install that waits, which tree it brings. A plan
// admits nothing.
package planning

import (
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// maxFiles bounds the files that a plan remembers. Of pages past it nothing
// is known, and the plan says so.
const maxFiles = 400_000

// Shown is what a plan's run was shown, so that it can be weighed: also what would wait
// for a person, and what is denied only because no list names it. It is forgotten with
// the sandbox. A nil Shown is that of any other run. Safe for concurrent use.
type Shown struct {
	mu    sync.Mutex // guards all below
	pages map[pkgref.Ref]shownPage
	files int // in pages
	read  map[pkgref.Ref]map[string]readFile
	full  bool // a page or a file was shown of which nothing is known for want of room
}

// shownPage is a project's page as it was judged last.
type shownPage struct {
	source string
	from   ledger.Origin
	files  []door.File
}

// readFile is a file that the resolver asked for, with all that its bytes told.
type readFile struct {
	file     door.File
	source   string
	from     ledger.Origin
	digests  []string
	findings []string
	evidence *evidence.Evidence
	paths    []string // inside of it
	given    bool     // the resolver was given the bytes
}

// NewShown is of a run that was shown nothing.
func NewShown() *Shown {
	return &Shown{pages: map[pkgref.Ref]shownPage{}, read: map[pkgref.Ref]map[string]readFile{}}
}

// Page remembers a page that was judged. reserve takes bytes of the run's memory.
func (s *Shown) Page(ask door.IndexAsk, reserve func(bytes int64) bool) {
	if s == nil || ask.Files == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.pages[ask.Package].files
	if s.files-len(before)+len(ask.Files) > maxFiles || !reserve(filesBytes(ask.Files)-filesBytes(before)) {
		s.full = true
		return
	}
	s.files += len(ask.Files) - len(before)
	s.pages[ask.Package] = shownPage{
		source: redact.Cut(ask.SourceURL, 2_048), from: ledger.Origin{Upstream: ask.Upstream, Toolchain: ask.Toolchain}, files: slices.Clone(ask.Files),
	}
}

// lacking says why nothing is known of a release.
func (s *Shown) lacking() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return "the resolver names it, and this run was shown more than a plan remembers, so that nothing is known of it"
	}
	return "the resolver names it, and the gateway never showed it in this run"
}

// filesBytes is about what files take in memory.
func filesBytes(files []door.File) (bytes int64) {
	for _, f := range files {
		bytes += int64(180 + len(f.Name) + len(f.Version) + len(f.Digest))
	}
	return bytes
}

// Reading is what is known of a file that the resolver may read.
type Reading struct {
	Digests  []string
	Paths    []string // of the files inside
	Evidence *evidence.Evidence
	Size     int64 // of its bytes; 0: they may not be here yet
	Given    bool  // it gets the bytes
}

// File remembers a file that the resolver may read.
func (s *Shown) File(ask door.FileAsk, r Reading) {
	if s == nil || ask.File.Kind == policy.KindMetadata {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.read[ask.Package]
	if of == nil {
		if len(s.read) >= maxFiles {
			s.full = true
			return
		}
		of = map[string]readFile{}
		s.read[ask.Package] = of
	}
	f := readFile{
		file: ask.File, source: redact.Cut(ask.SourceURL, 2_048), from: ledger.Origin{Upstream: ask.Upstream, Toolchain: ask.Toolchain},
		digests: r.Digests, findings: slices.Clone(ask.Findings), evidence: r.Evidence, paths: r.Paths, given: r.Given,
	}
	if before, known := of[ask.File.Name]; known {
		f.file.Scripts = f.file.Scripts || before.file.Scripts
		for _, d := range before.digests {
			if !slices.Contains(f.digests, d) {
				f.digests = append(f.digests, d)
			}
		}
		if f.evidence == nil {
			f.evidence, f.paths = before.evidence, before.paths
		}
		f.file.Size, f.given = max(f.file.Size, before.file.Size), f.given || before.given
	}
	if r.Size > 0 {
		f.file.Size = r.Size
	}
	of[ask.File.Name] = f
}
