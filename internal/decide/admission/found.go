package admission

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// Place is a way by which something leaves a sandbox.
type Place string

// The places; each is a key of the policy's secret_scanning.
const (
	PlaceOutput   Place = "output"
	PlaceFiles    Place = "files"
	PlaceRequests Place = "requests"
)

// The rules of findings.
const (
	ruleScanning      = "credentials.secret_scanning."
	ruleFindingsQuota = "quota.findings"
)

// Findings puts on record what was found in what leaves sandboxes. Safe for concurrent use.
type Findings struct {
	tenants *tenants
	key     []byte // of the values' digests
}

// Scanning is what becomes of what is found in a sandbox's ways out.
func (c *Findings) Scanning(sandbox string) (policy.Scanning, error) {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return policy.Scanning{}, err
	}
	return policy.ScanningOf(t.policy()), nil
}

// Found records that a value was found, durable when it returns: once for each value, rule
// and way, however often it is looked at again. where is the command, the file, or the host and the place in the request. The record
// has no value, but what tells equal ones from others to who has this installation's key.
func (c *Findings) Found(ctx context.Context, sandbox string, place Place, where string, f dlp.Finding) error {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	_, err = c.takeFinding(ctx, t, c.finding(t, place, where, f))
	return err
}

// finding is the record that a value was found.
func (c *Findings) finding(t *tenant, place Place, where string, f dlp.Finding) audit.Record {
	outcome := audit.Found
	if f.Outcome == dlp.Block {
		outcome = audit.Blocked
	}
	r := audit.Record{
		Kind: audit.KindFinding, Outcome: outcome, User: t.run.User, Rule: ruleScanning + string(place), Reason: foundSentence(place, where, f),
		Detail: map[string]string{
			records.DetailWhat: "finding", records.DetailName: f.Rule, records.DetailWhere: redact.Cut(where, 1_024), records.DetailAction: f.Outcome.String(),
			records.DetailAt: strconv.FormatInt(f.At, 10), records.DetailLength: strconv.Itoa(f.Length), records.DetailDigest: c.keyedDigest(f.Sum),
		},
	}
	if f.Late && f.Outcome > dlp.Report {
		r.Detail[records.DetailLate] = "true"
	}
	onlyObserved(t, place, f, &r)
	return r
}

// onlyObserved says of a finding what a policy that only observes would have done with it.
func onlyObserved(t *tenant, place Place, f dlp.Finding, r *audit.Record) {
	meant := policy.ScanningMeant(t.policy())
	would := map[Place]dlp.Plan{PlaceOutput: meant.Output, PlaceFiles: meant.Files, PlaceRequests: meant.Requests}[place].Of(f.Class)
	if would <= f.Outcome || f.Outcome != dlp.Report {
		return
	}
	r.Detail[records.DetailAction] = "would_" + would.String()
	r.Detail[records.DetailWould] = would.String()
	r.Reason += "; the policy would " + would.String() + " it, and only observes (mode: observe)"
}

// takeFinding records a finding, unless there are too many.
func (c *Findings) takeFinding(ctx context.Context, t *tenant, r audit.Record) (audit.Record, error) {
	if !t.book.ReserveFinding(r) {
		r = audit.Record{
			Kind: audit.KindFinding, Outcome: audit.Exceeded, User: t.run.User, Rule: ruleFindingsQuota,
			Reason: "more secrets and personal data were found than are recorded one by one",
		}
	}
	return t.book.Refuse(ctx, r)
}

func foundSentence(place Place, where string, f dlp.Finding) string {
	what, ways := "what looks like a secret", map[Place]string{PlaceOutput: "the output of the command ", PlaceFiles: "the file ", PlaceRequests: "a request to "}
	if f.Class == dlp.Personal {
		what = "what looks like personal data"
	}
	became := map[dlp.Outcome]string{dlp.Report: "it went out", dlp.Redact: "it was redacted", dlp.Block: "it was kept back, and what came after it"}[f.Outcome]
	if f.Late && f.Outcome > dlp.Report {
		became += "; a part of it had gone before the rest came"
	}
	return fmt.Sprintf("%s (%s) was found in %s%s: %s", what, f.Rule, ways[place], redact.Cut(where, 200), became)
}

// keyedDigest is what stands for a value on record: half of a keyed digest is enough to tell two
// from each other.
func (c *Findings) keyedDigest(sum [sha256.Size]byte) string {
	h := hmac.New(sha256.New, c.key)
	h.Write(sum[:]) // a hash never fails
	return hex.EncodeToString(h.Sum(nil)[:16])
}
