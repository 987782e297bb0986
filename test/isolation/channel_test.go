package isolation

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
)

// channel is a shared thing that two sandboxes try to speak through.
type channel struct {
	name   string
	shares string // what it is that they share
	law    law
	// send is the sender's deed in a slot whose bit is 1; in others it does nothing.
	send func(ctx context.Context, p *pair, slot int) error
	// beside is, in place of send, what it does while the receiver looks; stop ends it.
	beside func(ctx context.Context, p *pair, slot int) (stop func(), err error)
	// look is what the receiver sees in a slot.
	look func(ctx context.Context, p *pair, slot int) (Observation, error)
	// prepare is what comes before the first slot, and before each whose sandboxes are new.
	prepare func(ctx context.Context, p *pair) error
	// deeds is the host's count of what the sender did; it must grow by one with each send.
	deeds func(t *testing.T, p *pair) int
	// renewed is after how many slots both get new tokens and sandboxes; 0: never. What one
	// may have of refused names or held requests is used up sooner than trials are.
	renewed int
	// state and timing are how much may be read from what is said, and from when: in bits
	// per second. What state has more than 0 of is told in docs/isolation.md.
	state, timing float64
	// answered is what an answer that the receiver is to get begins with or has, by a regular
	// expression; "": any that is no refusal for its pace and no error of the server. A receiver
	// that is refused sees nothing of what is shared.
	answered string
	// least is how long a slot takes at least, where the receiver may look only so often.
	least time.Duration
	// slow is for a channel each of whose slots takes so long that it gets a share of the
	// trials; 0: all of them.
	slow int
}

// learning is the share of trials that a decoder learns from; it is judged on the others.
const learning = 0.3

// measured is a channel after its trials.
type measured struct {
	channel
	trials  []Trial
	learnt  int
	slots   float64 // a second
	note    string
	control bool
}

// run makes so many trials with a channel's pair.
func (c channel) run(t *testing.T, h *house, count int, control bool) measured {
	t.Helper()
	if c.slow > 0 {
		count = max(20, count/c.slow)
	}
	p, ctx := h.pair(c.law), t.Context()
	m := measured{channel: c, learnt: int(learning * float64(count)), control: control}
	if m.note = c.ready(ctx, p); m.note != "" {
		return m
	}
	pace, err := c.findPace(ctx, p)
	if err != nil {
		m.note = fmt.Sprintf("to find the pace: %v", err)
		return m
	}
	if c.renewed > 0 { // earlier channels, and the tries, have used up a part
		p.renew(ctx)
	}
	before := c.deeds(t, p)
	bits := append(drawBits(m.learnt), drawBits(count-m.learnt)...)
	sent, answered := 0, 0
	asExpected := regexp.MustCompile(cmp.Or(c.answered, plainAnswer))
	unexpected := ""
	var busy time.Duration
	for slot := range count {
		if c.renewed > 0 && slot > 0 && slot%c.renewed == 0 {
			p.renew(ctx)
			if m.note = c.ready(ctx, p); m.note != "" {
				return m
			}
		}
		bit := bits[slot]
		began := time.Now()
		seen, err := c.transmit(ctx, p, slot, bit, pace)
		if err != nil {
			m.note = fmt.Sprintf("slot %d: %v", slot, err)
			return m
		}
		busy += time.Since(began)
		m.trials = append(m.trials, Trial{bit, seen})
		if asExpected.MatchString(seen.Text) {
			answered++
		} else {
			unexpected = seen.Text
		}
		if bit {
			sent++
		}
	}
	m.slots = float64(len(m.trials)) / busy.Seconds()
	if did := c.awaitDeeds(t, p, before+sent) - before; did < sent {
		m.note = fmt.Sprintf("the sender was to act %d times, and on the host it did so %d times", sent, did)
	}
	if float64(answered) < leastAnswered*float64(count) {
		m.note = strings.TrimPrefix(m.note+fmt.Sprintf("; the receiver was answered in %d of %d slots, and in another one by %.200q", answered, count, unexpected), "; ")
	}
	return m
}

// awaitDeeds counts the sender's deeds on the host until there are so many: the record of the last one may come a moment
// after its answer. One that does not come in time is not counted.
func (c channel) awaitDeeds(t *testing.T, p *pair, want int) (did int) {
	t.Helper()
	limit, tick := time.NewTimer(longestWait), time.NewTicker(20*time.Millisecond)
	defer limit.Stop()
	defer tick.Stop()
	for {
		if did = c.deeds(t, p); did >= want {
			return did
		}
		select {
		case <-limit.C:
			return did
		case <-tick.C:
		}
	}
}

// plainAnswer is that of a server which neither fails nor refuses for the pace (429).
const plainAnswer = `^(HTTP/\S+ )?(2\d\d|40\d|41\d|42[0-8]) `

// leastAnswered is the share of slots in which the receiver must be answered.
const leastAnswered = 0.98

// drawBits draws so many bits in a random order, half of them 1: whoever guesses always the same
// is right in half of the slots.
func drawBits(count int) []bool {
	bits := make([]bool, count)
	for i := range bits {
		bits[i] = i%2 == 0
	}
	rand.Shuffle(count, func(i, j int) { bits[i], bits[j] = bits[j], bits[i] })
	return bits
}

func (c channel) ready(ctx context.Context, p *pair) string {
	if c.prepare == nil {
		return ""
	}
	if err := c.prepare(ctx, p); err != nil {
		return fmt.Sprintf("before the first slot: %v", err)
	}
	return ""
}

// paceTries is how many deeds the pace is found by. Their slots have negative numbers, so
// that they are of other names.
const paceTries = 12

// findPace finds how long the sender has in a slot: longer than nearly all of its deeds take.
// Were a slot with a deed longer than one without, the receiver's own clock, or any time in
// an answer, would tell the bit.
func (c channel) findPace(ctx context.Context, p *pair) (pace time.Duration, err error) {
	if c.send == nil {
		return 0, nil
	}
	for try := range paceTries {
		began := time.Now()
		if err := c.send(ctx, p, -1-try); err != nil {
			return 0, err
		}
		if try > 0 { // the first one opens connections
			pace = max(pace, time.Since(began))
		}
	}
	return pace, nil
}

// transmit sends a bit, and is what the receiver sees.
func (c channel) transmit(ctx context.Context, p *pair, slot int, bit bool, pace time.Duration) (Observation, error) {
	turn := time.NewTimer(max(pace, c.least))
	defer turn.Stop()
	if bit && c.beside != nil {
		stop, err := c.beside(ctx, p, slot)
		if err != nil {
			return Observation{}, err
		}
		defer stop()
	}
	if bit && c.send != nil {
		if err := c.send(ctx, p, slot); err != nil {
			return Observation{}, err
		}
	}
	select {
	case <-turn.C: // the receiver's part of the slot has come
	case <-ctx.Done():
		return Observation{}, ctx.Err()
	}
	return c.look(ctx, p, slot)
}

// rows are the channel's two measurements, without their verdicts.
func (m measured) rows() []Row {
	var all []Row
	for _, way := range []Way{State, Timing} {
		row := Row{Channel: m.name, Shares: m.shares, Way: way, Slots: m.slots, Stated: m.state, Control: m.control, Note: m.note}
		if way == Timing {
			row.Stated = m.timing
		}
		if m.note == "" {
			row.Rate = Measure(way, m.trials, m.learnt, m.slots)
		}
		all = append(all, row)
	}
	return all
}
