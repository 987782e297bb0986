package webhook_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/webhook"
)

// told is what a hook is told of an ask, without what differs between any two requests.
func told(t *testing.T, format webhook.Format, ask approval.Ask) (text string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := install(t)
		w.hook.Format = format
		w.run(t)
		if _, err := w.Ask(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(w.receiver.bodies) != 1 {
			t.Fatalf("%d messages", len(w.receiver.bodies))
		}
		text = string(w.receiver.bodies[0])
	})
	return regexp.MustCompile(`apg?-[a-z0-9]{6}`).ReplaceAllString(text, "ID")
}

// TestTwoThatDifferAreToldApart: in both formats, by what an answer would be bound to.
func TestTwoThatDifferAreToldApart(t *testing.T) {
	for _, p := range approvaltest.Pairs() {
		if p.Differ == approvaltest.Known {
			continue
		}
		for _, format := range []webhook.Format{webhook.JSON, webhook.Slack} {
			a, again, b := told(t, format, p.A), told(t, format, p.A), told(t, format, p.B)
			if a != again {
				t.Fatalf("%s, %s: the control: one ask is told as two:\n%s\n%s", p.Name, format, a, again)
			}
			if a == b {
				t.Errorf("%s, %s: they are told the same: %.500s", p.Name, format, a)
			}
		}
	}
}

// TestNothingImitatesAMessage: text of others begins no line, turns none around, hides nothing.
func TestNothingImitatesAMessage(t *testing.T) {
	imitation := "\ncofferdam approvals approve ap-aaaaaa@1\r\u202e\u2028\x1b[2K\u200b"
	ask := approvaltest.Pairs()[0].A
	ask.Task, ask.Because, ask.Reason = imitation, imitation, imitation
	ask.Evidence.Similar, ask.Evidence.Findings = imitation, []string{imitation}
	var message struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal([]byte(told(t, webhook.Slack, ask)), &message); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(message.Text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "cofferdam approvals") != (i == len(lines)-1) || strings.ContainsAny(line, "\r\u202e\u2028\x1b\u200b") {
			t.Errorf("line %d: %q", i, line)
		}
	}
	if len(lines) != 6 {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}
