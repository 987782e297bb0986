package admission

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// nameUnseen stands in the place of a rule's name where a body could not be looked into.
const nameUnseen = "not-scanned"

// Scans implements Door.
func (c *Findings) Scans(ctx context.Context, ask door.ScansAsk) (door.ScansAnswer, error) {
	t, err := c.tenants.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.ScansAnswer{}, err
	}
	placeholders := slices.Sorted(maps.Values(t.run.Placeholders))
	return door.ScansAnswer{Plan: policy.ScanningOf(t.policy()).Requests, Placeholders: placeholders}, nil
}

// FoundInRequest implements Door. The host and the place in the request are where something
// was found; which request it was first is a detail.
func (c *Findings) FoundInRequest(ctx context.Context, ask door.FoundAsk) (door.FoundAnswer, error) {
	t, err := c.tenants.getTenant(ask.Sandbox)
	if err != nil {
		return door.FoundAnswer{}, err
	}
	where := fmt.Sprintf("%s:%d %s", redact.Cut(ask.Name, 253), ask.Port, redact.Cut(ask.Where, 128))
	var all []audit.Record
	for _, f := range ask.Findings[:min(len(ask.Findings), door.MaxFindings)] {
		one, err := findingOf(f)
		if err != nil {
			return door.FoundAnswer{}, err
		}
		all = append(all, c.finding(t, PlaceRequests, where, one))
	}
	if ask.Unseen != "" {
		all = append(all, unseenRecord(t, where, ask))
	}
	var answer door.FoundAnswer
	for _, r := range all {
		r.Detail[records.DetailRequest] = redact.Cut(strings.TrimSpace(ask.Request.Method+" "+ask.Request.Path), 256)
		r, err := c.takeFinding(ctx, t, r)
		if err != nil {
			return door.FoundAnswer{}, err
		}
		answer = door.FoundAnswer{RequestID: r.RequestID, Enough: r.Outcome == audit.Exceeded}
	}
	return answer, nil
}

// findingOf is a finding as it came over the door.
func findingOf(f door.Finding) (dlp.Finding, error) {
	if len(f.Sum) != sha256.Size || f.Outcome < dlp.Report || f.Outcome > dlp.Block || f.Length < 0 || f.At < 0 {
		return dlp.Finding{}, fault.Invalid("a finding is told of that is none")
	}
	return dlp.Finding{
		Rule: redact.Cut(f.Rule, 64), Class: f.Class, Outcome: f.Outcome, At: f.At, Length: f.Length, Sum: [sha256.Size]byte(f.Sum), Late: f.Late,
	}, nil
}

// unseenRecord is of a body that nobody could look into.
func unseenRecord(t *tenant, where string, ask door.FoundAsk) audit.Record {
	r := audit.Record{
		Kind: audit.KindFinding, Outcome: audit.Found, User: t.run.User, Rule: door.RuleScanning,
		Reason: "what a request to " + where + " carries was not scanned: " + redact.Cut(ask.Unseen, 200) + ": it went out",
		Detail: map[string]string{
			records.DetailWhat: "finding", records.DetailName: nameUnseen, records.DetailWhere: where, records.DetailAction: dlp.Report.String(),
		},
	}
	if ask.Refused {
		r.Outcome, r.Detail[records.DetailAction] = audit.Blocked, dlp.Block.String()
		r.Reason = strings.TrimSuffix(r.Reason, "it went out") + "it was not sent"
	}
	return r
}
