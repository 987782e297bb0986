package admission

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// weight is how sure it is that what a page withheld is why an install failed. The summary of
// a run, `cofferdam why` and `policy suggest` all go by it.
type weight int

const (
	passedOver weight = iota // whatever is known to want the project could have another release of it, or do without
	possible                 // nothing says which versions were wanted, or only what no client would choose
	certain                  // all that somebody wanted is withheld
)

func weighCause(r audit.Record, missedByCommand bool) weight {
	pull := ledger.Pull(r.Detail[records.DetailPull])
	inPart := r.Detail[records.DetailWhat] == records.WhatIndex
	switch {
	case r.Detail[records.DetailAlarm] != "", missedByCommand, pull == ledger.PullUnmet:
		return certain
	case pull == "":
		return certain // of an earlier version, which told each of them
	case pull == ledger.PullUnknown && !inPart:
		return certain
	case pull == ledger.PullOptional:
		return passedOver
	case inPartMet(r):
		return passedOver
	}
	return possible
}

// inPartMet tells of a page that withholds some releases that what requires the project can have another. Of a
// name with an entry, a project may want versions itself.
func inPartMet(r audit.Record) bool {
	return r.Detail[records.DetailPull] == string(ledger.PullMet) && r.Detail[records.DetailWhat] == records.WhatIndex && !strings.HasPrefix(r.Rule, "allowed_packages.")
}

// toldID names a refusal as its clients were told of it.
type toldID struct{ sandbox, request string }

// toldProject is a project of which a sandbox's clients were told that something is refused.
type toldProject struct {
	sandbox string
	project pkgref.Ref
}

// episode is one install with one ecosystem's client.
type episode struct {
	ecosystem string
	install   int // by number; 0: it is not known which, or whether it is one
}

// causes are those of a run's refusals that were found to be why something failed.
type causes struct {
	during   map[uint64]int // by the number of a record: the install
	sure     map[episode]bool
	any      map[string]bool // by ecosystem
	are      map[toldID]bool
	projects map[toldProject]bool
	named    map[int]bool // by install: a name was refused meanwhile
}

func newCauses() causes {
	return causes{during: map[uint64]int{}, sure: map[episode]bool{}, any: map[string]bool{}, are: map[toldID]bool{}, projects: map[toldProject]bool{}, named: map[int]bool{}}
}

// takeRecord notes when a record of a refusal came.
func (c *causes) takeRecord(r audit.Record, install int) { c.during[r.Seq] = install }

// noteCause takes a refusal for a cause.
func (c *causes) noteCause(r audit.Record) {
	c.sure[c.episodeOf(r)], c.any[r.Ecosystem] = true, true
	c.are[toldID{r.Sandbox, r.RequestID}] = true
	c.projects[toldProject{r.Sandbox, records.ProjectOf(r)}] = true
}

// explains tells whether nothing else than a refusal need be why this one's install failed.
func (c *causes) explains(r audit.Record, w weight) bool {
	switch w {
	case possible:
		e := c.episodeOf(r)
		return e.install > 0 && c.sure[e]
	case passedOver:
		return c.any[r.Ecosystem]
	case certain:
	}
	return false
}

// soughtName tells whether a client may have failed for a name that it looked for in vain, during
// the install of a refusal. The searches of another install explain nothing of this one.
func (c *causes) soughtName(r audit.Record) bool {
	install := c.during[r.Seq]
	return c.named[install] || c.named[0] || install == 0 && len(c.named) > 0
}

// isCause tells whether a refusal is to be told as a cause. Of a page the last refusal is told, which may be another than
// the one that was found, and of what is no package, or was let through, each.
func (c *causes) isCause(r door.Refusal) bool {
	return r.Alarm || r.Package.Name == "" || r.Outcome == string(audit.WouldDeny) || r.Outcome == string(audit.WouldHold) ||
		c.are[toldID{r.Sandbox, r.RequestID}] ||
		r.Outcome == string(audit.Withheld) && c.projects[toldProject{r.Sandbox, r.Package.Project()}]
}

func (c *causes) episodeOf(r audit.Record) episode {
	return episode{r.Ecosystem, c.during[r.Seq]}
}

// refuseWithheld counts among the refused what was withheld of a project of which nothing was had
// or taken, whose page was not shown whole later, and of which no file was refused by itself; not
// where it lacks pre-releases alone, which nobody asked for, or where clients that only read a page
// ended well. Of what one install was told only what weighs most counts, and what was passed over
// only where a command failed and nothing else would say why, as a name does that a client looked for in the same install and that is no registry's. Where several commands run at once, or one is no
// single install (an agent is one), nobody knows which install a refusal ended, so that none stands for another there.
func (s *summary) refuseWithheld() {
	var found [certain + 1][]audit.Record
	for _, r := range s.withheld {
		if s.mayBeCause(r) {
			w := weighCause(r, s.missedByCommand(records.ProjectOf(r)))
			found[w] = append(found[w], r)
		}
	}
	for w := certain; w >= passedOver; w-- {
		var these []audit.Record
		for _, r := range found[w] {
			if !s.causes.explains(r, w) && (w != passedOver || s.endings.badly > 0 && !s.causes.soughtName(r)) {
				these = append(these, r)
			}
		}
		for _, r := range these {
			s.refuseRecord(r)
		}
	}
}

func (s *summary) refuseRecord(r audit.Record) {
	s.causes.noteCause(r)
	line := packageLine(r)
	if r.Detail[records.DetailWhat] == records.WhatIndex && len(r.Withheld) > 0 {
		line.Version = r.Withheld[len(r.Withheld)-1].To
	}
	s.refused.addLine(line, 1)
}

// mayBeCause tells whether nothing that is known of a withheld page says that nobody missed it.
func (s *summary) mayBeCause(r audit.Record) bool {
	p := records.ProjectOf(r)
	inPart := r.Detail[records.DetailWhat] == records.WhatIndex
	had := s.wasServed(p, r.Seq) || inPart && s.endings.allWell()
	return !s.blocked[p] && r.Detail[records.DetailEvent] != records.EventRepeats && !s.passedOver(r) && (r.Detail[records.DetailAlarm] != "" || !had)
}

// wasServed tells whether a project of which something was withheld was had all the same.
func (s *summary) wasServed(p pkgref.Ref, withheld uint64) bool {
	return s.had.Of(p) || s.parents[p] || s.pages[p] > withheld
}
