package e2b

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// A sandbox's log, as clients of this wire read it, is what became of its commands:
// when each began, what it wrote, and how it ended. It is read where that is kept
// already, for whoever attaches to a command, and ends with the sandbox.

const (
	maxLogs     = 1000
	maxLogBytes = 2 << 20 // of text in one answer, as JSON has it
	// maxLinedBytes is of one that has all of it twice. Both are passed where much was written within
	// a millisecond, by as much as still fits into a token's room.
	maxLinedBytes = 1 << 20
	// mostKept is what is kept of one command's output at most, and readCopies how often it is in
	// memory while it is read: as it came and with what was blocked left out, or that and as text.
	mostKept   = 4 << 20
	readCopies = 2
	// readEntries is what the entries of one command take meanwhile, beside their text.
	readEntries = 2 * maxLogs * entryCost
	readsLine   = 256              // requests of one token that wait for those before to be answered
	logsTime    = 30 * time.Second // in which an answer has to be taken
)

// logQuery is which entries a client wants.
type logQuery struct {
	from, to time.Time // of both zero: no bound
	limit    int
	bytes    int // of text, about
	backward bool
	level    string
	search   string
}

func logQueryOf(q url.Values, from string, bytes int) (logQuery, error) {
	want := logQuery{limit: maxLogs, bytes: bytes, level: q.Get("level"), search: q.Get("search")}
	for name, into := range map[string]*time.Time{from: &want.from, "end": &want.to} {
		if content := q.Get(name); content != "" {
			ms, err := strconv.ParseInt(content, 10, 64)
			if err != nil || ms < 0 {
				return want, fault.Invalid("%s is %q, which is not a time in milliseconds", name, text.Shorten(content, 30))
			}
			*into = time.UnixMilli(ms)
		}
	}
	if content := q.Get("limit"); content != "" {
		n, err := strconv.Atoi(content)
		if err != nil || n < 0 || n > maxLogs {
			return want, fault.Invalid("limit is %q; it may be from 0 to %d", text.Shorten(content, 20), maxLogs)
		}
		want.limit = n
	}
	switch direction := q.Get("direction"); direction {
	case "", "forward":
	case "backward":
		want.backward = true
	default:
		return want, fault.Invalid("direction is %q; it may be forward or backward", text.Shorten(direction, 20))
	}
	if !slices.Contains([]string{"", "debug", levelInfo, levelWarn, "error"}, want.level) {
		return want, fault.Invalid("level is %q; it may be debug, info, warn or error", text.Shorten(want.level, 20))
	}
	return want, nil
}

func (q logQuery) hasEntry(e logEntry) bool {
	severity := []string{"debug", levelInfo, levelWarn, "error"}
	switch {
	case q.level != "" && slices.Index(severity, e.Level) < slices.Index(severity, q.level):
		return false
	case q.search != "" && !e.saysText(q.search):
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
func (c *Control) entries(r *keyedRequest, want logQuery) ([]logEntry, error) {
	sb, err := c.ownSandbox(r)
	if err != nil {
		return nil, err
	}
	commands, err := c.cfg.Sandboxes.Commands(r.Context(), sb.Info().ID)
	if err != nil {
		return nil, err
	}
	if want.limit == 0 {
		return []logEntry{}, nil
	}
	chosen := chosen{want: want, ctx: r.Context(), all: []logEntry{}}
	now := time.Now()
	for _, k := range commands {
		if !want.reaches(k) {
			continue
		}
		reading := readEntries + int(readCopies*min(k.Offset, mostKept))
		if err := backend.Take(r.Context(), reading); err != nil {
			return nil, err
		}
		some, err := c.entriesOf(r.Context(), sb.Info(), k, func(e logEntry) bool { return want.hasEntry(e) && e.isOver(now) }, want)
		if err != nil {
			return nil, err
		}
		err = chosen.addEntries(some)
		backend.Give(r.Context(), reading)
		if err != nil {
			return nil, err
		}
	}
	return chosen.listEntries(), nil
}

// chosen are those of the entries read so far that the answer has, the oldest first. They take
// room, and the others are let go of before the next command's are read.
type chosen struct {
	want  logQuery
	ctx   context.Context //nolint:containedctx // of the one request that they answer
	all   []logEntry
	taken int
}

// listEntries is in the order of the answer.
func (c *chosen) listEntries() []logEntry {
	if c.want.backward {
		slices.Reverse(c.all)
	}
	return c.all
}

func (c *chosen) addEntries(some []logEntry) error {
	c.all = append(c.all, some...)
	slices.SortStableFunc(c.all, func(a, b logEntry) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	answer := c.listEntries()
	c.all = slices.Clone(answer[:roomFor(answer, c.want)]) // the rest is let go of
	c.all = c.listEntries()
	backend.Give(c.ctx, c.taken)
	c.taken = 0
	size := sizeOfLogs(c.all)
	if err := backend.Take(c.ctx, size); err != nil {
		return err
	}
	c.taken = size
	return nil
}

func sizeOfLogs(all []logEntry) int {
	size := 0
	for _, e := range all {
		size += e.sizeInJSON()
	}
	return size
}

// isOver tells whether an entry's millisecond is over. Clients go on from the millisecond
// after the last entry that they have, so that none is told of before.
func (e logEntry) isOver(now time.Time) bool { return e.at.UnixMilli() < now.UnixMilli() }

// roomFor is how many of the entries one answer has. It does not end within a
// millisecond, either, unless a client asked for so few.
func roomFor(all []logEntry, want logQuery) int {
	size := 0
	for i, e := range all {
		if i == want.limit || i > 0 && size > want.bytes && e.at.UnixMilli() != all[i-1].at.UnixMilli() {
			return i
		}
		size += e.sizeInJSON()
	}
	return len(all)
}

// How often the entries of an answer are in memory when it is written, in a buffer that grows:
// alone, and with them as lines, in which each quote has one more character.
const (
	writtenCopies = 2
	linedCopies   = 6
)

// inTurn answers with logs when it is the request's turn: one of a token at a time, since each takes
// much of its room. A client that does not read its answer holds up its own token, and not for long.
func (c *Control) inTurn(answer controlHandler) controlHandler {
	return func(w http.ResponseWriter, r *keyedRequest) error {
		_, leave, err := c.logReads.Take(fairqueue.For(r.Context(), r.token.ID))
		if errors.Is(err, fairqueue.ErrCrowded) {
			return fault.Exhausted(time.Second, "%d requests of this token wait for logs already", readsLine)
		}
		if err != nil {
			return err
		}
		defer leave()
		defer backend.Release(r.Context()) // before the next one's turn, which needs that room
		control := http.NewResponseController(w)
		if control.SetWriteDeadline(time.Now().Add(logsTime)) == nil { // a writer of tests has none
			defer control.SetWriteDeadline(time.Time{}) //nolint:errcheck // the connection is gone then
		}
		return answer(w, r)
	}
}

// serveLogs answers the route of the first version: the same twice, as lines and as entries.
func (c *Control) serveLogs(w http.ResponseWriter, r *keyedRequest) error {
	want, err := logQueryOf(r.URL.Query(), "start", maxLinedBytes)
	if err != nil {
		return err
	}
	entries, err := c.entries(r, want)
	if err != nil {
		return err
	}
	if err := backend.Take(r.Context(), linedCopies*sizeOfLogs(entries)); err != nil {
		return err
	}
	lines := make([]logLine, 0, len(entries))
	for _, e := range entries {
		line, err := e.makeLine()
		if err != nil {
			return fmt.Errorf("encode a log: %w", err)
		}
		lines = append(lines, line)
	}
	return writeAnswer(r.Context(), w, http.StatusOK, map[string]any{"logs": lines, "logEntries": entries})
}

func (c *Control) serveLogsV2(w http.ResponseWriter, r *keyedRequest) error {
	want, err := logQueryOf(r.URL.Query(), "cursor", maxLogBytes)
	if err != nil {
		return err
	}
	entries, err := c.entries(r, want)
	if err != nil {
		return err
	}
	if err := backend.Take(r.Context(), writtenCopies*sizeOfLogs(entries)); err != nil {
		return err
	}
	return writeAnswer(r.Context(), w, http.StatusOK, map[string]any{"logs": entries})
}
