package exchange

import (
	"io"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// How long held bytes wait for more at most, by whether the host gets a secret. A host that has it may give it
// back, and somebody inside can have the part of it that comes first end within it: by reading slowly until
// nobody takes in any more. The rest comes a round trip later, or once a packet that was lost is sent again.
const (
	usualPatience  = 100 * time.Millisecond
	secretPatience = 2 * time.Second
)

// arrivals reads what comes of an answer, and tells when what is held back of it has waited long enough. While
// something is held, a goroutine reads, one at a time: of what it has read nothing is lost. Closing what is read
// from ends it. Only the time counts in which somebody waits.
type arrivals struct {
	from     io.Reader
	patience time.Duration

	reading bool         // a read is under way
	came    chan arrival // of that read
	buf     []byte       // which that read has
	timer   *time.Timer
	waited  time.Duration
}

// arrival is what a read has given.
type arrival struct {
	b   []byte
	err error
}

// ownBuffer is how much such a read gives at most, in bytes.
const ownBuffer = 32 << 10

// nextArrival gives what comes next, in p or elsewhere, the caller's until the next call. If t holds bytes back, and
// some of them have waited for the whole patience (late), nothing has come.
func (a *arrivals) nextArrival(p []byte, t *tail) (b []byte, late bool, err error) {
	holds := t != nil && len(t.batches) > 0
	if !holds && !a.reading {
		n, err := a.from.Read(p)
		return p[:n], false, err
	}
	if !a.reading {
		a.readBody()
	}
	var came arrival
	if !holds {
		came = <-a.came
	} else if came, late = a.awaitArrival(t); late {
		return nil, true, nil
	}
	a.reading = false
	return came.b, false, came.err
}

// readBody begins to read.
func (a *arrivals) readBody() {
	if a.buf == nil {
		a.buf, a.came = make([]byte, ownBuffer), make(chan arrival, 1)
	}
	a.reading = true
	from, buf, result := a.from, a.buf, a.came
	safego.Go(func() {
		var came arrival
		err := safego.Try(func() error {
			n, err := from.Read(buf)
			came = arrival{buf[:n], err}
			return nil
		})
		if err != nil {
			came = arrival{nil, err}
		}
		result <- came
	})
}

// awaitArrival waits until something has come, or what t has held for longest has waited for the whole patience (late).
func (a *arrivals) awaitArrival(t *tail) (came arrival, late bool) {
	select {
	case came = <-a.came:
		return came, false
	default:
	}
	part := a.patience / partsOfPatience
	end := time.Duration(t.batches[0].since+partsOfPatience) * part
	defer func() { t.waited = int(a.waited / part) }()
	within, begin := max(end-a.waited, 0), time.Now()
	if a.timer == nil {
		a.timer = time.NewTimer(within)
	} else {
		a.timer.Reset(within)
	}
	defer a.timer.Stop()
	select {
	case came = <-a.came:
		a.waited += min(time.Since(begin), within)
		return came, false
	case <-a.timer.C:
		a.waited = max(a.waited, end)
		return came, true
	}
}
