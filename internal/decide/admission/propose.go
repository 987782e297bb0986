package admission

import (
	"context"
	"errors"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Limits of a proposal.
const (
	maxProposed      = 50
	maxProposedFiles = 500
	maxBecause       = 2_000
)

// Propose implements Door: each item is judged as if it were asked for, and what
// would wait for a person is filed. Nothing is served and nothing admitted, and a
// denial is told, not recorded: nobody was refused anything yet.
func (c *Controller) Propose(ctx context.Context, ask door.ProposalAsk) ([]door.Proposed, error) {
	t, err := c.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return nil, err
	}
	if t.run.Source != nil { // its publisher's code would speak to people as if it were the agent
		return nil, fault.New(fault.ErrForbidden, "nothing is asked for from a sandbox in which something is built")
	}
	if len(ask.Items) > maxProposed {
		return nil, fault.Invalid("a proposal has %d packages; at most %d can be asked for at one time", len(ask.Items), maxProposed)
	}
	out := make([]door.Proposed, 0, len(ask.Items))
	for _, item := range ask.Items {
		p, err := t.propose(ctx, item, redact.Cut(ask.Because, maxBecause))
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func (t *tenant) propose(ctx context.Context, item door.ProposedAsk, because string) (door.Proposed, error) {
	out := door.Proposed{Package: item.Package, Effect: policy.Deny, Reason: "it has no file that can be installed"}
	if len(item.Files) > maxProposedFiles {
		item.Files = item.Files[:maxProposedFiles]
	}
	var ask *approval.Ask
	for _, f := range item.Files {
		file := fileQuestion{evidence: &item.Evidence, FileAsk: door.FileAsk{
			Sandbox: t.run.Sandbox, Package: item.Package, File: f, Upstream: item.Upstream, Toolchain: item.Toolchain, SourceURL: item.SourceURL,
		}}
		if err := file.checkQuestion(); err != nil {
			return door.Proposed{}, err
		}
		w, err := t.weighFile(ctx, file)
		if errors.Is(err, errFacts) {
			out.Reason = "what is known of it could not be read, so it is refused"
			return out, nil
		}
		if err != nil {
			return door.Proposed{}, err
		}
		better(&out, w.decision)
		if w.decision.Effect != policy.Hold || !slices.ContainsFunc(file.fileFacts().Digests, policy.StrongDigest) {
			continue
		}
		if ask == nil {
			first := t.fileAsk(file, w.decision)
			ask = &first
		} else {
			ask.Files = append(ask.Files, fileOf(file))
		}
	}
	if out.Effect != policy.Hold {
		return out, nil
	}
	return t.fileProposal(ctx, ask, because, out)
}

// fileProposal files what waits. A release without a strong digest can't be
// approved before its bytes are here.
func (t *tenant) fileProposal(ctx context.Context, ask *approval.Ask, because string, out door.Proposed) (door.Proposed, error) {
	switch {
	case t.known.config.Approvals == nil:
		out.Effect, out.Reason = policy.Deny, out.Reason+"; nobody can be asked here"
		return out, nil
	case ask == nil:
		out.Reason += "; its digest is not known before it is fetched, so install it: that asks"
		return out, nil
	}
	ask.Because = because
	request, err := t.known.fileAsk(ctx, *ask)
	if errors.Is(err, fault.ErrForbidden) {
		out.Effect, out.Reason = policy.Deny, err.Error()
		return out, nil
	}
	out.Approval = request.ID
	return out, err
}

// better takes a file's decision over if it promises more than what there is:
// one file of a release is enough to install it.
func better(p *door.Proposed, d policy.Decision) {
	rank := func(e policy.Effect) int {
		return slices.Index([]policy.Effect{policy.Deny, policy.Hold, policy.Allow}, e)
	}
	if p.Rule == "" || rank(d.Effect) > rank(p.Effect) {
		p.Effect, p.Rule, p.Reason = d.Effect, d.Rule, d.Reason
	}
}
