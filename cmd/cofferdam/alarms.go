package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// Bounds of what is told of alarms, and of how long a command's end waits for it.
const (
	mostAlarmLines = 5
	mostAlarmText  = 500
	alarmTime      = 5 * time.Second
)

// alarmNews tells the client of a sandbox of its alarms: of those that come after it is there,
// and of each once. Safe for concurrent use.
type alarmNews struct {
	client  *client.Client
	sandbox string

	// turn holds one value; who has taken it may use what follows, and asks meanwhile, so that no
	// alarm is told twice. A caller that waits for it gives up as for an answer.
	turn    chan struct{}
	after   string // "": it can't be known
	unknown error  // why; nil: the daemon is an older one
}

// watchAlarms notes where the alarms begin that are news.
func watchAlarms(ctx context.Context, c *client.Client, sandbox string) *alarmNews {
	n := &alarmNews{client: c, sandbox: sandbox, turn: make(chan struct{}, 1)}
	n.turn <- struct{}{}
	ctx, cancel := context.WithTimeout(ctx, alarmTime)
	defer cancel()
	now, err := client.Alarms(ctx, c, client.AlarmFilter{Sandbox: sandbox})
	n.after = now.Next
	if client.StatusOf(err) != http.StatusNotFound {
		n.unknown = err
	}
	return n
}

// listNewAlarms lists the alarms that came since the last ones, in printable lines; none if there are none.
// It is one request, and one that is not answered soon is given up with a word about it.
func (n *alarmNews) listNewAlarms(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), alarmTime)
	defer cancel()
	select {
	case <-n.turn:
		defer func() { n.turn <- struct{}{} }()
	case <-ctx.Done():
		return unknownAlarms(ctx.Err())
	}
	if n.after == "" {
		return unknownAlarms(n.unknown)
	}
	got, err := askAgain(ctx, n.client, func(c *client.Client) (api.Alarms, error) {
		return client.Alarms(ctx, c, client.AlarmFilter{Sandbox: n.sandbox, After: n.after})
	})
	if client.StatusOf(err) == http.StatusNotFound {
		return nil // the daemon is an older one now, or knows nothing of the sandbox any more
	}
	if err != nil {
		return unknownAlarms(err)
	}
	n.after = got.Next
	var lines []string
	for _, a := range got.Alarms[:min(len(got.Alarms), mostAlarmLines)] {
		lines = append(lines, alarmLine(a))
	}
	if more := got.Total - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d ALARMS more, %d in all: cofferdam audit list --run %s --alarms", more, got.Total, ui.Printable(got.Run)))
	}
	return lines
}

// unknownAlarms says that alarms could not be asked for, if there is a reason.
func unknownAlarms(err error) []string {
	if err == nil {
		return nil
	}
	return []string{"it is not known whether there was an alarm, since that could not be asked: " + ui.Printable(err.Error())}
}

// alarmLine is an alarm in one line: what must not be used, and why.
func alarmLine(a api.Alarm) string {
	what := a.Name
	if a.Package.Name != "" {
		what = a.Package.String()
	}
	if what != "" {
		what += ": "
	}
	return "ALARM: " + ui.Printable(text.Seal(what, mostAlarmText)) + ui.Printable(text.Seal(a.Reason, mostAlarmText)) + " (do not use it)"
}
