package admission

import (
	"context"
	"maps"
	"regexp"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// hexDigest is what ArtifactAsk.SHA256 must be.
var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`) // a constant

// servedFile is what the ledger keeps of a `served` record.
type servedFile struct {
	record  audit.Record
	aborted bool
}

// Artifact implements Door.
func (c *Controller) Artifact(ctx context.Context, ask ArtifactAsk) (Answer, error) {
	t, err := c.admit(ctx, ask.Sandbox)
	if err != nil {
		return Answer{}, err
	}
	if err := checkArtifact(ask); err != nil {
		return Answer{}, err
	}
	d := settle(t.run.Policy.Decide(c.config.Clock(), policy.Input{
		Subject: policy.Subject{Package: ask.Package, Edges: t.edgesTo(ask.Package).edges}, FileFacts: ask.File.facts(),
	}))
	if !d.Allowed() {
		r, err := c.refuse(ctx, t, blockedRecord(ask, d))
		return Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
	}
	var r audit.Record
	if ask.Serve {
		if r, err = c.record(ctx, t, t.servedRecord(ask, d)); err != nil {
			return Answer{}, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.admitted(ask.Package, d.Through, c.config.Limits.Records)
	if ask.Serve {
		t.serve(r)
	}
	return Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, nil
}

func checkArtifact(ask ArtifactAsk) error {
	switch {
	case ask.Package.Version == "" || ask.Package.Version != ask.File.Version || !pkgref.IsCanonicalName(ask.Package.Ecosystem, ask.Package.Name):
		return fault.Invalid("a file is asked about with its release, not with %q and %q", clip(ask.Package.String(), 200), clip(ask.File.Version, 80))
	case ask.File.Name == "" || len(ask.File.Name) > 512:
		return fault.Invalid("a file of %s has the name %q, which no file can have", ask.Package, clip(ask.File.Name, 80))
	case ask.Serve && !hexDigest.MatchString(ask.SHA256):
		return fault.Invalid("%s can't be served without its sha256", clip(ask.File.Name, 80))
	case ask.Serve && ask.File.Digest != "" && ask.File.Digest != "sha256:"+ask.SHA256 && isSHA256(ask.File.Digest):
		return fault.New(fault.ErrForbidden, "%s is not the file that the index lists: its sha256 is another", clip(ask.File.Name, 80))
	}
	return nil
}

func isSHA256(digest string) bool { return len(digest) == 71 && digest[:7] == "sha256:" }

// admitted remembers that a release may be had, and through what; t.mu is held.
func (t *tenant) admitted(p pkgref.Ref, through string, limit int) {
	if _, known := t.through[p]; known || len(t.through) < limit {
		t.through[p] = through
	}
}

// serve takes a `served` record into the ledger; t.mu is held.
func (t *tenant) serve(r audit.Record) {
	f := &servedFile{record: r}
	t.served[r.Seq] = f
	t.ledger[releaseOf(refOf(r))] = f
	t.hideWithheld(refOf(r))
}

func artifactRecord(ask ArtifactAsk, outcome audit.Outcome, d policy.Decision) audit.Record {
	r := audit.Record{
		Kind: audit.KindPackage, Outcome: outcome, File: ask.File.Name, SourceURL: clip(ask.SourceURL, 2_048),
		SHA256: ask.SHA256, Size: ask.Size, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason,
	}
	setRef(&r, ask.Package)
	return r
}

func blockedRecord(ask ArtifactAsk, d policy.Decision) audit.Record {
	r := artifactRecord(ask, audit.Blocked, d)
	explain(&r, d)
	return r
}

func (t *tenant) servedRecord(ask ArtifactAsk, d policy.Decision) audit.Record {
	r := artifactRecord(ask, audit.Served, d)
	r.RequestedVersion, r.RequestedClaimed = t.requested(ask.Package, d)
	if d.Through != "" {
		r.Detail = map[string]string{detailThrough: d.Through}
	}
	return r
}

// requested says in which version a release was wanted: by the specifier of the
// verified requirement through which it was admitted, else of any that it
// satisfies, else by what a command said, which is a claim.
func (t *tenant) requested(p pkgref.Ref, d policy.Decision) (specifier string, claimed bool) {
	for _, e := range d.WantedBy {
		if e.Specifier != "" && (specifier == "" || d.Through != "" && e.Through == d.Through) {
			specifier = e.Specifier
			if e.Through == d.Through {
				break
			}
		}
	}
	if specifier != "" {
		return clip(specifier, 512), false
	}
	project := p
	project.Version = ""
	t.mu.Lock()
	claim := t.claims[project]
	t.mu.Unlock()
	if !claimMeets(claim, p.Version) {
		return "", false // the command wanted another release of it
	}
	return claim, true
}

// Aborted implements Door.
func (c *Controller) Aborted(ctx context.Context, sandbox string, seq uint64, sent int64) error {
	t, err := c.tenant(sandbox)
	if err != nil {
		return err
	}
	t.mu.Lock()
	f := t.served[seq]
	if f == nil || f.aborted {
		t.mu.Unlock()
		return fault.New(fault.ErrNotFound, "record %d is no file that was served to this sandbox and is still under way", seq)
	}
	f.aborted = true
	t.mu.Unlock()
	r := f.record
	r.Outcome = audit.Aborted
	r.Detail = maps.Clone(r.Detail)
	if r.Detail == nil {
		r.Detail = map[string]string{}
	}
	r.Detail[detailServed], r.Detail["sent_bytes"] = strconv.FormatUint(seq, 10), strconv.FormatInt(sent, 10)
	if _, err := c.record(ctx, t, r); err != nil {
		t.mu.Lock()
		f.aborted = false
		t.mu.Unlock()
		return err
	}
	return nil
}
