package mcp

import (
	"fmt"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// keptHead and keptTail are what is kept of a stream: its beginning and its end, in bytes.
// All of it would fill a model's context.
const (
	keptHead   = 16 << 10
	keptTail   = 48 << 10
	maxExcerpt = 200 // of a progress message
)

// outputEnds keeps the beginning and the end of what a command writes.
type outputEnds struct {
	head, tail []byte
	lost       int64
}

func (s *outputEnds) writeBytes(p []byte) {
	if room := keptHead - len(s.head); room > 0 {
		n := min(room, len(p))
		s.head = append(s.head, p[:n]...)
		p = p[n:]
	}
	s.tail = append(s.tail, p...)
	if over := len(s.tail) - keptTail; over > keptTail { // now and then, not for each byte
		s.cutOver(over)
	}
}

func (s *outputEnds) cutOver(over int) {
	s.lost += int64(over)
	s.tail = append([]byte(nil), s.tail[over:]...)
}

// visibleText is what was kept, with what no reader may take for an instruction made visible.
func (s *outputEnds) visibleText() (text string, truncated bool) {
	if over := len(s.tail) - keptTail; over > 0 {
		s.cutOver(over)
	}
	if s.lost == 0 {
		return ui.PrintableText(string(s.head) + string(s.tail)), false
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", ui.PrintableText(string(s.head)), s.lost, ui.PrintableText(string(s.tail))), true
}

// commandOutput is what a command says. Safe for concurrent use.
type commandOutput struct {
	mu             sync.Mutex // guards all
	stdout, stderr outputEnds
	whole          int                   // so much of stdout is kept in all, too; 0: nothing
	all            []byte                // for whoever reads it once the command has ended
	take           func(bytes int) error // is asked for room for all; nil: there is some
	full           error                 // why all has an end
	gap            bool                  // some of it was not kept by the daemon
	last           string                // the last line that says something
	fresh          bool                  // since it was asked for
}

func (o *commandOutput) writeTo(to *outputEnds, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	to.writeBytes(p)
	if to == &o.stdout && o.whole > 0 {
		o.keepWhole(p[:min(len(p), max(0, o.whole+1-len(o.all)))])
	}
	for line := range strings.FieldsFuncSeq(string(p[max(0, len(p)-4*maxExcerpt):]), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if strings.TrimSpace(line) != "" {
			o.last, o.fresh = line, true
		}
	}
}

// missed notes that some of it was not kept.
func (o *commandOutput) missed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gap = true
}

// excerpt is the last line, if there is a new one.
func (o *commandOutput) excerpt() (line string, fresh bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fresh, o.fresh = o.fresh, false
	return text.Shorten(ui.Printable(o.last), maxExcerpt), fresh
}

// bothTexts are both streams.
func (o *commandOutput) bothTexts() (stdout, stderr string, truncated bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	stdout, a := o.stdout.visibleText()
	stderr, b := o.stderr.visibleText()
	return stdout, stderr, a || b || o.gap
}

// keepWhole keeps a piece for whoever reads all of it, if there is room. It needs mu.
func (o *commandOutput) keepWhole(piece []byte) {
	if o.full == nil && o.take != nil {
		o.full = o.take(2 * len(piece)) // a list that grows has as much again
	}
	if o.full == nil {
		o.all = append(o.all, piece...)
	}
}
