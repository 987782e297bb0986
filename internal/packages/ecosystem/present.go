package ecosystem

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// Presenter is the optional ability of a protocol to tell a person what a
// release's publisher says of it. None of it is verified beyond its bytes, and
// nothing is decided by it.
type Presenter interface {
	// Present reads it from the index's row of a file and from the file's
	// sidecar; either may be nil. Files that can't be read are left out.
	Present(file File, row, sidecar []byte) Publication
}

// Publication is what a publisher says: data for people, clipped by Clipped,
// never to be interpreted.
type Publication struct {
	Summary    string
	Maintainer string
	Homepage   string
	License    string
	Requires   []string // "name specifier"
	Scripts    []string // what runs when it is installed: "postinstall: node x.js"
}

// The most that is told, in bytes and in lines.
const (
	maxPresented      = 300
	maxPresentedLines = 100
)

// Clipped gives the publication in a size that fits a record: valid UTF-8, one
// line each, at most 300 bytes a line and 100 lines a list.
func (p Publication) Clipped() Publication {
	p.Summary, p.Maintainer = presented(p.Summary), presented(p.Maintainer)
	p.Homepage, p.License = presented(p.Homepage), presented(p.License)
	p.Requires, p.Scripts = presentedLines(p.Requires), presentedLines(p.Scripts)
	return p
}

func presentedLines(lines []string) []string {
	var out []string
	for _, l := range lines[:min(len(lines), maxPresentedLines)] {
		out = append(out, presented(l))
	}
	return out
}

func presented(s string) string {
	if len(s) > 4*maxPresented {
		s = s[:4*maxPresented]
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	return redact.Cut(s, maxPresented)
}
