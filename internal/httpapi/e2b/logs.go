package e2b

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// A sandbox's log, as clients of this wire read it, is what became of its commands:
// when each began, what it wrote, and how it ended. It is read where that is kept
// already, for whoever attaches to a command, and ends with the sandbox.

const (
	maxLogs     = 1000
	maxLogBytes = 4 << 20 // of text in one answer
)

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
				return want, fault.Invalid("%s is %q, which is not a time in milliseconds", name, excerpt.Of(text, 30))
			}
			*into = time.UnixMilli(ms)
		}
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxLogs {
			return want, fault.Invalid("limit is %q; it may be from 0 to %d", excerpt.Of(text, 20), maxLogs)
		}
		want.limit = n
	}
	switch direction := q.Get("direction"); direction {
	case "", "forward":
	case "backward":
		want.backward = true
	default:
		return want, fault.Invalid("direction is %q; it may be forward or backward", excerpt.Of(direction, 20))
	}
	if !slices.Contains([]string{"", "debug", levelInfo, levelWarn, "error"}, want.level) {
		return want, fault.Invalid("level is %q; it may be debug, info, warn or error", excerpt.Of(want.level, 20))
	}
	return want, nil
}

func (q logQuery) has(e logEntry) bool {
	severity := []string{"debug", levelInfo, levelWarn, "error"}
	switch {
	case q.level != "" && slices.Index(severity, e.Level) < slices.Index(severity, q.level):
		return false
	case q.search != "" && !e.says(q.search):
		return false
	case q.backward:
		return q.from.IsZero() || !e.at.After(q.from)
	}
	return !e.at.Before(q.from) && (q.to.IsZero() || !e.at.After(q.to))
}

// reaches tells whether a command may have an entry that a client wants.
func (q logQuery) reaches(k keeper.Command) bool {
	if q.backward {
		return q.from.IsZero() || !k.Started.After(q.from)
	}
	return (k.Exit == nil || !k.Ended.Before(q.from)) && (q.to.IsZero() || !k.Started.After(q.to))
}

// entries are those that a client wants, the oldest first, or the newest: as many as
// one answer has room for.
func (c *Control) entries(r *client, want logQuery) ([]logEntry, error) {
	sb, err := c.ours(r)
	if err != nil {
		return nil, err
	}
	commands, err := c.cfg.Sandboxes.Commands(r.Context(), sb.Info().ID)
	if err != nil {
		return nil, err
	}
	all, now := []logEntry{}, time.Now()
	for _, k := range commands {
		if !want.reaches(k) {
			continue
		}
		some, err := c.entriesOf(r.Context(), sb.Info(), k)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(some, func(e logEntry) bool { return !want.has(e) || !e.over(now) })...)
	}
	slices.SortStableFunc(all, func(a, b logEntry) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	if want.backward {
		slices.Reverse(all)
	}
	return all[:room(all, want.limit)], nil
}

// over tells whether an entry's millisecond is over. Clients go on from the millisecond
// after the last entry that they have, so that none is told of before.
func (e logEntry) over(now time.Time) bool { return e.at.UnixMilli() < now.UnixMilli() }

// room is how many of the entries one answer has. It does not end within a
// millisecond, either, unless a client asked for so few.
func room(all []logEntry, limit int) int {
	size := 0
	for i, e := range all {
		if i == limit || i > 0 && size > maxLogBytes && e.at.UnixMilli() != all[i-1].at.UnixMilli() {
			return i
		}
		size += e.size()
	}
	return len(all)
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
