package httpapi

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// drip is a client that sends a part of its body, after a while, to each read. late
// counts the reads whose deadline was over then.
type drip struct {
	every      time.Duration
	part, left int
	conn       connection
	late       int
}

func (d *drip) Read(b []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(d.every)
	if time.Now().After(d.conn.at) {
		d.late++
	}
	n := min(d.part, d.left, len(b))
	d.left -= n
	return n, nil
}

// connection remembers its deadline.
type connection struct{ at time.Time }

func (c *connection) SetReadDeadline(at time.Time) error {
	c.at = at
	return nil
}

// TestBodiesKeepUp: a client that sends too slowly is given up, one that keeps up is
// not, and no deadline outlives the body.
func TestBodiesKeepUp(t *testing.T) {
	for name, c := range map[string]struct {
		drip drip
		late bool
	}{
		"a byte now and then":        {drip: drip{every: 5 * time.Second, part: 1, left: 10}, late: true},
		"a slow line":                {drip: drip{every: time.Second, part: 20 << 10, left: 1 << 20}},
		"slower than what is waited": {drip: drip{every: time.Second, part: 10 << 10, left: 1 << 20}, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := &paced{ReadCloser: io.NopCloser(&c.drip), control: &c.drip.conn}
				for buf := make([]byte, 32<<10); ; {
					if _, err := body.Read(buf); err != nil {
						break
					}
				}
				if (c.drip.late > 0) != c.late {
					t.Errorf("%d reads were late", c.drip.late)
				}
				if at := c.drip.conn.at; !at.IsZero() {
					t.Errorf("there is a deadline after the body: %s", at)
				}
			})
		})
	}
}

// TestBodiesEnd: neither an error nor a body that is closed early leaves a deadline.
func TestBodiesEnd(t *testing.T) {
	conn, broken := &connection{}, errors.New("broken")
	body := &paced{ReadCloser: io.NopCloser(io.MultiReader(bytes.NewReader([]byte("a")), failing{broken})), control: conn}
	if _, err := io.ReadAll(body); !errors.Is(err, broken) || !conn.at.IsZero() {
		t.Errorf("%v, until %s", err, conn.at)
	}
	body = &paced{ReadCloser: io.NopCloser(bytes.NewReader([]byte("ab"))), control: conn}
	if _, err := body.Read(make([]byte, 1)); err != nil || conn.at.IsZero() {
		t.Errorf("%v, until %s", err, conn.at)
	}
	if err := body.Close(); err != nil || !conn.at.IsZero() {
		t.Errorf("%v, until %s", err, conn.at)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
