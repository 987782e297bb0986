package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

type approvalInput struct {
	packagesInput

	Because string `json:"because" jsonschema:"why you need them, for the person who decides"`
}

type approvalOutput struct {
	Requests  []string         `json:"requests"`         // ids of the requests that wait for a person now
	Group     string           `json:"group,omitempty"`  // stands for all of them in the answer
	Answer    string           `json:"answer,omitempty"` // how a person answers; you can not. Tell your user
	URL       string           `json:"url,omitempty"`
	Opened    bool             `json:"opened"` // the user agreed to open the page; that is no approval yet
	Releases  []plannedRelease `json:"releases"`
	Total     int              `json:"total"`
	Truncated bool             `json:"truncated"`
	Next      string           `json:"next"`
}

// approvalAsked is a request that a peer filed; or, under an id of ours, what is to be told
// once the client's person was shown the page.
type approvalAsked struct {
	what string
	told approvalOutput
}

// maxAsked bounds the requests that are kept in mind for a peer.
const maxAsked = 256

// openPage is the id of the one question to the client.
const openPage = "approval"

func requestApproval(ctx context.Context, c call, in approvalInput) (*sdk.CallToolResult, approvalOutput, error) {
	if out, again := c.peer.shownAnswer(c.req.Params); again {
		return nil, out, nil
	}
	if in.Because == "" || len(in.Because) > maxBecause {
		return nil, approvalOutput{}, failure(codeInvalid, fmt.Sprintf("because has %d bytes; it has 1 to %d", len(in.Because), maxBecause), "say why you need the packages")
	}
	made, err := c.planInstall(ctx, in.packagesInput, true, ui.PrintableText(in.Because))
	if err != nil {
		return nil, approvalOutput{}, err
	}
	out := c.peer.filedOutput(made)
	if out.URL == "" || !c.opensPages() {
		return nil, out, nil
	}
	state := "shown " + cmp.Or(out.Group, out.Requests[0])
	c.peer.rememberAsked(state, approvalAsked{told: out})
	page := &sdk.ElicitParams{
		Mode: "url", URL: out.URL, ElicitationID: cmp.Or(out.Group, out.Requests[0]),
		Message: fmt.Sprintf("An agent asks for what your policy leaves to a person, %s: %s. Its reason: %s",
			ui.Plural(len(out.Requests), "request", "requests"), text.Seal(c.peer.namesOf(out.Requests), maxNamed), text.Seal(ui.Printable(in.Because), maxSentence)),
	}
	return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{openPage: page}, RequestState: state}, approvalOutput{}, nil
}

// maxNamed bounds the packages that a question names, in bytes.
const maxNamed = 500

// namesOf are the packages that requests are about, for a person.
func (p *peer) namesOf(requests []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for _, id := range requests {
		names = append(names, p.asked[id].what)
	}
	return strings.Join(names, ", ")
}

// filedOutput is what was asked for.
func (p *peer) filedOutput(made api.Plan) approvalOutput {
	seen := viewPlan(made)
	out := approvalOutput{Requests: []string{}, Releases: seen.Releases, Total: seen.Total, Truncated: seen.Truncated}
	for _, r := range made.Releases {
		if r.Effect != plan.EffectHold || r.Approval == "" {
			continue
		}
		if !slices.Contains(out.Requests, r.Approval) {
			out.Requests = append(out.Requests, r.Approval)
		}
		out.Group = r.Group
		p.rememberAsked(r.Approval, approvalAsked{what: ui.Printable(r.Ecosystem + " " + r.Name + " " + r.Version)})
	}
	switch {
	case len(out.Requests) == 0:
		out.Group, out.Next = "", seen.Next
		return out
	case len(out.Requests) == 1:
		out.Group = ""
	}
	id := cmp.Or(out.Group, out.Requests[0])
	out.Answer, out.URL = p.howToAnswer(id), p.approvalURL(id)
	out.Next = "tell your user how to answer, and wait for that; then call install_packages. Do not ask again meanwhile"
	if seen.Denied > 0 {
		out.Next = "some of it is denied and stays so, whatever is approved: " + seen.Next
	}
	return out
}

func (p *peer) rememberAsked(id string, a approvalAsked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.asked[id]; !known {
		p.order = append(p.order, id)
	}
	p.asked[id] = a
	if len(p.order) > maxAsked {
		delete(p.asked, p.order[0])
		p.order = p.order[1:]
	}
}

// shownAnswer is the answer of a call that comes back after the client's person was asked to open
// the page. The client's word on it decides nothing.
func (p *peer) shownAnswer(params *sdk.CallToolParamsRaw) (approvalOutput, bool) {
	answer, given := params.InputResponses[openPage].(*sdk.ElicitResult)
	if !given || answer == nil {
		return approvalOutput{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	asked, known := p.asked[params.RequestState]
	if !known || asked.told.Answer == "" {
		return approvalOutput{}, false
	}
	out := asked.told
	out.Opened = answer.Action == "accept"
	return out, true
}

// opensPages tells whether the client shows its person pages.
func (c call) opensPages() bool {
	at := c.req.Session.InitializeParams()
	return at != nil && at.Capabilities != nil && at.Capabilities.Elicitation != nil && at.Capabilities.Elicitation.URL != nil
}

// pending is a request that a peer filed, or that something of it waits for.
type pending struct {
	Request string `json:"request"`
	For     string `json:"for"`
	State   string `json:"state"` // pending, approved, denied, ..., or unknown: a token may not look
	// Revision is what the request is at, and AnswerID ID@REVISION: whoever answers names it.
	// Unknown as the state is.
	Revision uint64 `json:"revision,omitempty"`
	AnswerID string `json:"answer_id,omitempty"`
	Answer   string `json:"answer"`
}

// approvals are a peer's requests, and how they stand as far as it may know.
func (p *peer) approvals(ctx context.Context) ([]pending, error) {
	p.mu.Lock()
	all := []pending{}
	for _, id := range p.order {
		if p.asked[id].told.Answer == "" {
			all = append(all, pending{Request: id, For: p.asked[id].what, State: "unknown", Answer: p.howToAnswer(id)})
		}
	}
	boxes := slices.Clone(p.boxes)
	p.mu.Unlock()
	for _, box := range boxes {
		holds, err := askBackend(ctx, p, func(b Backend) ([]api.Hold, error) { return b.Holds(ctx, box) })
		if client.StatusOf(err) != 0 {
			continue // it is gone
		}
		if err != nil {
			return nil, err
		}
		for _, h := range p.waitingFor(holds) {
			if !slices.ContainsFunc(all, func(have pending) bool { return have.Request == h.Request }) {
				all = append(all, pending{Request: h.Request, For: h.For, State: "pending", Answer: h.Answer})
			}
		}
	}
	for i := range all {
		known, err := askBackend(ctx, p, func(b Backend) (api.Approval, error) { return b.Approval(ctx, all[i].Request) })
		var now struct {
			State    string `json:"state"`
			Revision uint64 `json:"revision"`
			AnswerID string `json:"answer_id"`
		}
		if err == nil && json.Unmarshal(known, &now) == nil && now.State != "" {
			all[i].State, all[i].Revision, all[i].AnswerID = now.State, now.Revision, now.AnswerID
		}
	}
	return all, nil
}
