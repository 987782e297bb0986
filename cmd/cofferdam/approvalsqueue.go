package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// states are those of a request.
func states() []string {
	return texts(approval.Pending, approval.Approved, approval.Denied, approval.Expired, approval.Superseded)
}

// allRequests reads page by page, up to most; more tells that there are others.
func allRequests(ctx context.Context, c *client.Client, f client.ApprovalFilter, most int) (requests []approval.Request, more bool, err error) {
	requests = []approval.Request{}
	for {
		page, err := c.Approvals(ctx, f)
		if err != nil {
			return nil, false, err
		}
		for _, text := range page.Approvals {
			if len(requests) >= most {
				return requests, true, nil
			}
			r, err := readRequest(text)
			if err != nil {
				return nil, false, err
			}
			requests = append(requests, r)
		}
		if f.Before = page.Next; f.Before == "" {
			return requests, false, nil
		}
	}
}

func readRequest(text api.Approval) (approval.Request, error) {
	var r approval.Request
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read a request: %w", err)
	}
	return r, nil
}

// listed is a request where it stands in a list.
type listed struct {
	approval.Request
	indent string
}

// underTrees puts the members of trees below them.
func underTrees(requests []approval.Request) []listed {
	byID := map[string]approval.Request{}
	below := map[string]bool{}
	for _, r := range requests {
		byID[r.ID] = r
	}
	for _, r := range requests {
		for _, m := range r.Members {
			below[m.ID] = true
		}
	}
	var out []listed
	for _, r := range requests {
		if below[r.ID] {
			continue
		}
		out = append(out, listed{r, ""})
		for _, m := range r.Members {
			if own, there := byID[m.ID]; there {
				out = append(out, listed{own, "  "})
				delete(byID, m.ID) // it may be in another tree, too
			}
		}
	}
	return out
}

// maxRelease bounds a release, a host, a push or a call in a line, in bytes.
const maxRelease = 150

func releaseText(r approval.Request) string {
	if r.Kind == approval.KindCall {
		return callText(r)
	}
	content := text.Seal(r.What(), maxRelease)
	if n := len(r.Members) - 1; n > 0 {
		content += fmt.Sprintf(" and %d more", n)
	}
	return content
}

// expanded are requests with each tree's members that wait in its place.
func expanded(requests []approval.Request) []approval.Request {
	var out []approval.Request
	add := func(r approval.Request) {
		if !slices.ContainsFunc(out, func(o approval.Request) bool { return o.ID == r.ID }) {
			out = append(out, r)
		}
	}
	for _, r := range requests {
		if !r.IsTree() {
			add(r)
		}
		for _, m := range r.Members {
			if m.Request != nil && m.State == approval.Pending {
				add(*m.Request)
			}
		}
	}
	return out
}

// approvalQuestion asks for as many requests as were shown: each release of a tree that waits is one of its own.
func approvalQuestion(requests []approval.Request) string {
	return "approve " + ui.Plural(len(expanded(requests)), "request", "requests") + "?"
}

// maxRun bounds a run in a line, in bytes.
const maxRun = 80

func askedBy(r approval.Request) string {
	if len(r.Asks) == 0 {
		return ""
	}
	if r.Asked == 1 {
		return text.Seal(r.Asks[0].Run, maxRun)
	}
	return fmt.Sprintf("%s +%d", text.Seal(r.Asks[0].Run, maxRun), r.Asked-1)
}

// runsAtInstallation names the scripts or files that run when a release is installed; ""
// if nothing does.
func runsAtInstallation(r approval.Request) string {
	var names []string
	for _, script := range r.Evidence.Scripts {
		name, _, _ := strings.Cut(script, ":")
		names = append(names, text.Seal(name, 100))
	}
	if len(names) == 0 && slices.ContainsFunc(r.Files, func(f approval.File) bool { return f.Scripts }) {
		return "it is not known what"
	}
	return strings.Join(names, ", ")
}

// notesOf is what a person should see at a glance, worst first.
func notesOf(r approval.Request) []string {
	var notes []string
	if r.IsTree() {
		notes = append(notes, treeNotes(r)...)
	}
	if n := r.Evidence.Count("advisories"); n > 0 {
		notes = append(notes, ui.Plural(n, "advisory", "advisories"))
	}
	if worst, ok := r.Evidence.Vulnerabilities.Worst(); ok {
		notes = append(notes, fmt.Sprintf("%s, the worst: %s", ui.Plural(r.Evidence.Vulnerabilities.Count(), "vulnerability", "vulnerabilities"), worst))
	}
	if len(r.Near) > 0 {
		notes = append(notes, "ALMOST THE SAME NAME: "+strings.Join(r.Near, ", "))
	}
	if r.Evidence.Similar != "" {
		notes = append(notes, "like "+r.Evidence.Similar)
	}
	if what := runsAtInstallation(r); what != "" {
		notes = append(notes, "runs something at installation: "+what)
	}
	if slices.ContainsFunc(r.Files, isBuilt) {
		notes = append(notes, "building it runs its code")
	}
	if n := r.Evidence.Count("inside.suspect"); n > 0 {
		notes = append(notes, ui.Plural(n, "line to read", "lines to read"))
	}
	if n := r.Evidence.Count("findings"); n > 0 {
		notes = append(notes, ui.Plural(n, "finding", "findings"))
	}
	switch {
	case r.ReplacedBy != "":
		notes = append(notes, "now "+r.ReplacedBy)
	case r.Answer != nil:
		notes = append(notes, fmt.Sprintf("%s by %s, scope %s", r.Answer.State, r.Answer.By, r.Answer.Scope))
	}
	if r.Ended != "" && r.ReplacedBy == "" {
		notes = append(notes, r.Ended)
	}
	return notes
}

// treeNotes tell how many of a tree's members have been answered.
func treeNotes(r approval.Request) []string {
	counts := map[approval.State]int{}
	for _, m := range r.Members {
		counts[m.State]++
	}
	if r.State != approval.Pending || counts[approval.Pending] == len(r.Members) {
		return nil
	}
	return []string{fmt.Sprintf("%d of its %d releases wait for an answer", counts[approval.Pending], len(r.Members))}
}

// completeRequests offers requests in some states.
func completeRequests(in ...approval.State) completion {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		return completeFound(func(ctx context.Context, c *client.Client) []string {
			filter := client.ApprovalFilter{}
			for _, s := range in {
				filter.States = append(filter.States, string(s))
			}
			requests, _, _ := allRequests(ctx, c, filter, 200) // none, if none can be asked
			var found []string
			for _, r := range requests {
				if !slices.Contains(args, r.ID) {
					found = append(found, r.ID+"\t"+ui.Printable(releaseText(r)))
				}
			}
			return found
		})(cmd, args, word)
	}
}

// getRequest reads one request, as it is now.
type getRequest func(ctx context.Context, id string) (approval.Request, error)

// requestsOf reads a daemon's.
func requestsOf(c *client.Client) getRequest {
	return func(ctx context.Context, id string) (approval.Request, error) {
		text, err := c.Approval(ctx, id)
		if err != nil {
			return approval.Request{}, err
		}
		return readRequest(text)
	}
}

// withMembers are requests in which each tree has the requests of all its members that wait: an
// approval is of all of them, so all have to be shown. Lists give trees without, and an answer has
// as many as fit into it.
func withMembers(ctx context.Context, get getRequest, requests []approval.Request) ([]approval.Request, error) {
	lacks := func(m approval.Member) bool { return m.Request == nil && m.State == approval.Pending }
	whole := slices.Clone(requests)
	for i, r := range whole {
		if !slices.ContainsFunc(r.Members, lacks) {
			continue
		}
		r, err := get(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		r.Members = slices.Clone(r.Members)
		for j, m := range r.Members {
			if !lacks(m) {
				continue
			}
			own, err := get(ctx, m.ID)
			if err != nil {
				return nil, fmt.Errorf("show what %s is a part of: %w", m.ID, err)
			}
			r.Members[j].Request, r.Members[j].State = &own, own.State
		}
		whole[i] = r
	}
	return whole, nil
}

// addressed are the requests that ids, ids with revisions and group ids name, each once, in
// order, as they are now, with all members of trees. Of a group those that are pending.
func addressed(c *client.Client, ctx context.Context, ids []string) ([]approval.Request, error) { //nolint:revive // askFor takes it as it takes a method of the client
	var found []approval.Request
	get := requestsOf(c)
	add := func(r approval.Request) {
		if !slices.ContainsFunc(found, func(o approval.Request) bool { return o.ID == r.ID }) {
			found = append(found, r)
		}
	}
	for _, named := range ids {
		id, _, err := approval.ParseAnswerID(named)
		if err != nil {
			return nil, err
		}
		if !approval.IsGroup(id) {
			r, err := get(ctx, id)
			if err != nil {
				return nil, err
			}
			add(r)
			continue
		}
		group, _, err := allRequests(ctx, c, client.ApprovalFilter{Group: id, States: []string{string(approval.Pending)}}, 2000)
		if err != nil {
			return nil, err
		}
		if len(group) == 0 {
			return nil, fault.New(fault.ErrNotFound, "no request of a group %q waits for an answer", id)
		}
		slices.SortFunc(group, func(a, b approval.Request) int {
			return cmp.Or(cmp.Compare(a.Project().Name, b.Project().Name), a.Created.Compare(b.Created))
		})
		for _, r := range group {
			add(r)
		}
	}
	return withMembers(ctx, get, found)
}
