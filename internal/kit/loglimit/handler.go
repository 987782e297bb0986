package loglimit

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// The bounds of a log.
const (
	Window  = time.Minute
	PerKind = 5     // lines of one kind in a window
	All     = 1_000 // lines in a window
	// kindText is how much of a line's message is its kind: what the standard library logs
	// has others' addresses further on.
	kindText = 40
	// maxText bounds a value of a line, in bytes: others choose some.
	maxText = 2 << 10
	maxWord = 512 // of a text that is cut, its last word is left out
)

// The names of what lines say.
const (
	sandboxKey  = "sandbox"
	repeatedKey = "repeated" // how many lines of the kind were left out before this one
)

// Limit is a Handler that lets through to next what the bounds allow. Lines of one kind have
// the same level, the same beginning of their message and the same sandbox. Lines of a kind that were
// left out are told with its next line, or beside another line once its window is over.
func Limit(next slog.Handler) slog.Handler { return limitHandler(next, time.Now) }

func limitHandler(next slog.Handler, now func() time.Time) slog.Handler {
	return &limitingHandler{Handler: next, lines: &countedLines{now: now, base: next, kinds: map[lineKind]*seen{}}}
}

// limitingHandler is one logger's; all that come from one share their lines.
type limitingHandler struct {
	slog.Handler
	lines   *countedLines
	sandbox string // among the attributes that all lines of this logger have
}

// countedLines are those of one log.
type countedLines struct {
	now  func() time.Time
	base slog.Handler

	mu    sync.Mutex // guards all below
	kinds map[lineKind]*seen
	began time.Time // of the window
	all   int       // let through in it
	over  int       // left out of it, since there were too many of all kinds
}

type lineKind struct {
	level   slog.Level
	message string
	sandbox string
}

// seen are the lines of a kind in the window.
type seen struct {
	passed, left int
	message      string
}

// Handle implements slog.Handler.
func (h *limitingHandler) Handle(ctx context.Context, r slog.Record) error {
	k := lineKind{r.Level, r.Message[:min(len(r.Message), kindText)], h.sandbox}
	short := slog.NewRecord(r.Time, r.Level, cutText(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == sandboxKey {
			k.sandbox = a.Value.Resolve().String()
		}
		short.AddAttrs(bounded(a))
		return true
	})
	told, passes := h.lines.countLine(k, r.Message)
	for _, line := range told {
		if err := h.lines.base.Handle(ctx, line); err != nil {
			return err
		}
	}
	if !passes {
		return nil
	}
	return h.Handler.Handle(ctx, short)
}

// countLine counts a line. passes tells whether it is let through; told are lines that say what was
// left out of a window that is over.
func (l *countedLines) countLine(k lineKind, message string) (told []slog.Record, passes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if age := now.Sub(l.began); age >= Window || age < 0 {
		told = l.nextWindow(now)
	}
	s := l.kinds[k]
	if s == nil {
		s = &seen{message: cutText(message)}
		l.kinds[k] = s
		if len(l.kinds) > All { // a kind that is new as the log is full is counted with all
			delete(l.kinds, k)
		}
	}
	switch {
	case l.all >= All:
		l.over++
		return told, false
	case s.passed >= PerKind:
		s.left++
		return told, false
	}
	s.passed++
	l.all++
	return told, true
}

// nextWindow begins a window, and gives the lines about the one before; mu is held.
func (l *countedLines) nextWindow(now time.Time) (told []slog.Record) {
	for k, s := range l.kinds {
		if s.left == 0 {
			continue
		}
		r := slog.NewRecord(now, k.level, s.message, 0)
		r.AddAttrs(slog.Int(repeatedKey, s.left))
		if k.sandbox != "" {
			r.AddAttrs(slog.String(sandboxKey, cutText(k.sandbox)))
		}
		told = append(told, r)
	}
	if l.over > 0 {
		r := slog.NewRecord(now, slog.LevelWarn, "more was to be logged than a log takes in a minute", 0)
		r.AddAttrs(slog.Int(repeatedKey, l.over))
		told = append(told, r)
	}
	l.began, l.all, l.over = now, 0, 0
	clear(l.kinds)
	return told
}

// WithAttrs implements slog.Handler.
func (h *limitingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	short := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		if a.Key == sandboxKey {
			next.sandbox = a.Value.Resolve().String()
		}
		short[i] = bounded(a)
	}
	next.Handler = h.Handler.WithAttrs(short)
	return &next
}

// WithGroup implements slog.Handler.
func (h *limitingHandler) WithGroup(name string) slog.Handler {
	next := *h
	next.Handler = h.Handler.WithGroup(name)
	return &next
}

// bounded is an attribute whose text is not long. Errors and what prints itself are texts.
func bounded(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() { //nolint:exhaustive // the others are numbers and times
	case slog.KindString:
		a.Value = slog.StringValue(cutText(v.String()))
	case slog.KindGroup:
		var group []slog.Attr
		for _, one := range v.Group() {
			group = append(group, bounded(one))
		}
		a.Value = slog.GroupValue(group...)
	case slog.KindAny:
		if text := v.String(); len(text) > maxText {
			a.Value = slog.StringValue(cutText(text))
		}
	}
	return a
}

// cutText cuts a long text at the end of a word: a part of a token is known by
// nobody who masks them.
func cutText(content string) string {
	if len(content) <= maxText {
		return content
	}
	end := maxText
	for end > maxText-maxWord && !strings.ContainsRune(" \t\n\"'`,;()[]{}<>", rune(content[end-1])) {
		end--
	}
	return text.Shorten(content, end)
}
