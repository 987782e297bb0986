package e2b

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// A sandbox's log, as clients of this wire read it, is what became of its commands:
// when each began and how it ended. What they wrote is not in it: it has no times, and
// commands.connect follows it.

const (
	maxLogs      = 1000
	maxLogText   = 4 << 10 // bytes of a command line in a log
	logOfProcess = "process"
)

// The levels of entries.
const (
	levelInfo = "info"
	levelWarn = "warn"
)

// logEntry is one thing that happened.
type logEntry struct {
	Timestamp stamp             `json:"timestamp"`
	Message   string            `json:"message"`
	Level     string            `json:"level"`
	Fields    map[string]string `json:"fields"`

	at time.Time
}

// logLine is the same for clients of the first version, who decode the line once more.
type logLine struct {
	Timestamp stamp  `json:"timestamp"`
	Line      string `json:"line"`
}

func (e logEntry) line() (logLine, error) {
	object := maps.Clone(e.Fields)
	object["message"], object["level"] = e.Message, e.Level
	text, err := json.Marshal(object)
	return logLine{Timestamp: e.Timestamp, Line: string(text)}, err
}

// entriesOf are the beginning and, if it has ended, the end of a command.
func entriesOf(k keeper.Command) []logEntry {
	argv := shorten(strings.Join(k.Argv, " "), maxLogText)
	entry := func(at time.Time, level, message string) logEntry {
		fields := map[string]string{"logger": logOfProcess, "cmd": argv}
		if k.PID != 0 {
			fields["pid"] = strconv.Itoa(k.PID)
		}
		return logEntry{Timestamp: stamp(at), at: at, Level: level, Message: message, Fields: fields}
	}
	all := []logEntry{entry(k.Started, levelInfo, "Process started")}
	if k.Exit == nil {
		return all
	}
	how, level := endEvent(*k.Exit), levelInfo
	if how.ExitCode != 0 || k.Exit.TimedOut {
		level = levelWarn
	}
	last := entry(k.Ended, level, "Process ended: "+how.Status)
	last.Fields["exitCode"] = strconv.Itoa(how.ExitCode)
	return append(all, last)
}

// logQuery is which entries a client wants.
type logQuery struct {
	from, to time.Time // of both zero: no bound
	limit    int
	backward bool
	level    string
	search   string
}

func logQueryOf(q url.Values, from string) (logQuery, error) {
	want := logQuery{limit: maxLogs, level: q.Get("level"), search: q.Get("search")}
	for name, into := range map[string]*time.Time{from: &want.from, "end": &want.to} {
		if text := q.Get(name); text != "" {
			ms, err := strconv.ParseInt(text, 10, 64)
			if err != nil || ms < 0 {
				return want, fault.Invalid("%s is %q, which is no time in milliseconds", name, clip(text, 30))
			}
			*into = time.UnixMilli(ms)
		}
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxLogs {
			return want, fault.Invalid("limit is %q; it may be from 0 to %d", clip(text, 20), maxLogs)
		}
		want.limit = n
	}
	switch direction := q.Get("direction"); direction {
	case "", "forward":
	case "backward":
		want.backward = true
	default:
		return want, fault.Invalid("direction is %q; it may be forward or backward", clip(direction, 20))
	}
	if !slices.Contains([]string{"", "debug", levelInfo, levelWarn, "error"}, want.level) {
		return want, fault.Invalid("level is %q; it may be debug, info, warn or error", clip(want.level, 20))
	}
	return want, nil
}

func (q logQuery) has(e logEntry) bool {
	severity := []string{"debug", levelInfo, levelWarn, "error"}
	switch {
	case q.level != "" && slices.Index(severity, e.Level) < slices.Index(severity, q.level):
		return false
	case q.search != "" && !strings.Contains(e.Message, q.search) && !strings.Contains(e.Fields["cmd"], q.search):
		return false
	case q.backward:
		return q.from.IsZero() || !e.at.After(q.from)
	}
	return !e.at.Before(q.from) && (q.to.IsZero() || !e.at.After(q.to))
}

// entries are those that a client wants, the oldest first, or the newest.
func (c *Control) entries(r *client, want logQuery) ([]logEntry, error) {
	sb, err := c.ours(r)
	if err != nil {
		return nil, err
	}
	commands, err := c.cfg.Sandboxes.Commands(r.Context(), sb.Info().ID)
	if err != nil {
		return nil, err
	}
	all := []logEntry{}
	for _, k := range commands {
		all = append(all, entriesOf(k)...)
	}
	all = slices.DeleteFunc(all, func(e logEntry) bool { return !want.has(e) })
	slices.SortStableFunc(all, func(a, b logEntry) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	if want.backward {
		slices.Reverse(all)
	}
	return all[:min(len(all), want.limit)], nil
}

// logs is the first version's: the same twice, as lines and as entries.
func (c *Control) logs(w http.ResponseWriter, r *client) error {
	want, err := logQueryOf(r.URL.Query(), "start")
	if err != nil {
		return err
	}
	entries, err := c.entries(r, want)
	if err != nil {
		return err
	}
	lines := make([]logLine, 0, len(entries))
	for _, e := range entries {
		line, err := e.line()
		if err != nil {
			return fmt.Errorf("encode a log: %w", err)
		}
		lines = append(lines, line)
	}
	writeObject(w, http.StatusOK, map[string]any{"logs": lines, "logEntries": entries})
	return nil
}

func (c *Control) logs2(w http.ResponseWriter, r *client) error {
	want, err := logQueryOf(r.URL.Query(), "cursor")
	if err != nil {
		return err
	}
	entries, err := c.entries(r, want)
	if err != nil {
		return err
	}
	writeObject(w, http.StatusOK, map[string]any{"logs": entries})
	return nil
}
