package admission

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// weight is how sure it is that what a page withheld is why an install failed. The summary of
// a run, `cofferdam why` and `policy suggest` all go by it.
type weight int

const (
	passedOver weight = iota // whatever is known to want the project could have another release of it, or do without
	possible                 // nothing says which versions were wanted, or only what no client would choose
	certain                  // all that somebody wanted is withheld
)

func weigh(r audit.Record, missedByCommand bool) weight {
	pull := ledger.Pull(r.Detail[records.DetailPull])
	inPart := r.Detail[records.DetailWhat] == records.WhatIndex
	switch {
	case r.Detail[records.DetailAlarm] != "", missedByCommand, pull == ledger.PullUnmet:
		return certain
	case pull == ledger.PullUnknown && !inPart:
		return certain
	case pull == ledger.PullOptional:
		return passedOver
	case pull == ledger.PullMet && inPart && !strings.HasPrefix(r.Rule, "allowed_packages."):
		return passedOver // of a name with an entry, a project may want versions itself
	}
	return possible
}

// toldID names a refusal as its clients were told of it.
type toldID struct{ sandbox, request string }

// episode is what one command had to do with one ecosystem.
type episode struct {
	ecosystem string
	command   int // how many had been started
}

// causes are those of a run's refusals that were found to be why something failed.
type causes struct {
	during map[uint64]int // by the number of a record: how many commands had been started
	sure   map[episode]bool
	are    map[toldID]bool
}

func newCauses() causes {
	return causes{during: map[uint64]int{}, sure: map[episode]bool{}, are: map[toldID]bool{}}
}

// take notes when a record of a refusal came.
func (c *causes) take(r audit.Record, started int) { c.during[r.Seq] = started }

// found takes a refusal for a cause.
func (c *causes) found(r audit.Record) {
	c.sure[c.episodeOf(r)] = true
	c.are[toldID{r.Sandbox, r.RequestID}] = true
}

func (c *causes) episodeOf(r audit.Record) episode {
	return episode{r.Ecosystem, c.during[r.Seq]}
}

// refuseWithheld counts among the refused what was withheld of a project of which nothing was had
// or taken, whose page was not shown whole later, and of which no file was refused by itself; not
// where it lacks pre-releases alone, which nobody asked for, or where clients that only read a page
// ended well. Of what one command was told in one ecosystem, only what weighs most counts; what was
// passed over counts where a command failed and nothing else would say why.
func (s *summary) refuseWithheld() {
	var found [certain + 1][]audit.Record
	for _, r := range s.withheld {
		if s.mayBeCause(r) {
			w := weigh(r, s.missedByCommand(records.ProjectOf(r)))
			found[w] = append(found[w], r)
		}
	}
	for w := certain; w >= passedOver; w-- {
		var these []audit.Record
		for _, r := range found[w] {
			if w == certain || !s.causes.sure[s.causes.episodeOf(r)] && (w == possible || s.endings.badly > 0) {
				these = append(these, r)
			}
		}
		for _, r := range these {
			s.refuseRecord(r)
		}
	}
}

func (s *summary) refuseRecord(r audit.Record) {
	s.causes.found(r)
	line := packageLine(r)
	if r.Detail[records.DetailWhat] == records.WhatIndex && len(r.Withheld) > 0 {
		line.Version = r.Withheld[len(r.Withheld)-1].To
	}
	s.refused.add(line, 1)
}

// mayBeCause tells whether nothing that is known of a withheld page says that nobody missed it.
func (s *summary) mayBeCause(r audit.Record) bool {
	p := records.ProjectOf(r)
	inPart := r.Detail[records.DetailWhat] == records.WhatIndex
	had := s.got(p, r.Seq) || inPart && s.endings.allWell()
	return !s.blocked[p] && r.Detail[records.DetailEvent] != records.EventRepeats && !s.passedOver(r) && (r.Detail[records.DetailAlarm] != "" || !had)
}

// got tells whether a project of which something was withheld was had all the same.
func (s *summary) got(p pkgref.Ref, withheld uint64) bool {
	return s.had.Of(p) || s.parents[p] || s.pages[p] > withheld
}
