package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/alarms"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// EventAlarm is the event of an alarm in the log; it is about no request.
const EventAlarm approval.EventName = "alarm"

// AlarmBody is an alarm in the format JSON.
type AlarmBody struct {
	Number uint64             `json:"number"` // as Body's: the record's number plus one
	At     time.Time          `json:"at"`
	Event  approval.EventName `json:"event"` // EventAlarm
	// Owners are whose run it was, as Body's.
	Owners []string `json:"owners,omitempty"`
	Alarm  Alarm    `json:"alarm"`
}

// Alarm is a record of the log, as far as a person needs it to see whether to look:
// `cofferdam audit query --marked alarm` has the rest.
type Alarm struct {
	Record  uint64  `json:"record"` // its number in the log
	Kind    string  `json:"kind"`
	Outcome string  `json:"outcome"`
	Run     string  `json:"run,omitempty"`
	Sandbox string  `json:"sandbox,omitempty"`
	Package Package `json:"package,omitzero"`
	File    string  `json:"file,omitempty"`
	Name    string  `json:"name,omitempty"` // of a host
	Rule    string  `json:"rule,omitempty"`
	Reason  string  `json:"reason"`
	Count   int     `json:"count,omitempty"` // how many the record stands for; 0: 1
}

// AlarmSource yields the log's alarms, see alarms.Watch.
type AlarmSource func(ctx context.Context, from uint64) iter.Seq2[alarms.Step, error]

// alarmsOf is the name of a hook's second cursor: how far it was told of the log's alarms.
// The two are told beside each other, each in order.
func (h Hook) alarmsOf() string { return h.hookName() + " alarms" }

// serveAlarms tells a hook of alarms for as long as it lives.
func (s *Sender) serveAlarms(ctx context.Context, h Hook) {
	log := s.cfg.Logger.With("webhook", h.hookName())
	last := s.cfg.FirstAlarm // no cursor of an earlier daemon is past it
	for pause := firstPause; ctx.Err() == nil; pause = longer(pause) {
		if err := s.followAlarms(ctx, h, &last, log); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "the alarms of the log could not be read for a webhook", "err", err)
		}
		waitPause(ctx, pause)
	}
}

// followAlarms delivers from where the hook stands, which is not past last. A hook that is new
// begins with this daemon's first record.
func (s *Sender) followAlarms(ctx context.Context, h Hook, last *uint64, log *slog.Logger) error {
	next, err := s.findPosition(ctx, h.alarmsOf(), s.cfg.FirstAlarm, *last, log)
	if err != nil {
		return err
	}
	*last = math.MaxUint64 // it moves on from here by what is in the log
	for step, err := range s.cfg.Alarms(ctx, next) {
		if err != nil {
			return err
		}
		if step.Alarm != nil {
			s.tellHook(ctx, h, alarmMessage(h.Format, *step.Alarm), log)
		}
		if ctx.Err() != nil {
			return nil // not done with it
		}
		if err := s.cfg.Cursors.SetCursor(ctx, h.alarmsOf(), step.Next); err != nil {
			return err
		}
	}
	return nil
}

// wantsAlarms tells whether a hook is told of alarms.
func (h Hook) wantsAlarms() bool { return h.Events == nil || slices.Contains(h.Events, EventAlarm) }

func alarmMessage(f Format, r audit.Record) hookMessage {
	return hookMessage{number: r.Seq + 1, at: r.Time, name: EventAlarm, body: func() ([]byte, error) {
		if f == Slack {
			return json.Marshal(slackMessage{Text: alarmText(r)})
		}
		return json.Marshal(AlarmBody{Number: r.Seq + 1, At: r.Time, Event: EventAlarm, Owners: ownersOf(r), Alarm: viewAlarm(r)})
	}}
}

// ownersOf is whose run a record is of; nil: it is of none.
func ownersOf(r audit.Record) []string {
	run := r.Run
	if runs := strings.Fields(r.Detail[audit.DetailRuns]); run == "" && len(runs) > 0 {
		run = runs[0] // all of one owner's
	}
	if run == "" {
		return nil
	}
	return []string{approval.Asker{Run: run, User: r.User, Token: r.OwnerToken()}.Owner()}
}

func viewAlarm(r audit.Record) Alarm {
	return Alarm{
		Record: r.Seq, Kind: string(r.Kind), Outcome: string(r.Outcome), Run: r.Run, Sandbox: r.Sandbox,
		Package: packageOf(pkgref.Ref{Ecosystem: pkgref.Ecosystem(r.Ecosystem), Name: r.Package, Version: r.InstalledVersion}),
		File:    r.File, Name: r.Detail["name"], Rule: r.Rule, Reason: r.Reason, Count: r.Count,
	}
}

// alarmText is one message, as slackText's.
func alarmText(r audit.Record) string {
	about := strings.TrimSpace(r.Ecosystem + " " + r.Package + " " + r.InstalledVersion)
	if about == "" {
		about = r.Detail["name"]
	}
	if about != "" {
		about += ": "
	}
	lines := []string{slackEscape(fmt.Sprintf("ALARM: %s%s", about, text.Seal(r.Reason, maxText)))}
	if r.Run != "" {
		lines = append(lines, slackEscape("Run: "+r.Run))
	}
	lines = append(lines, "cofferdam audit query --marked alarm --after "+strconv.FormatInt(int64(r.Seq)-1, 10)+" --limit 1") // #nosec G115 -- the number of a record
	return strings.Join(lines, "\n")
}
