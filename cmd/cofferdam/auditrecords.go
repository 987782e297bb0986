package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

func outcomes() []string { return texts(audit.Outcomes()...) }

func listRecordKinds() []string { return texts(audit.Kinds()...) }

func recordRow(r audit.Record) []string {
	return []string{r.Time.Local().Format(time.DateTime), r.Run, string(r.Outcome), recordWhat(r), recordWhy(r)}
}

func recordWhat(r audit.Record) string {
	switch {
	case r.Kind == audit.KindFile:
		return text.Shorten(string(r.Kind)+" "+r.FileText(), 80)
	case r.Package != "":
		what := r.Ecosystem + " " + r.Package
		if r.InstalledVersion != "" {
			what += " " + r.InstalledVersion
		}
		return what
	case len(r.Command) > 0:
		return text.Shorten("$ "+strings.Join(r.Command, " "), 60)
	case r.Detail["name"] != "":
		return string(r.Kind) + " " + r.Detail["name"]
	case r.Detail["tool"] != "":
		return string(r.Kind) + " " + r.Detail["tool"]
	case r.Sandbox != "":
		return string(r.Kind) + " " + r.Sandbox
	}
	return string(r.Kind)
}

func rangeText(w audit.WithheldRange) string {
	if w.From == w.To {
		return w.From
	}
	return w.From + " .. " + w.To
}

// withheldText counts files where an older version's other files were let in.
func withheldText(w audit.WithheldRange) string {
	n, unit := w.Versions, "version"
	if n == 0 {
		n, unit = w.Files, "file"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%s: %s (%d %s) [%s];", rangeText(w), w.Reason, n, unit, w.Rule)
}

// missed leaves out the files of versions that were let in by other files,
// unless there is nothing else to tell.
func missed(ranges []audit.WithheldRange) []audit.WithheldRange {
	whole := slices.DeleteFunc(slices.Clone(ranges), func(w audit.WithheldRange) bool { return w.Versions == 0 })
	if len(whole) == 0 {
		return ranges
	}
	return whole
}

func recordWhy(r audit.Record) string {
	var parts []string
	if r.Reason != "" && len(r.Withheld) == 0 { // the ranges say it
		parts = append(parts, r.Reason)
	}
	if r.Outcome == audit.Asked && r.SourceURL != "" {
		parts = append(parts, r.SourceURL)
	}
	if r.Outcome == audit.Shown {
		parts = append(parts, cmp.Or(r.File, "the page"), cmp.Or(r.SHA256, r.Detail["index_digest"]))
	}
	for _, w := range missed(r.Withheld) {
		parts = append(parts, withheldText(w))
	}
	if r.Rule != "" && len(r.Withheld) == 0 {
		parts = append(parts, "["+r.Rule+"]")
	}
	if r.Kind == audit.KindFile && r.Outcome != audit.Started && r.Detail[audit.DetailDirection] != "" {
		parts = append(parts, fmt.Sprintf("%d bytes %s", r.Size, r.Detail[audit.DetailDirection]))
	}
	if r.Exit != nil {
		parts = append(parts, "exit "+strconv.Itoa(*r.Exit))
	}
	if t := timesText(r.Count); t != "" {
		parts = append(parts, t)
	}
	return strings.TrimSuffix(strings.Join(parts, " "), ";")
}

// withClose is an error, or what went wrong at the end.
func withClose(err, closing error) error {
	if err != nil {
		return err
	}
	return closing
}

// parseTime reads a time: so long ago, a date, or a time of RFC 3339; "" is none.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 100_000 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if ago, err := parseSpan(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if at, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return at, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return time.Time{}, fault.Invalid("--%s %q is not a time; write 7d, 12h, 2026-11-01 or 2026-11-01T08:00:00Z", flag, text)
}

func timesText(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("(%d times)", n)
}
