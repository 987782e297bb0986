package mcp

import (
	"context"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/refusal"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// maxRefused bounds the refusals that one call tells, maxSeen those that are kept in mind.
const (
	maxRefused = 50
	maxSeen    = 10_000
)

// refused is one thing that was refused.
type refused struct {
	What     string `json:"what"`
	Reason   string `json:"reason"`
	Rule     string `json:"rule"`
	Request  string `json:"request_id"`
	Approval string `json:"approval,omitempty"`
	Answer   string `json:"answer,omitempty"`  // how a person answers that; you can not
	Suggest  string `json:"suggest,omitempty"` // lines of a policy that would allow it: for a person, who decides
	Alarm    bool   `json:"alarm,omitempty"`   // the bytes are not what they must be: do not use it, tell your user
	Count    int    `json:"count"`
}

// missing tells that no policy refused it: a registry does not have it, or did not give it.
func (r refused) missing() bool { return notGiven(r.Rule) }

// onlyMissing tells of the news of a sandbox that no policy refused any of it. Where they are as many as are told, there
// may be others, of which nothing is known here.
func onlyMissing(all []refused) bool {
	return len(all) < maxRefused && !slices.ContainsFunc(all, func(r refused) bool { return !r.missing() })
}

// notGiven tells of a refusal's rule that it is no policy's: the words that others give to rules of their own may
// begin like these.
func notGiven(rule string) bool {
	return rule == door.RuleMissing || rule == door.RuleDeclined || rule == door.RuleFailed
}

func (p *peer) viewRefusal(r api.Refusal) refused {
	v := refused{
		What: ui.Printable(subjectOf(r)), Reason: text.Shorten(ui.Printable(r.Reason), maxSentence),
		Rule: ui.Printable(r.Rule), Request: r.RequestID, Approval: r.Approval,
		Suggest: text.Shorten(ui.PrintableText(strings.TrimSpace(r.Suggest)), maxSentence), Alarm: r.Alarm, Count: r.Count,
	}
	if r.Approval != "" {
		v.Answer = p.howToAnswer(r.Approval)
	}
	return v
}

// subjectOf returns the words for the thing that was refused, which are those that the gateway's own pages have.
func subjectOf(r api.Refusal) string {
	pkg := pkgref.Ref{Ecosystem: pkgref.Ecosystem(r.Package.Ecosystem), Name: r.Package.Name, Version: r.Package.Version}
	return refusal.Subject(refusal.Refusal{What: r.What, Package: pkg, File: r.File, Name: r.Name})
}

// howToAnswer is how a person answers a request.
func (p *peer) howToAnswer(request string) string {
	how := "a person runs on the host: cofferdam approvals approve " + request + " (or deny)"
	if url := p.approvalURL(request); url != "" {
		how = "a person opens " + url + ", or runs on the host: cofferdam approvals approve " + request
	}
	return how
}

// approvalURL is the page on which a request is answered; "": there is none.
func (p *peer) approvalURL(request string) string {
	return strings.ReplaceAll(p.cfg.ApprovalURL, "{request}", request)
}

// newRefusals are the refusals of a sandbox that were not told before; alarms alone leaves the others
// for another time.
func (p *peer) newRefusals(ctx context.Context, sandbox string, alarmsAlone bool) ([]refused, error) {
	all, err := askBackend(ctx, p, func(b Backend) (api.Refusals, error) {
		return b.Refusals(ctx, client.RefusalFilter{Sandbox: sandbox})
	})
	if err != nil {
		return nil, p.goneError(ctx, sandbox, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) > maxSeen {
		p.seen = map[string]int{}
	}
	var fresh []refused
	for _, r := range all.Refusals {
		key := sandbox + " " + r.RequestID
		if alarmsAlone && !r.Alarm {
			continue
		}
		full := len(fresh) == maxRefused
		if full && r.Alarm {
			continue // another call tells it: an alarm that nobody was told of is none
		}
		if p.seen[key] < r.Count || p.seen[key] == 0 {
			p.seen[key] = max(r.Count, 1)
			if !full {
				fresh = append(fresh, p.viewRefusal(r))
			}
		}
	}
	return fresh, nil
}

type whyInput struct {
	aboutSandbox

	Request string `json:"request_id,omitempty" jsonschema:"only what was refused under this id, as in \"request cvfkyk4n\""`
}

type whyOutput struct {
	Refused   []refused `json:"refused"` // alarms first, then the oldest first
	Total     int       `json:"total"`
	Truncated bool      `json:"truncated"`
	Next      string    `json:"next"`
}

func whyBlocked(ctx context.Context, c call, in whyInput) (whyOutput, error) {
	p := c.peer
	p.mu.Lock()
	run, standard := p.run, p.standard
	p.mu.Unlock()
	out := whyOutput{Refused: []refused{}, Next: "nothing was refused"}
	switch {
	case in.Sandbox != "":
		if err := p.checkOwned(in.Sandbox); err != nil {
			return out, err
		}
	case run == "":
		return out, nil // it has had no sandbox
	case in.Request == "":
		in.Sandbox = standard
	}
	// Of the peer's own run, whatever else the request is about.
	all, err := askBackend(ctx, p, func(b Backend) (api.Refusals, error) {
		return b.Refusals(ctx, client.RefusalFilter{Run: run, Sandbox: in.Sandbox, Request: in.Request})
	})
	if err != nil {
		return out, err
	}
	out.Total = len(all.Refusals)
	for _, r := range all.Refusals[:min(out.Total, maxRefused)] {
		out.Refused = append(out.Refused, p.viewRefusal(r))
	}
	out.Truncated = out.Total > len(out.Refused)
	switch {
	case out.Total > 0 && !slices.ContainsFunc(all.Refusals, func(r api.Refusal) bool { return !notGiven(r.Rule) }):
		out.Next = missingThen
	case out.Total > 0:
		out.Next = "do not retry. For packages: plan_packages, then request_approval if the plan says hold. Else do without, or tell your user which lines of the policy would allow it"
	}
	return out, nil
}
