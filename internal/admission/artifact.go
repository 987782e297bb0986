package admission

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/admission/claims"
	"github.com/cofferdam-dev/cofferdam/internal/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// hexDigest is what ArtifactAsk.SHA256 must be.
var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`) // a constant

// maxDigests of one file.
const maxDigests = 16

// Artifact implements Door.
func (c *Controller) Artifact(ctx context.Context, ask door.ArtifactAsk) (door.Answer, error) {
	t, err := c.admit(ctx, ask.Sandbox)
	if err != nil {
		return door.Answer{}, err
	}
	if err := checkArtifact(ask); err != nil {
		return door.Answer{}, err
	}
	w, err := t.weigh(ctx, ask)
	switch {
	case ask.Walk && err == nil:
		return door.Answer{Decision: w.decision}, t.moveRelease(ask, w)
	case errors.Is(err, errFacts) && !ask.Walk:
		return t.refuseUnknown(ctx, ask, err)
	case err != nil:
		return door.Answer{}, err
	case t.unreached(ask, w):
		return door.Answer{Decision: w.decision, Unreached: true}, nil
	case ask.Outline && w.decision.Outlined():
		return door.Answer{Decision: w.decision}, nil
	case w.decision.Effect != policy.Hold:
		return c.decided(ctx, t, ask, w)
	case ask.Await:
		return c.await(ctx, t, ask, w)
	}
	return t.shownHeld(ctx, ask, w)
}

// weighed is a file's decision, with what it was made of. said is the policy's own
// word: in a plan the decision shows more than that.
type weighed struct {
	about    policy.Subject
	judge    *policy.Judge
	said     policy.Decision
	decision policy.Decision
}

// weigh judges a file by all that is known now.
func (t *tenant) weigh(ctx context.Context, ask door.ArtifactAsk) (w weighed, err error) {
	if w.about, err = t.known.subject(ask.Package, ledger.Origin{Upstream: ask.Upstream, Toolchain: ask.Toolchain}); err != nil {
		return w, err
	}
	if w.about.Approvals, err = t.known.answers(ctx, ask.Package); err != nil {
		return w, err
	}
	t.require(&w.about, ask.Package)
	w.judge = t.known.judge(w.about)
	w.said = w.judge.File(ask.Facts())
	w.decision = t.known.settle(planned(t.run.Plan, w.said))
	if t.run.Rehearsal && ask.File.Kind == policy.KindSdist && w.said.Effect != policy.Allow && w.decision.Shown() {
		w.decision = w.said
		w.decision.Effect, w.decision.Reason = policy.Deny, planning.Unbuilt
	}
	if w.decision.Shown() {
		w.decision, err = t.known.malwareInside(ask, w.decision)
	}
	if !t.run.Plan || !w.decision.Shown() {
		w.said = w.decision
	}
	return w, err
}

// decided answers what waits for nobody.
func (c *Controller) decided(ctx context.Context, t *tenant, ask door.ArtifactAsk, w weighed) (door.Answer, error) {
	d := w.decision
	if !d.Allowed() {
		if !ask.MayWalk && !ask.Walk {
			d = t.bounded(ask.Package, d)
		}
		_ = t.moveRelease(ask, w) // the refusal stands, whatever becomes of what rested on the release
		r, err := t.book.Refuse(ctx, blockedRecord(ask, d))
		return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
	}
	var r audit.Record
	var err error
	if ask.Serve {
		if r, err = t.book.Append(ctx, t.servedOrPlanned(ask, w.about, d)); err != nil {
			return door.Answer{}, err
		}
		c.earlier.Take(r)
	}
	t.shown.File(ask)
	if ask.Serve {
		t.served.Send(r, ask.Paths)
		t.book.Served(ask.Package)
	}
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, t.moveRelease(ask, w)
}

func checkArtifact(ask door.ArtifactAsk) error {
	switch {
	case ask.Package.Version == "" && ask.File.Kind != policy.KindMetadata || ask.Package.Version != ask.File.Version || !pkgref.IsCanonicalName(ask.Package.Ecosystem, ask.Package.Name):
		return fault.Invalid("a file is asked about with its release, not with %q and %q", excerpt.Of(ask.Package.String(), 200), excerpt.Of(ask.File.Version, 80))
	case ask.File.Name == "" || len(ask.File.Name) > 512:
		return fault.Invalid("a file of %s has the name %q, which no file can have", ask.Package, excerpt.Of(ask.File.Name, 80))
	case ask.Release != nil && (ask.File.Kind != policy.KindMetadata || ask.Release.Kind == policy.KindMetadata || ask.Release.Version != ask.Package.Version):
		return fault.Invalid("the file that %s describes is not one of %s", excerpt.Of(ask.File.Name, 80), ask.Package)
	case ask.Whole() && ask.File.Kind == policy.KindMetadata:
		return fault.Invalid("%s is metadata, which is not served as a file", excerpt.Of(ask.File.Name, 80))
	case ask.Outline && ask.Whole():
		return fault.Invalid("%s is asked for as what resolvers read, and as what is sent", excerpt.Of(ask.File.Name, 80))
	case ask.Walk && (ask.Whole() || ask.Sidecar || ask.MayWalk):
		return fault.Invalid("%s is read on the way to another package, and asked for as what is sent", excerpt.Of(ask.File.Name, 80))
	case ask.Serve && ask.Await:
		return fault.Invalid("%s is asked to be waited for and to be served at one time", excerpt.Of(ask.File.Name, 80))
	case len(ask.Digests) > maxDigests || slices.ContainsFunc(ask.Digests, func(d string) bool { return d == "" || len(d) > 256 }):
		return fault.Invalid("%s has %d digests, or an invalid one", excerpt.Of(ask.File.Name, 80), len(ask.Digests))
	case ask.Whole() && !hexDigest.MatchString(ask.SHA256):
		return fault.Invalid("%s can't be served without its sha256", excerpt.Of(ask.File.Name, 80))
	case ask.Whole() && ask.File.Digest != "" && ask.File.Digest != "sha256:"+ask.SHA256 && isSHA256(ask.File.Digest):
		return fault.New(fault.ErrForbidden, "%s is not the file that the index lists: its sha256 is another", excerpt.Of(ask.File.Name, 80))
	}
	return nil
}

func isSHA256(digest string) bool { return len(digest) == 71 && digest[:7] == "sha256:" }

func artifactRecord(ask door.ArtifactAsk, outcome audit.Outcome, d policy.Decision) audit.Record {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: outcome, File: ask.File.Name, SourceURL: excerpt.Of(ask.SourceURL, 2_048),
		SHA256: ask.SHA256, Size: ask.Size, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason, Approval: d.Approval,
	}
	records.SetRef(&r, ask.Package)
	return r
}

func blockedRecord(ask door.ArtifactAsk, d policy.Decision) audit.Record {
	r := artifactRecord(ask, audit.Blocked, d)
	if ask.File.Kind == policy.KindMetadata {
		r.Detail = map[string]string{records.DetailKind: string(policy.KindMetadata)}
	}
	records.Explain(&r, d)
	return r
}

func (t *tenant) servedRecord(ask door.ArtifactAsk, d policy.Decision) audit.Record {
	r := artifactRecord(ask, audit.Served, d)
	r.RequestedVersion, r.RequestedClaimed = t.requested(ask.Package, d)
	r.Detail = map[string]string{}
	for key, text := range map[string]string{
		records.DetailThrough: d.Through, records.DetailUpstreamDigest: upstreamDigest(ask),
		records.DetailBundled: strings.Join(ask.Bundled, ", "), records.DetailFindings: strings.Join(findings(ask), "; "),
		detailPart: ask.Part, records.DetailConsists: ask.Contents,
	} {
		if text != "" {
			r.Detail[key] = excerpt.Of(text, 8_192)
		}
	}
	if len(r.Detail) == 0 {
		r.Detail = nil
	}
	return r
}

// upstreamDigest is what the upstream or a witness says, if it is not the
// record's own sha256.
func upstreamDigest(ask door.ArtifactAsk) string {
	if d := ask.Facts().Digest; d != "sha256:"+ask.SHA256 {
		return d
	}
	return ""
}

// findings are the gateway's and what the digests give reason for.
func findings(ask door.ArtifactAsk) []string {
	all := slices.Clone(ask.Findings)
	switch digest := ask.Facts().Digest; {
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
		return excerpt.Of(d.Pinned, 512), false
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
		return excerpt.Of(specifier, 512), false
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
func (t *tenant) refuseUnknown(ctx context.Context, ask door.ArtifactAsk, cause error) (door.Answer, error) {
	d := unknownDecision()
	r := blockedRecord(ask, d)
	r.Outcome = audit.Failed
	r, err := t.book.Refuse(ctx, r)
	if err != nil {
		return door.Answer{}, errors.Join(cause, err)
	}
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, nil
}
