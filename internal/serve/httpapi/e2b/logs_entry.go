package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

const (
	maxLogText   = 4 << 10 // bytes of a command line in a log
	logOfProcess = "process"
)

// The levels of entries.
const (
	levelInfo = "info"
	levelWarn = "warn"
)

// The fields of an entry that tell which event it is of, and what was written.
const (
	fieldEvent = "event_type"
	fieldData  = "data"
)

// logEntry is one thing that happened.
type logEntry struct {
	Timestamp stamp             `json:"timestamp"`
	Message   string            `json:"message"`
	Level     string            `json:"level"`
	Fields    map[string]string `json:"fields"`

	at time.Time
}

// saysText tells whether an entry has a text.
func (e logEntry) saysText(text string) bool {
	return strings.Contains(e.Message, text) || strings.Contains(e.Fields["cmd"], text) || strings.Contains(e.Fields[fieldData], text)
}

// entryCost is what an entry takes beside its text: its map, its times, and the quotes around.
const entryCost = 768

// sizeInJSON is about how much room it takes, as JSON has it: a guest chooses what is escaped.
func (e logEntry) sizeInJSON() int {
	size := entryCost + quotedSize(e.Message)
	for name, value := range e.Fields {
		size += len(name) + quotedSize(value)
	}
	return size
}

// quotedSize is how long a text is as JSON has it.
func quotedSize(text string) int {
	size := len(text)
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ' || c == '<' || c == '>' || c == '&':
			size += len(`\u0000`) - 1
		case c == '"' || c == '\\':
			size++
		}
	}
	return size
}

// logLine is the same for clients of the first version, who decode the line once more.
type logLine struct {
	Timestamp stamp  `json:"timestamp"`
	Line      string `json:"line"`
}

func (e logEntry) makeLine() (logLine, error) {
	object := maps.Clone(e.Fields)
	object["message"], object["level"] = e.Message, e.Level
	text, err := json.Marshal(object)
	return logLine{Timestamp: e.Timestamp, Line: string(text)}, err
}

// story makes the entries of one command.
type story struct {
	command keeper.Command
	shared  map[string]string // fields of each
	has     func(logEntry) bool
	want    logQuery
	all     []logEntry // that are wanted: no more than an answer has, and twice that while they come
}

func (s *story) addEvent(at time.Time, level, event, message string, fields map[string]string) {
	e := logEntry{Timestamp: stamp(at), at: at, Level: level, Message: message, Fields: maps.Clone(s.shared)}
	e.Fields[fieldEvent] = event
	maps.Copy(e.Fields, fields)
	switch {
	case !s.has(e) || !s.want.backward && len(s.all) >= s.want.limit: // those before it are older
		return
	case s.want.backward && len(s.all) >= 2*s.want.limit:
		s.all = slices.Delete(s.all, 0, s.want.limit)
	}
	s.all = append(s.all, e)
}

// entriesOf tells of a command: its beginning, what is kept of its output, and, if it
// has ended, its end. Text for a terminal is not told: there it is mixed with what
// was typed, passwords too. Of those that has lets through it has as many as want has.
func (c *Control) entriesOf(ctx context.Context, info sandbox.Info, k keeper.Command, has func(logEntry) bool, want logQuery) ([]logEntry, error) {
	out, err := c.cfg.Sandboxes.Written(ctx, info.ID, k.ID)
	if err != nil && !errors.Is(err, fault.ErrNotFound) && !errors.Is(err, fault.ErrUnavailable) { // forgotten meanwhile; or its keeper is of an older release
		return nil, err
	}
	if out.User == "" {
		out.User = runsAs(info.Account)
	}
	s := &story{command: k, has: has, want: want, shared: map[string]string{"logger": logOfProcess, "user": out.User}}
	name := "Process"
	if k.PID != 0 {
		s.shared["pid"] = strconv.Itoa(k.PID)
		name += " with pid " + s.shared["pid"]
	}
	argv := map[string]string{"cmd": text.Shorten(strings.Join(k.Argv, " "), maxLogText)}
	s.addEvent(k.Started, levelInfo, "process_start", name+" started", argv)
	if !k.Terminal {
		for _, p := range out.Passages {
			s.addOutput(p.At, "stdout", p.Stdout)
			s.addOutput(p.At, "stderr", p.Stderr)
		}
	}
	if k.Exit != nil {
		s.addEnd(name, argv)
	}
	return s.all, nil
}

func (s *story) addOutput(at time.Time, stream string, data []byte) {
	if len(data) > 0 {
		s.addEvent(at, levelInfo, stream, "Streaming process event", map[string]string{fieldData: strings.ToValidUTF8(string(data), "\uFFFD")})
	}
}

func (s *story) addEnd(name string, argv map[string]string) {
	exit := *s.command.Exit
	how, level := endEvent(exit), levelInfo
	if how.ExitCode != 0 || exit.TimedOut {
		level = levelWarn
	}
	fields := map[string]string{"exitCode": strconv.Itoa(how.ExitCode), "status": how.Status}
	if how.Error != "" {
		fields["error"] = how.Error
	}
	maps.Copy(fields, argv)
	s.addEvent(s.command.Ended, level, "process_end", fmt.Sprintf("%s ended: %s", name, how.Status), fields)
}

// runsAs is who commands are run as that name nobody.
func runsAs(a sandbox.Account) string {
	switch {
	case a.Default != "":
		return a.Default
	case a.Name != "":
		return a.Name
	}
	return defaultUser
}
