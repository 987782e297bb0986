package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// showCall prints what is known of a call of a tool that somebody wants to make.
func showCall(s *ui.Sheet, r approval.Request, now time.Time) {
	e := r.Evidence
	s.Line("tool", "%s", r.Call.Tool)
	s.Line("of", "%s", ownerOfTool(r.Call))
	s.OrUnknown("definition", r.Call.Definition)
	if e.Call != nil {
		s.Text("description", e.Call.Description)
	}
	showArguments(s, r)
	if e.FirstSeen.IsZero() {
		s.Line("first asked", "%s", "now, with these arguments")
	} else {
		s.Line("first asked", "%s, %s ago, with these arguments", e.FirstSeen.UTC().Format(time.DateTime), ui.Age(now.Sub(e.FirstSeen)))
	}
	if e.Call != nil {
		s.Line("before", "allowed %s with these arguments, %s with others; denied %s", ui.Plural(e.Call.Approved, "time", "times"), ui.Plural(e.Call.Others, "time", "times"), ui.Plural(e.Call.Denied, "time", "times"))
		evidenceList(s, e, "commands", "call.commands", e.Call.Commands)
	}
	s.Text("last approved", e.LastApproved)
}

// showArguments prints all that the tool would get, a line for each member.
func showArguments(s *ui.Sheet, r approval.Request) {
	s.List("sha256", []string{strings.TrimPrefix(r.Call.Digest, "sha256:")})
	if r.Call.Arguments == "" {
		s.Line("ARGUMENTS", "%s", "were erased from the log; nobody can tell what they were")
		return
	}
	var lines bytes.Buffer
	if err := json.Indent(&lines, []byte(r.Call.Arguments), "", "  "); err != nil { // a secret in them was made unreadable
		lines.Reset()
		lines.WriteString(r.Call.Arguments)
	}
	s.List("arguments", strings.Split(lines.String(), "\n"))
}

// ownerOfTool says whose tool it is.
func ownerOfTool(c approval.Call) string {
	switch c.Source {
	case approval.SourceHost:
		return "the host: the daemon's configuration declares it"
	case "":
		return "unknown: an earlier version asked, and its answers hold for no call any more"
	}
	return "the " + c.Source + " alone: its client gave it the tool, and runs it"
}

// callText is a call in a list: the tool, its arguments and whose it is; of a long one the
// beginning, and a digest.
func callText(r approval.Request) string {
	return text.Seal("tool "+r.Call.Tool+" "+r.Call.Arguments, maxRelease) + " of " + r.Call.Source + ", sha256 " + r.Fingerprint()
}

// callMeaning is the meaning of an approval for a call.
func callMeaning(r approval.Request, scope approval.Scope, lasts time.Duration) string {
	what := fmt.Sprintf("lets %s call %s with exactly these arguments, as often as it likes", describeScope(r, scope), r.Call.Tool)
	if scope == approval.ScopeOnce {
		what = fmt.Sprintf("lets %s call %s with exactly these arguments, once", describeScope(r, scope), r.Call.Tool)
		if r.Asked > 1 {
			what += " in all"
		}
	}
	return fmt.Sprintf("Approving (scope %s) %s%s. The tool is a program of the host, and does what it does. Other arguments, another tool of the same name and another definition of it ask again, and what the policy denies stays denied.", scope, what, describeExpiry(lasts))
}
