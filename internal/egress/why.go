package egress

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// maxWhy bounds the text of `cofferdam why`: a reply is one JSON frame.
const maxWhy = 60 << 10

// why answers with the run's last refusals, for people or as JSON.
func (s *stream) why(ctx context.Context, asJSON bool) {
	refusals, err := s.router.door.Refusals(ctx, s.sandbox, s.router.limits.Refusals)
	if err != nil {
		s.router.log.Error("refusals could not be read", "sandbox", s.sandbox, "error", err)
		s.reply(channel.Reply{Error: "the refusals of this run could not be read"})
		return
	}
	text, err := explain(refusals, asJSON)
	if err != nil {
		s.reply(channel.Reply{Error: "the refusals of this run could not be written"})
		return
	}
	s.reply(channel.Reply{OK: true, Text: text})
}

// explain writes refusals in their order; if they are too many, the alarms and
// the last.
func explain(refusals []admission.Refusal, asJSON bool) (string, error) {
	for {
		text, err := explainAll(refusals, asJSON)
		if err != nil || len(text) <= maxWhy || len(refusals) == 0 {
			return text, err
		}
		alarms := 0 // they come first, and go last
		for alarms < len(refusals)/2 && refusals[alarms].Alarm {
			alarms++
		}
		refusals = slices.Delete(slices.Clone(refusals), alarms, alarms+(len(refusals)-alarms+1)/2)
	}
}

func explainAll(refusals []admission.Refusal, asJSON bool) (string, error) {
	if asJSON {
		if refusals == nil {
			refusals = []admission.Refusal{}
		}
		b, err := json.MarshalIndent(refusals, "", "  ")
		return string(b) + "\n", err
	}
	if len(refusals) == 0 {
		return "Nothing was refused in this run.\n", nil
	}
	var b strings.Builder
	for _, r := range refusals {
		writeRefusal(&b, r)
	}
	return b.String(), nil
}

func writeRefusal(b *strings.Builder, r admission.Refusal) {
	subject := r.Name
	if r.Package.Name != "" {
		subject = r.Package.String()
	}
	if subject == "" {
		subject = r.What
	}
	if r.Alarm {
		b.WriteString("ALARM  ")
	}
	fmt.Fprintf(b, "%s  %s: %s", r.Time.UTC().Format("15:04:05Z"), oneLine(r.Outcome), oneLine(subject))
	if r.File != "" {
		fmt.Fprintf(b, " (%s)", oneLine(r.File))
	}
	if r.Count > 1 {
		fmt.Fprintf(b, ", %d times", r.Count)
	}
	fmt.Fprintf(b, "\n  why:     %s\n", oneLine(r.Reason))
	if r.Rule != "" {
		fmt.Fprintf(b, "  rule:    %s\n", oneLine(r.Rule))
	}
	if r.RequestID != "" {
		fmt.Fprintf(b, "  request: %s\n", oneLine(r.RequestID))
	}
	if r.Suggest != "" {
		b.WriteString("  a person can allow it by adding this to the policy, on the host:\n")
		for line := range strings.Lines(r.Suggest) {
			fmt.Fprintf(b, "    %s\n", oneLine(strings.TrimRight(line, "\r\n")))
		}
	}
}

// oneLine keeps what others wrote from drawing on a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '?'
		}
		return r
	}, s)
}
