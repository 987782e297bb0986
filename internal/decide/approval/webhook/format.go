package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Format is how an event is told.
type Format string

// The formats.
const (
	JSON  Format = "json"  // see Body
	Slack Format = "slack" // {"text": "..."}, as Slack's incoming webhooks and what imitates them take
)

// Body is an event in the format JSON. It holds no more of a request than a
// person needs to see whether it is theirs to answer: `cofferdam approvals show
// ID` has the rest.
type Body struct {
	Number uint64             `json:"number"` // grows; the same again is the same event
	At     time.Time          `json:"at"`
	Event  approval.EventName `json:"event"`
	ID     string             `json:"id"`
	// Revision is what the request is at when this is sent, and AnswerID ID@REVISION: an
	// answer names what was shown.
	Revision uint64 `json:"revision"`
	AnswerID string `json:"answer_id"`
	// Fingerprint is a digest of all that an answer would be bound to.
	Fingerprint string `json:"fingerprint"`
	// Owners are whose runs ask: "token ID" or "user NAME".
	Owners   []string       `json:"owners,omitempty"`
	State    approval.State `json:"state"` // as it is when this is sent
	Group    string         `json:"group,omitempty"`
	Members  []Member       `json:"members,omitempty"` // of a tree, whose package is the one that the install names
	Package  Package        `json:"package,omitzero"`
	Host     approval.Host  `json:"host,omitzero"` // in the place of a package
	Call     Call           `json:"call,omitzero"` // the same
	Rule     string         `json:"rule"`
	Reason   string         `json:"reason"`
	Asked    int            `json:"asked"` // by so many runs
	Run      string         `json:"run,omitempty"`
	Task     string         `json:"task,omitempty"`
	Because  string         `json:"because,omitempty"` // the agent's own reason: a claim
	Similar  string         `json:"similar,omitempty"`
	Findings int            `json:"findings,omitempty"` // how many there are
	Files    int            `json:"files"`
	Scripts  bool           `json:"scripts,omitempty"` // something runs when it is installed
	Answer   *Answered      `json:"answer,omitempty"`
	Ended    string         `json:"ended,omitempty"`
	Replaced string         `json:"replaced_by,omitempty"`
}

// Call is a call of a tool of the host. Its arguments, which may be anybody's business, are
// for `cofferdam approvals show ID`.
type Call struct {
	Tool       string `json:"tool"`
	Source     string `json:"source,omitempty"`     // whose tool it is: host, or "sandbox ID"
	Definition string `json:"definition,omitempty"` // the digest of the tool
	Digest     string `json:"digest"`               // of the arguments
}

// Member is a release of a tree, and the request of its own.
type Member struct {
	ID      string  `json:"id"`
	Package Package `json:"package"`
}

// Package is the release.
type Package struct {
	Ecosystem string `json:"ecosystem"`
	Name      string `json:"name"`
	Version   string `json:"version"`
}

// Answered is what a person decided.
type Answered struct {
	State   approval.State `json:"state"`
	By      string         `json:"by"`
	Scope   approval.Scope `json:"scope"`
	Reason  string         `json:"reason,omitempty"`
	Expires time.Time      `json:"expires,omitzero"`
}

func (f Format) encodeBody(e approval.Event) ([]byte, error) {
	if f == Slack {
		return json.Marshal(slackMessage{Text: slackText(e)})
	}
	r := e.Request
	b := Body{
		Number: e.Number, At: e.At, Event: e.Name, ID: r.ID, Revision: r.Revision, AnswerID: r.AnswerID, Fingerprint: r.Fingerprint(), Owners: r.Owners(), State: r.State, Group: r.Group,
		Package: packageOf(r.Package), Host: r.Host, Call: Call{Tool: r.Call.Tool, Source: r.Call.Source, Definition: r.Call.Definition, Digest: r.Call.Digest},
		Rule: r.Rule, Reason: r.Reason, Asked: r.Asked, Similar: r.Evidence.Similar, Findings: r.Evidence.Count("findings"), Files: len(r.Files), Ended: r.Ended, Replaced: r.ReplacedBy,
	}
	if len(r.Asks) > 0 {
		b.Run, b.Task, b.Because = r.Asks[0].Run, r.Asks[0].Task, r.Asks[0].Because
	}
	for _, m := range r.Members {
		b.Members = append(b.Members, Member{ID: m.ID, Package: packageOf(m.Package)})
	}
	for _, file := range r.Files {
		b.Scripts = b.Scripts || file.Scripts
	}
	if a := r.Answer; a != nil {
		b.Answer = &Answered{State: a.State, By: a.By, Scope: a.Scope, Reason: a.Reason, Expires: a.Expires}
	}
	return json.Marshal(b)
}

func packageOf(p pkgref.Ref) Package {
	return Package{Ecosystem: string(p.Ecosystem), Name: p.Name, Version: p.Version}
}

type slackMessage struct {
	Text   string `json:"text"`
	Markup bool   `json:"mrkdwn"`       // false: * and _ in others' text stay what they are
	Unfurl bool   `json:"unfurl_links"` // false: nothing that others wrote is fetched
	Media  bool   `json:"unfurl_media"`
}

// slackText is one message. Everything in it goes through slackEscape.
func slackText(e approval.Event) string {
	r := e.Request
	what := r.What()
	if n := len(r.Members) - 1; n > 0 {
		what += fmt.Sprintf(" with %d other releases", n)
	}
	var lines []string
	which := r.ID + ", sha256 " + r.Fingerprint() // what an answer is bound to: two that differ never have the same text
	line := func(format string, args ...any) { lines = append(lines, slackEscape(fmt.Sprintf(format, args...))) }
	switch e.Name {
	case approval.EventAsked:
		line("%s waits for approval (%s): %s", what, which, text.Seal(r.Reason, maxText))
	case approval.EventApproved, approval.EventDenied:
		if r.Answer != nil {
			line("%s was %s by %s (%s, scope %s) %s", what, e.Name, r.Answer.By, which, r.Answer.Scope, text.Seal(r.Answer.Reason, maxText))
		}
	case approval.EventJoined:
		line("%s is asked for by %d runs now, or more is known of it (%s)", what, r.Asked, which)
	case approval.EventExpired, approval.EventRevoked, approval.EventSuperseded:
		line("%s: %s %s: %s", r.ID, what, e.Name, text.Seal(r.Ended, maxText))
	}
	if e.Name == approval.EventAsked && len(r.Asks) > 0 {
		if a := r.Asks[0]; a.Task != "" {
			line("Task: %s", text.Seal(a.Task, maxText))
		}
		if a := r.Asks[0]; a.Because != "" {
			line("The agent says: %s", text.Seal(a.Because, maxText))
		}
		if worst, ok := r.Evidence.Vulnerabilities.Worst(); ok {
			line("Its known vulnerabilities: %d, the worst: %s", r.Evidence.Vulnerabilities.Count(), text.Seal(worst.String(), maxText))
		}
		if r.Evidence.Similar != "" {
			line("Its name is near to that of a popular package: %s", text.Seal(r.Evidence.Similar, maxText))
		}
		if worst := r.Evidence.Findings; len(worst) > 0 {
			line("Look at %d findings, the first: %s", r.Evidence.Count("findings"), text.Seal(worst[0], maxText))
		}
		line("cofferdam approvals show %s", r.ID)
	}
	return strings.Join(lines, "\n")
}

// slackEscape keeps text from being read as markup, mentions or links, and from
// hiding or reordering what stands beside it.
func slackEscape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "://", ": //").Replace(text.Line(s))
}

// maxText bounds others' text in a sentence.
const maxText = 300
