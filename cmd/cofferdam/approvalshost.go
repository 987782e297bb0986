package main

import (
	"fmt"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// showHost prints what is known of a host on the network that somebody wants.
func showHost(s *ui.Sheet, r approval.Request, now time.Time) {
	e := r.Evidence
	s.Line("host", "%s", r.Host.Name)
	s.Line("port", "%d", r.Host.Port)
	s.Text("SIMILAR TO", e.Similar)
	evidenceList(s, e, "FINDINGS", "findings", e.Findings)
	evidenceList(s, e, "NOT CHECKED", "unchecked", e.Unchecked)
	if e.FirstSeen.IsZero() {
		s.Line("first asked for", "%s", ui.Unknown)
	} else {
		s.Line("first asked for", "%s, %s ago", e.FirstSeen.UTC().Format(time.DateTime), ui.Age(now.Sub(e.FirstSeen)))
	}
	protocol := ""
	if e.Host != nil {
		protocol = e.Host.Protocol
		evidenceList(s, e, "commands then", "host.commands", e.Host.Commands)
	}
	s.OrUnknown("protocol", protocol)
	s.Text("last approved", e.LastApproved)
}

// hostMeaning is meaning for a host.
func hostMeaning(r approval.Request, scope approval.Scope, lasts time.Duration) string {
	return fmt.Sprintf("Approving (scope %s) lets %s connect to %s on port %d%s, by TLS that names it or by plain HTTP, where all its addresses are public. "+
		"Whatever is connected to can be sent data, and can give back whatever it likes. Another name or port asks again, and what the policy denies stays denied.",
		scope, describeScope(r, scope), r.Host.Name, r.Host.Port, describeExpiry(lasts))
}

// onlyReleases refuses hosts and calls where a file is to be written that has packages.
func onlyReleases(requests []approval.Request, flag string) error {
	for _, r := range requests {
		switch r.Kind {
		case approval.KindCall, approval.KindPush:
			return fault.Invalid("%s is for packages, and %s is about %s; approve it without", flag, r.ID, r.What())
		case approval.KindHost:
			return fault.Invalid("%s is for packages, and %s is about %s; approve it without, or add it to network_allowlist by hand", flag, r.ID, r.What())
		}
	}
	return nil
}
