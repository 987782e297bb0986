// Package refusal has the words in which a refusal is told: to the agent inside, who
// asks `cofferdam why` there, and to the person on the host, who asks the same.
package refusal

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Refusal is one thing that a sandbox was refused.
type Refusal struct {
	Time      time.Time  `json:"time"`
	Run       string     `json:"run"`
	Sandbox   string     `json:"sandbox"`
	Package   pkgref.Ref `json:"package,omitzero"`
	File      string     `json:"file,omitempty"`
	What      string     `json:"what"`           // package, index, name, command, tool
	Name      string     `json:"name,omitempty"` // a name that does not resolve, or a tool's
	Outcome   string     `json:"outcome"`
	Rule      string     `json:"rule"`
	Reason    string     `json:"reason"`
	Suggest   string     `json:"suggest,omitempty"` // lines of a policy that would allow it
	RequestID string     `json:"request_id"`
	Count     int        `json:"count"`
	// Alarm tells that it is more than a refusal: somebody's bytes are not what a
	// lockfile or an advisory says they must (not) be.
	Alarm bool `json:"alarm,omitempty"`
	// Approval is the request in the queue that it waits for.
	Approval string `json:"approval,omitempty"`
	// Cause tells, where that was asked for, that it may be why something failed: of the others
	// that is less sure.
	Cause bool `json:"cause,omitempty"`
}

// WhatTool is What of a call of a tool of the host.
const WhatTool = "tool"

// Text tells refusals in their order, a paragraph each. Text of publishers and agents is made harmless for a terminal.
func Text(refusals []Refusal) string {
	if len(refusals) == 0 {
		return "Nothing was refused in this run.\n"
	}
	var b strings.Builder
	for _, r := range refusals {
		writeRefusal(&b, r)
	}
	return b.String()
}

// JSON is a list of refusals, indented, as programs read it.
func JSON(refusals []Refusal) (string, error) {
	if refusals == nil {
		refusals = []Refusal{}
	}
	data, err := json.MarshalIndent(refusals, "", "  ")
	return string(data) + "\n", err
}

func writeRefusal(b *strings.Builder, r Refusal) {
	if r.Alarm {
		b.WriteString("ALARM  ")
	}
	fmt.Fprintf(b, "%s  %s: %s", r.Time.UTC().Format("15:04:05Z"), Line(r.Outcome), Line(Subject(r)))
	if r.File != "" {
		fmt.Fprintf(b, " (%s)", Line(r.File))
	}
	if r.Count > 1 {
		fmt.Fprintf(b, ", %d times", r.Count)
	}
	fmt.Fprintf(b, "\n  why:     %s\n", Line(r.Reason))
	if r.Rule != "" {
		fmt.Fprintf(b, "  rule:    %s\n", Line(r.Rule))
	}
	if r.RequestID != "" {
		fmt.Fprintf(b, "  request: %s\n", Line(r.RequestID))
	}
	if r.Suggest != "" {
		b.WriteString("  a person can allow it by adding this to the policy, on the host:\n")
		for line := range strings.Lines(r.Suggest) {
			fmt.Fprintf(b, "    %s\n", Line(strings.TrimRight(line, "\r\n")))
		}
	}
}

// Subject is what a refusal is about: a package, a name, or else its kind.
func Subject(r Refusal) string {
	switch {
	case r.Package.Name != "":
		return r.Package.String()
	case r.What == WhatTool:
		return "tool " + r.Name
	case r.Name != "":
		return r.Name
	}
	return r.What
}

// Line keeps what others wrote from drawing on a terminal: it is text.Line.
func Line(s string) string { return text.Line(s) }
