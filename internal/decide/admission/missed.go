package admission

import (
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/claims"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// named are the projects that a run's commands named, with the specifiers, "" for none
// that can be read.
type named map[pkgref.Ref][]string

// takeCommand reads a command.
func (w named) takeCommand(clients claims.Clients, argv []string) {
	for ecosystem, word := range clients.Words(argv) {
		p, specifier, ok := claims.Parse(ecosystem, word)
		if !ok {
			p, ok = claims.ParseName(ecosystem, word)
		}
		if ok {
			w[p] = append(w[p], specifier)
		}
	}
}

// endings are what became of a run's commands.
type endings struct {
	started, well, badly int
	others               bool                      // some are no package client's, or not alone
	running              map[string]map[string]int // by sandbox and id: the number of the install that a command is; 0: it is none, or several
}

// installOf is the number of the install that runs in a sandbox, alone; 0: that is not known.
func (e *endings) installOf(sandbox string) int {
	if len(e.running[sandbox]) == 1 {
		for _, number := range e.running[sandbox] {
			return number
		}
	}
	return 0
}

func (e *endings) beginCommand(clients claims.Clients, r audit.Record) {
	e.started++
	e.others = e.others || !clients.IsClient(r.Command)
	number := 0
	if clients.IsOne(r.Command) {
		number = e.started
	}
	if e.running == nil {
		e.running = map[string]map[string]int{}
	}
	if e.running[r.Sandbox] == nil {
		e.running[r.Sandbox] = map[string]int{}
	}
	e.running[r.Sandbox][r.Detail[records.DetailCommand]] = number
}

func (e *endings) takeRecord(clients claims.Clients, r audit.Record) {
	if r.Kind == audit.KindCommand && r.Outcome == audit.Finished {
		delete(e.running[r.Sandbox], r.Detail[records.DetailCommand])
	}
	switch {
	case r.Kind != audit.KindCommand:
	case r.Outcome == audit.Started:
		e.beginCommand(clients, r)
	case r.Outcome == audit.Finished && r.Exit != nil && *r.Exit == 0:
		e.well++
	case r.Outcome == audit.Finished && r.Exit != nil:
		e.badly++
	}
}

// allWell tells that package clients ended well, and that nothing else ran. Then nobody
// missed what a page lacked.
func (e *endings) allWell() bool { return e.started > 0 && e.well == e.started && !e.others }

// missed tells whether somebody asked for what one range of a withheld record may have,
// and nothing that was had is it: a command, or, of the last range, which is the one
// that the record is about, a requirement.
func (s *summary) missed(r audit.Record, at int) bool {
	p := records.ProjectOf(r)
	if s.missedByCommand(p) {
		return true
	}
	if wants := r.Detail[records.DetailWants]; wants != "" && at == len(r.Withheld)-1 {
		for specifier := range strings.SplitSeq(wants, records.WantsBetween) {
			if !s.isMet(p, specifier) {
				return true
			}
		}
	}
	return false
}

// missedByCommand tells whether a command asked for versions of a project and got none of them.
func (s *summary) missedByCommand(p pkgref.Ref) bool {
	return slices.ContainsFunc(s.asked[p], func(specifier string) bool { return specifier != "" && !s.isMet(p, specifier) })
}

// isMet tells whether a release that was had is one that a specifier asks for.
func (s *summary) isMet(p pkgref.Ref, specifier string) bool {
	return slices.ContainsFunc(s.had.Releases[p], func(had pkgref.Ref) bool { return claims.Meets(specifier, had) })
}

// passedOver tells of a page that lacks pre-releases alone, of a project that no command
// named and no requirement wants in one of them.
func (s *summary) passedOver(r audit.Record) bool {
	if len(s.asked[records.ProjectOf(r)]) > 0 || r.Detail[records.DetailPull] == string(ledger.PullUnmet) {
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
	return r.Detail[records.DetailWhat] == records.WhatIndex && (w.Rule == rulePrereleases || strings.HasSuffix(w.Rule, ".prereleases"))
}
