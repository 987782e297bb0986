package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// showMembers prints the releases of a tree: first all of them in its order, then what is
// known of each.
func showMembers(s *ui.Sheet, r approval.Request, now time.Time) {
	s.Raw(fmt.Sprintf("\n  %s, each a request of its own:\n", ui.Plural(len(r.Members), "release", "releases")))
	var members strings.Builder
	_ = tableOf([]string{"REQUEST", "STATE", "RELEASE", "FILE", "LOOK AT"}, memberRow)(&members, r.Members) // a Builder takes all
	for line := range strings.Lines(members.String()) {
		s.Raw("  " + line)
	}
	for _, m := range r.Members {
		if m.Request == nil {
			s.Raw("\n")
			s.Head(m.ID, m.Package.String())
			s.Raw("  this is too much to print: cofferdam approvals show " + ui.Printable(m.ID) + "\n")
			continue
		}
		own := *m.Request
		s.Raw("\n")
		s.Head(own.ID, releaseText(own), string(own.State))
		showNear(s, own)
		showRisks(s, own)
		if len(own.Asks) > 0 {
			s.List("wanted by", own.Asks[0].WantedBy)
		}
		showEvidence(s, own, now)
		showFiles(s, own)
	}
}

// memberRow is a release of a tree in one line, indented by its place in the tree.
func memberRow(m approval.Member) []string {
	const deepest = 8
	row := []string{m.ID, string(m.State), strings.Repeat("  ", min(max(m.Depth, 0), deepest)) + m.Package.Name + " " + m.Package.Version, "", ""}
	if m.Request == nil {
		return row
	}
	if files := m.Request.Files; len(files) > 0 {
		row[3] = files[0].Kind
		if files[0].Size > 0 {
			row[3] += ", " + ui.Size(files[0].Size)
		}
		if len(files) > 1 {
			row[3] = ui.Plural(len(files), "file", "files")
		}
	}
	row[4] = strings.Join(notesOf(*m.Request), "; ")
	return row
}

// treeMeaning is meaning for a tree.
func treeMeaning(r approval.Request, scope approval.Scope, lasts time.Duration) string {
	waiting := len(expanded([]approval.Request{r}))
	return fmt.Sprintf("Approving %s (scope %s) lets %s install exactly the files of the %s above, by digest, from these indexes%s. Another "+
		"file, version, index, release or run asks again, and what the policy denies stays denied. Each release can be approved or denied by its own id.",
		r.ID, scope, describeScope(r, scope), ui.Noun(waiting, "release", fmt.Sprintf("%d releases", waiting)), describeExpiry(lasts))
}
