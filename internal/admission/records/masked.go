package records

import (
	"context"
	"maps"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/scan"
)

// maskedLog is an audit log that has no secrets in the text which others wrote.
type maskedLog struct {
	audit.Log
	set *scan.Set
}

// Masked masks secrets of known forms in the free text of what is appended to a log:
// commands, reasons, tasks, names of files and addresses, details. No policy is asked: a log
// can't forget. What is found there is no finding of its own.
func Masked(log audit.Log, set *scan.Set) audit.Log { return maskedLog{log, set} }

// Append implements audit.Log.
func (l maskedLog) Append(ctx context.Context, r audit.Record) (audit.Record, error) {
	for _, text := range []*string{&r.Reason, &r.Task, &r.File, &r.SourceURL, &r.RequestedVersion, &r.InstalledVersion, &r.Package, &r.Rule} {
		*text = l.mask(*text)
	}
	for i, arg := range r.Command {
		if masked := l.mask(arg); masked != arg {
			r.Command = slices.Clone(r.Command) // it is the caller's
			r.Command[i] = masked
		}
	}
	for i, of := range r.Withheld {
		masked := of
		for _, text := range []*string{&masked.Reason, &masked.From, &masked.To, &masked.Rule} {
			*text = l.mask(*text)
		}
		if masked != of {
			r.Withheld = slices.Clone(r.Withheld)
			r.Withheld[i] = masked
		}
	}
	var detail map[string]string
	for key, text := range r.Detail {
		masked := l.mask(text)
		if masked == text {
			continue
		}
		if detail == nil {
			detail = maps.Clone(r.Detail)
		}
		detail[key] = masked
	}
	if detail != nil {
		r.Detail = detail
	}
	return l.Log.Append(ctx, r)
}

func (l maskedLog) mask(text string) string {
	masked, _ := l.set.Text(text, scan.Plan{Secrets: scan.Redact})
	return masked
}
