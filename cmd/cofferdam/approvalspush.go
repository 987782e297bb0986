package main

import (
	"fmt"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// showPush prints what a push to a repository would change.
func showPush(s *ui.Sheet, r approval.Request, now time.Time) {
	e := r.Evidence
	s.Line("repository", "%s", r.Host.Repository)
	s.Line("host", "%s, port %d", r.Host.Name, r.Host.Port)
	s.Line("push", "%s", r.Host.Push)
	evidenceList(s, e, "FINDINGS", "findings", e.Findings)
	showRefs(s, r)
	if h := e.Host; h != nil {
		size := "of a size that is not known yet"
		if h.Bytes > 0 {
			size = ui.Size(h.Bytes)
		}
		s.Line("brings", "%s, %s", ui.Plural(h.Objects, "object", "objects"), size)
		evidenceList(s, e, "commands then", "host.commands", h.Commands)
	}
	evidenceList(s, e, "NOT CHECKED", "unchecked", e.Unchecked)
	if !e.FirstSeen.IsZero() {
		s.Line("first asked for", "%s, %s ago", e.FirstSeen.UTC().Format(time.DateTime), ui.Age(now.Sub(e.FirstSeen)))
	}
	s.Text("last approved", e.LastApproved)
}

// showRefs prints each ref that a push moves, and what the host gets with it.
func showRefs(s *ui.Sheet, r approval.Request) {
	if h := r.Evidence.Host; h != nil {
		s.Line("changes", "%s", ui.Plural(len(h.Refs), "ref", "refs"))
		s.List("refs", h.Refs)
		s.List("options", h.Options)
	}
}

// pushMeaning is the meaning of an approval for a push.
func pushMeaning(r approval.Request, scope approval.Scope, lasts time.Duration) string {
	return fmt.Sprintf("Approving (scope %s) lets %s push exactly these refs, from these objects to these, to %s%s. "+
		"A push of another commit, ref or option asks again, and what the policy denies stays denied.",
		scope, describeScope(r, scope), r.Host, describeExpiry(lasts))
}
