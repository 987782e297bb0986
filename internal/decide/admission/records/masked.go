package records

import (
	"context"
	"maps"
	"regexp"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// maskedLog is an audit log that has no secrets in the text which others wrote.
type maskedLog struct {
	audit.Log
	masker redact.Masker
}

// Masked masks secrets of known forms in the free text of what is appended to a log, however
// they are escaped or encoded there: commands, reasons, tasks, names of files and addresses,
// details. Code that cuts such a text before uses redact.Cut. No policy is asked: a log
// can't forget. A value that is found there is no finding of its own.
func Masked(log audit.Log, set *dlp.Set) audit.Log { return maskedLog{log, redact.New(set)} }

// Append implements audit.Log.
func (l maskedLog) Append(ctx context.Context, r audit.Record) (audit.Record, error) {
	for _, text := range []*string{&r.Reason, &r.Task, &r.File, &r.SourceURL, &r.RequestedVersion, &r.InstalledVersion, &r.Package, &r.Rule} {
		*text = l.masker.Text(*text)
	}
	for i, arg := range r.Command {
		if masked := l.masker.Text(arg); masked != arg {
			r.Command = slices.Clone(r.Command) // it is the caller's
			r.Command[i] = masked
		}
	}
	for i, of := range r.Withheld {
		masked := of
		for _, text := range []*string{&masked.Reason, &masked.From, &masked.To, &masked.Rule} {
			*text = l.masker.Text(*text)
		}
		if masked != of {
			r.Withheld = slices.Clone(r.Withheld)
			r.Withheld[i] = masked
		}
	}
	var detail map[string]string
	for key, text := range r.Detail {
		masked := l.maskDetail(text)
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

// digestText is a digest, which is nothing that others wrote.
var digestText = regexp.MustCompile(`^(sha(256|512):)?([0-9a-f]{32}){1,4}$`)

func (l maskedLog) maskDetail(text string) string {
	if digestText.MatchString(text) {
		return text
	}
	return l.masker.Text(text)
}
