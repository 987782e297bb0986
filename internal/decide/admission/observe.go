package admission

import (
	"context"
	"maps"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// A policy that only observes (policy.Observes) lets through what its own choices
// refuse. A refusal that it would have given is on record before the thing happens, once like a refusal,
// beside the record of what happens then.

// detailMode is of a started record: modeObserve, its policy only observes.
const (
	detailMode  = "mode"
	modeObserve = "observe"
)

// observer puts on record what a sandbox's policy only observes.
type observer struct{ t *tenant }

// recordFile puts on record that a file which is about to be served would have been refused.
func (o observer) recordFile(ctx context.Context, q fileQuestion, d policy.Decision) error {
	if d.Would == "" || o.t.shown != nil { // a plan has the verdict in its own records
		return nil
	}
	r := artifactRecord(q, records.ObservedOutcome(d), d)
	records.Explain(&r, d)
	_, err := o.t.book.Refuse(ctx, r)
	return err
}

// recordHost puts on record that a name which is about to be let through would have been
// refused. Port 0 is a DNS question. How many names there can be is bounded before: see
// unlisted.
func (o observer) recordHost(ctx context.Context, d policy.Decision, name string, port int) error {
	if d.Would == "" {
		return nil
	}
	_, err := o.t.book.Refuse(ctx, hostRecord(d, records.ObservedOutcome(d), name, port))
	return err
}

// asLetThrough returns the record of what is let through by d: where that is for want of anybody
// who enforces a refusal, no list and no default cleared it, and its record says so.
func asLetThrough(r audit.Record, d policy.Decision) audit.Record {
	if d.Would == "" {
		return r
	}
	detail := maps.Clone(r.Detail)
	if detail == nil {
		detail = map[string]string{}
	}
	detail[records.DetailWould] = string(d.Would)
	r.Detail, r.ResolvedBy, r.Rule = detail, string(policy.ByObserving), policy.RuleMode
	return r
}

// verdictText is a decision's effect as a plan's records have it.
func verdictText(d policy.Decision) string {
	if d.Would != "" {
		return string(records.ObservedOutcome(d))
	}
	return string(d.Effect)
}
