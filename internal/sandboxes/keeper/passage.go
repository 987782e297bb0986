package keeper

import (
	"context"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// A command's output has times, as far as a log needs them: what came within a second
// is one passage, which has the time at which that second was over. A passage is told
// when nothing is added to it any more, so that who asks again for what came later
// misses nothing, and reads nothing twice. Nothing is kept for it but the times: the
// bytes are the ring's.

// How passages are cut.
const (
	passageTime  = time.Second
	passageBytes = 32 << 10
	markCost     = 32  // bytes of memory of one mark
	passageCost  = 256 // a ring of n bytes remembers at most n/passageCost passages
)

// mark is where a passage begins.
type mark struct {
	start int64
	at    time.Time
}

// Passage is what a command wrote within a second, or less of it.
type Passage struct {
	At     time.Time `json:"at"` // when it was complete
	Stdout []byte    `json:"stdout,omitempty"`
	Stderr []byte    `json:"stderr,omitempty"`
}

// Output is what is kept of a command's output.
type Output struct {
	User     string    `json:"user,omitempty"` // that the command was started as; "": the sandbox's own
	Passages []Passage `json:"-"`              // oldest first; each comes by itself
}

// passageRoom is how much of what is put now belongs to one passage. Needs mu.
func (r *ring) passageRoom(now time.Time) int64 {
	last := len(r.marks) - 1
	if last >= 0 && now.Sub(r.marks[last].at) < passageTime {
		if room := passageBytes - (r.end - r.marks[last].start); room > 0 {
			return room
		}
	}
	r.marks = slices.Delete(r.marks, 0, sortedBefore(r.marks, r.start))
	if n := int64(len(r.marks)); n >= max(r.max/passageCost, 1) || n > 0 && !r.allowMark() {
		r.marks = slices.Delete(r.marks, 0, 1)
	}
	r.marks = append(r.marks, mark{start: r.end, at: now})
	return passageBytes
}

// allowMark has the ring remember one passage more, as far as the sandbox has memory for output. Needs mu.
func (r *ring) allowMark() bool {
	size := int64(len(r.buf))
	if int64(len(r.marks)) < max(size, firstRing)/passageCost {
		return true
	}
	cost := r.costOf(size) + 2*markCost
	return cost <= r.taken || r.charge(cost)
}

// sortedBefore is how many of the marks have nothing at or after an offset.
func sortedBefore(marks []mark, offset int64) int {
	n := 0
	for n+1 < len(marks) && marks[n+1].start <= offset {
		n++
	}
	return n
}

// passages are those that are complete.
func (r *ring) passages(now time.Time) []Passage {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []Passage{}
	for i, m := range r.marks {
		p, end := Passage{At: m.at.Add(passageTime)}, r.end
		switch last := i == len(r.marks)-1; {
		case !last:
			p.At, end = earlier(p.At, r.marks[i+1].at), r.marks[i+1].start
		case r.closed:
			p.At = earlier(p.At, r.closedAt)
		case now.Before(p.At):
			return all
		}
		r.quotePassage(&p, max(m.start, r.start), end)
		if len(p.Stdout)+len(p.Stderr) > 0 {
			all = append(all, p)
		}
	}
	return all
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// quotePassage copies what lies between two offsets into a passage. Needs mu.
func (r *ring) quotePassage(p *Passage, from, to int64) {
	c := &cursor{r: r, offset: from}
	buf := make([]byte, max(to-from, 0))
	for c.offset < to {
		got := c.takeChunk(buf[:to-c.offset])
		if got.kind == channel.FrameStderr {
			p.Stderr = append(p.Stderr, buf[:got.n]...)
		} else {
			p.Stdout = append(p.Stdout, buf[:got.n]...)
		}
	}
}

// answerOutput answers with a command's output.
func (c *keptCommand) answerOutput(conn *channel.Conn) {
	all := c.out.passages(time.Now())
	sendResponse(conn, Response{OK: true, Output: &Output{User: c.user}, More: len(all) > 0})
	for i := range all {
		sendResponse(conn, Response{OK: true, Passage: &all[i], More: i < len(all)-1})
	}
}

// Output returns what is kept of a command's output with its times, and holds nothing
// back meanwhile. Output of the last second is not in it while the command
// runs. A fault.ErrUnavailable of a keeper of an older release.
func (c *Client) Output(ctx context.Context, id, command string) (Output, error) {
	var out Output
	err := c.converse(ctx, Request{Verb: VerbOutput, ID: id, Command: command}, nil, func(l *link) error {
		return l.readAll(func(r Response) {
			if r.Output != nil {
				out.User = r.Output.User
			}
			if r.Passage != nil {
				out.Passages = append(out.Passages, *r.Passage)
			}
		})
	})
	if err != nil {
		return Output{}, err
	}
	return out, nil
}
