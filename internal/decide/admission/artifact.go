package admission

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/claims"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// Judge implements door.Door.
func (c *Controller) Judge(ctx context.Context, ask door.JudgeAsk) (door.Answer, error) {
	q := fileQuestion{FileAsk: ask.FileAsk, mayWalk: ask.MayWalk, paths: ask.Paths, evidence: ask.Evidence}
	return c.answerFile(ctx, q, func(t *tenant, w weighed) (door.Answer, error) {
		switch {
		case t.unreached(q, w):
			return door.Answer{Decision: w.decision, Unreached: true}, nil
		case w.decision.Effect == policy.Hold:
			return t.answerWaiting(q, w)
		}
		return t.decided(ctx, q, w)
	})
}

// Outline implements door.Door.
func (c *Controller) Outline(ctx context.Context, ask door.OutlineAsk) (door.Answer, error) {
	q := fileQuestion{FileAsk: ask.FileAsk, mayWalk: ask.MayWalk}
	return c.answerFile(ctx, q, func(t *tenant, w weighed) (door.Answer, error) {
		switch {
		case t.unreached(q, w):
			return door.Answer{Decision: w.decision, Unreached: true}, nil
		case w.decision.Outlined():
			return door.Answer{Decision: w.decision}, nil
		case w.decision.Effect == policy.Hold:
			return t.answerWaiting(q, w)
		}
		return t.decided(ctx, q, w)
	})
}

// Preview implements door.Door.
func (c *Controller) Preview(ctx context.Context, ask door.PreviewAsk) (door.Answer, error) {
	q := fileQuestion{FileAsk: ask.FileAsk, evidence: ask.Evidence}
	return c.answerFile(ctx, q, func(t *tenant, w weighed) (door.Answer, error) {
		if w.decision.Effect == policy.Hold {
			return t.previewed(ctx, q, w)
		}
		return t.decided(ctx, q, w)
	})
}

// Walk implements door.Door.
func (c *Controller) Walk(ctx context.Context, ask door.WalkAsk) (door.Answer, error) {
	q := fileQuestion{FileAsk: ask.FileAsk}
	t, err := c.admitQuestion(ctx, q)
	if err != nil {
		return door.Answer{}, err
	}
	w, err := t.weighFile(ctx, q)
	if err != nil {
		return door.Answer{}, err
	}
	return door.Answer{Decision: w.decision}, t.moveRelease(q, w)
}

// Await implements door.Door.
func (c *Controller) Await(ctx context.Context, ask door.AwaitAsk) (door.Answer, error) {
	q := aboutBytes(ask.FileAsk, ask.Bytes)
	q.evidence = ask.Evidence
	ctx, done := door.Lasting(ctx)
	defer done()
	return c.answerFile(ctx, q, func(t *tenant, w weighed) (door.Answer, error) {
		if w.decision.Effect == policy.Hold {
			return c.awaitAnswer(ctx, t, q, w)
		}
		return t.decided(ctx, q, w)
	})
}

// Serve implements door.Door.
func (c *Controller) Serve(ctx context.Context, ask door.ServeAsk) (door.Answer, error) {
	q := aboutBytes(ask.FileAsk, ask.Bytes)
	return c.answerFile(ctx, q, func(t *tenant, w weighed) (door.Answer, error) {
		switch w.decision.Effect {
		case policy.Hold:
			return t.answerWaiting(q, w)
		case policy.Allow:
			return c.serveAllowed(ctx, t, q, ask.Part, w)
		default:
			return t.decided(ctx, q, w)
		}
	})
}

// admitQuestion gives the run that a question comes from, if it may be asked at all.
func (c *Controller) admitQuestion(ctx context.Context, q fileQuestion) (*tenant, error) {
	t, err := c.admitTenant(ctx, q.Sandbox)
	if err != nil {
		return nil, err
	}
	return t, q.checkQuestion()
}

// answerFile has a file weighed, and refuses it if what is known of it can't be read.
func (c *Controller) answerFile(ctx context.Context, q fileQuestion, say func(*tenant, weighed) (door.Answer, error)) (door.Answer, error) {
	t, err := c.admitQuestion(ctx, q)
	if err != nil {
		return door.Answer{}, err
	}
	w, err := t.weighFile(ctx, q)
	switch {
	case errors.Is(err, errFacts):
		return t.refuseUnknown(ctx, q, err)
	case err != nil:
		return door.Answer{}, err
	}
	return say(t, w)
}

// weighed is a file's decision, with what it was made of. said is the policy's own
// word: in a plan the decision shows more than that.
type weighed struct {
	about    policy.Subject
	judge    *policy.Judge
	said     policy.Decision
	decision policy.Decision
}

// weighFile judges a file by all that is known now.
func (t *tenant) weighFile(ctx context.Context, q fileQuestion) (w weighed, err error) {
	if w.about, err = t.known.subject(q.Package, ledger.Origin{Upstream: q.Upstream, Toolchain: q.Toolchain}); err != nil {
		return w, err
	}
	if w.about.Approvals, err = t.known.answers(ctx, q.Package); err != nil {
		return w, err
	}
	t.require(&w.about, q.Package)
	w.judge = t.known.newJudge(w.about)
	w.said = w.judge.File(q.fileFacts())
	if isSource(t.run.Source, q) {
		w.said = sourceDecision(t.run.Source)
	}
	w.decision = t.known.settleDecision(planned(t.run.Plan, w.said))
	if t.run.Rehearsal && q.File.Kind == policy.KindSdist && w.said.Effect != policy.Allow && w.decision.Shown() {
		w.decision = w.said
		w.decision.Effect, w.decision.Reason = policy.Deny, planning.Unbuilt
	}
	if w.decision.Shown() {
		w.decision, err = t.known.malwareInside(q, w.decision)
	}
	if !t.run.Plan || !w.decision.Shown() {
		w.said = w.decision
	}
	return w, err
}

// decided answers what waits for nobody: a denial is recorded, and an allowance is not.
func (t *tenant) decided(ctx context.Context, q fileQuestion, w weighed) (door.Answer, error) {
	d := w.decision
	if d.Allowed() {
		t.noteShown(q, false)
		return door.Answer{Decision: d}, t.moveRelease(q, w)
	}
	if !q.mayWalk {
		d = t.bounded(q.Package, d)
	}
	_ = t.moveRelease(q, w) // the refusal stands, whatever becomes of what rested on the release
	r, err := t.book.Refuse(ctx, blockedRecord(q, d))
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
}

// serveAllowed answers with what is allowed, once that is on record.
func (c *Controller) serveAllowed(ctx context.Context, t *tenant, q fileQuestion, part string, w weighed) (door.Answer, error) {
	if err := (observer{t}).recordFile(ctx, q, w.decision); err != nil {
		return door.Answer{}, err
	}
	r, err := t.book.Append(ctx, t.servedOrPlanned(q, part, w))
	if err != nil {
		return door.Answer{}, err
	}
	c.earlier.Take(r)
	t.noteShown(q, true)
	t.served.Send(r, q.paths)
	t.book.Served(q.Package)
	return door.Answer{Decision: w.decision, RequestID: r.RequestID, Seq: r.Seq}, t.moveRelease(q, w)
}

// noteShown remembers, in a plan, a file that the resolver may read; given tells that it
// gets the bytes.
func (t *tenant) noteShown(q fileQuestion, given bool) {
	if t.shown == nil {
		return
	}
	t.shown.File(q.FileAsk, planning.Reading{Digests: q.fileFacts().Digests, Size: q.fileSize(), Paths: q.paths, Evidence: q.evidence, Given: given})
}

func artifactRecord(q fileQuestion, outcome audit.Outcome, d policy.Decision) audit.Record {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: outcome, File: q.File.Name, SourceURL: redact.Cut(q.SourceURL, 2_048),
		SHA256: q.sha256(), Size: q.fileSize(), ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason, Approval: d.Approval,
	}
	records.SetRef(&r, q.Package)
	return r
}

func blockedRecord(q fileQuestion, d policy.Decision) audit.Record {
	r := artifactRecord(q, audit.Blocked, d)
	if q.File.Kind == policy.KindMetadata {
		r.Detail = map[string]string{records.DetailKind: string(policy.KindMetadata)}
	}
	records.Explain(&r, d)
	return r
}

func (t *tenant) servedRecord(q fileQuestion, part string, d policy.Decision) audit.Record {
	r := artifactRecord(q, audit.Served, d)
	r.RequestedVersion, r.RequestedClaimed = t.requested(q.Package, d)
	r.Detail = map[string]string{}
	for key, text := range map[string]string{
		records.DetailThrough: d.Through, records.DetailUpstreamDigest: upstreamDigest(q),
		records.DetailBundled: strings.Join(q.Bundled, ", "), records.DetailFindings: strings.Join(findings(q), "; "),
		detailPart: part, records.DetailConsists: q.Contents,
	} {
		if text != "" {
			r.Detail[key] = redact.Cut(text, 8_192)
		}
	}
	if len(r.Detail) == 0 {
		r.Detail = nil
	}
	return asLetThrough(r, d)
}

// upstreamDigest is what the upstream or a witness says, if it is not the
// record's own sha256.
func upstreamDigest(q fileQuestion) string {
	if d := q.fileFacts().Digest; d != "sha256:"+q.sha256() {
		return d
	}
	return ""
}

// findings are the gateway's and what the digests give reason for.
func findings(q fileQuestion) []string {
	all := slices.Clone(q.Findings)
	switch digest := q.fileFacts().Digest; {
	case digest == "":
		all = append(all, "no digest of it is published; its first bytes count")
	case !policy.StrongDigest(digest):
		all = append(all, "only a weak digest of it is published; its first bytes count")
	}
	return all
}

// requested says in which version a release was wanted: by a lockfile's pin, else
// by the specifier of the verified requirement through which it was admitted,
// else of any that it satisfies, else by what a command said, which is a claim.
func (t *tenant) requested(p pkgref.Ref, d policy.Decision) (specifier string, claimed bool) {
	if d.Pinned != "" {
		return redact.Cut(d.Pinned, 512), false
	}
	for _, e := range d.WantedBy {
		if e.Specifier != "" && (specifier == "" || d.Through != "" && e.Through == d.Through) {
			specifier = e.Specifier
			if e.Through == d.Through {
				break
			}
		}
	}
	if specifier != "" {
		return redact.Cut(specifier, 512), false
	}
	project := p
	project.Version = ""
	t.mu.Lock()
	claim := t.claims[project]
	t.mu.Unlock()
	if !claims.Meets(claim, p) {
		return "", false // the command wanted another release of it
	}
	return claim, true
}

// refuseUnknown records that a file was refused since its facts could not be
// read. The cause goes with the error if that fails too.
func (t *tenant) refuseUnknown(ctx context.Context, q fileQuestion, cause error) (door.Answer, error) {
	d := unknownDecision()
	r := blockedRecord(q, d)
	r.Outcome = audit.Failed
	r, err := t.book.Refuse(ctx, r)
	if err != nil {
		return door.Answer{}, errors.Join(cause, err)
	}
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, nil
}
