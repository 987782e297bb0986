package admission

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// wishes are the projects that a run's commands named, with the specifiers, "" for none
// that can be read.
type wishes map[pkgref.Ref][]string

// take reads a command.
func (w wishes) take(argv []string) {
	for words := range simpleCommands(argv) {
		ecosystem, rest := installArguments(words)
		for _, word := range rest {
			p, specifier, ok := parseClaim(ecosystem, word)
			if !ok {
				p, ok = parseName(ecosystem, word)
			}
			if ok {
				w[p] = append(w[p], specifier)
			}
		}
	}
}

// parseName reads the name of what a command asks for in words that are no specifier:
// alone, with extras, with a tag.
func parseName(ecosystem pkgref.Ecosystem, word string) (pkgref.Ref, bool) {
	if ecosystem == "" || len(word) > 512 || word == "" || word[0] == '-' {
		return pkgref.Ref{}, false
	}
	end := strings.IndexAny(word[1:], "@[=<>!~; ")
	if end >= 0 {
		word = word[:end+1]
	}
	p, err := pkgref.New(ecosystem, word, "")
	return p, err == nil
}

// missed tells whether somebody asked for what one range of a withheld record may have,
// and nothing that was had is it: a command, or, of the last range, which is the one
// that the record is about, a requirement.
func (s *summary) missed(r audit.Record, at int) bool {
	p := records.ProjectOf(r)
	for _, specifier := range s.asked[p] {
		if specifier != "" && !s.met(p, specifier) {
			return true
		}
	}
	if wants := r.Detail[records.DetailWants]; wants != "" && at == len(r.Withheld)-1 {
		for specifier := range strings.SplitSeq(wants, records.WantsBetween) {
			if !s.met(p, specifier) {
				return true
			}
		}
	}
	return false
}

// met tells whether a release that was had is one that a specifier asks for.
func (s *summary) met(p pkgref.Ref, specifier string) bool {
	return slices.ContainsFunc(s.had.Releases[p], func(had pkgref.Ref) bool { return claimMeets(specifier, had) })
}

// passedOver tells of a page that lacks pre-releases alone, of a project that no command
// named and no requirement wants in one of them.
func (s *summary) passedOver(r audit.Record) bool {
	if len(s.asked[records.ProjectOf(r)]) > 0 {
		return false
	}
	for i, w := range r.Withheld {
		if !onlyPreReleases(r, w) || s.missed(r, i) {
			return false
		}
	}
	return r.Detail[records.DetailWhat] == records.WhatIndex
}

// onlyPreReleases tells whether a range leaves out pre-releases alone, for being such, of
// a project that has others.
func onlyPreReleases(r audit.Record, w audit.WithheldRange) bool {
	return r.Detail[records.DetailWhat] == records.WhatIndex && (w.Rule == "packages.prereleases" || strings.HasSuffix(w.Rule, ".prereleases"))
}
