package templatebuild

import (
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Entry is a line of a build's log.
type Entry struct {
	Time  time.Time `json:"time"`
	Level Level     `json:"level"`
	Step  string    `json:"step,omitempty"`
	Text  string    `json:"text"`
}

// Level is how much an entry matters.
type Level string

// The levels.
const (
	Info  Level = "info"
	Warn  Level = "warn"
	Error Level = "error"
)

// Bounds of a log. Later lines are not kept, and the last line says so.
const (
	maxLines = 5_000
	maxLine  = 4 << 10
	maxLog   = 4 << 20
)

// journal is the log of a build that goes on. Safe for concurrent use.
type journal struct {
	mu      sync.Mutex // guards what follows
	entries []Entry
	size    int
	full    bool
}

// addLine writes a line; of the builder's own, which are few, all are kept.
func (j *journal) addLine(level Level, step, content string, own bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	content = text.Shorten(strings.ToValidUTF8(content, "\uFFFD"), maxLine)
	if !own {
		if j.full {
			return
		}
		if j.full = len(j.entries) >= maxLines || j.size+len(content) > maxLog; j.full {
			content = "what the commands of this build write from here on is not kept"
		}
	}
	j.size += len(content)
	j.entries = append(j.entries, Entry{Time: time.Now().UTC(), Level: level, Step: step, Text: content})
}

// entriesFrom are the entries from an offset on, as many as asked for.
func (j *journal) entriesFrom(offset, most int) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return pageOf(j.entries, offset, most)
}

func pageOf(all []Entry, offset, most int) []Entry {
	offset = min(max(offset, 0), len(all))
	part := all[offset : offset+min(most, len(all)-offset)]
	return append([]Entry{}, part...)
}

// outputLines makes lines of what a command writes.
type outputLines struct {
	rest string
	tell func(line string)
}

func (l *outputLines) writeData(data []byte) {
	l.rest += string(data)
	for {
		line, rest, whole := strings.Cut(l.rest, "\n")
		if !whole && len(l.rest) <= maxLine {
			return
		}
		if !whole { // a line without an end
			line, rest = l.rest[:maxLine], l.rest[maxLine:]
		}
		l.rest = rest
		l.tell(strings.TrimSuffix(line, "\r"))
	}
}

// Write implements io.Writer.
func (l *outputLines) Write(data []byte) (int, error) {
	l.writeData(data)
	return len(data), nil
}

func (l *outputLines) endLine() {
	if l.rest != "" {
		l.tell(l.rest)
		l.rest = ""
	}
}
