package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// askVerb is the argument with which the bench's program is what makes requests inside a
// sandbox: it is told what to do as driver.py is.
const askVerb = "ask"

const (
	// openPause is between two connections: a run may make twenty in a second.
	openPause = 60 * time.Millisecond
	openTime  = 30 * time.Second // for one, if it is refused at first
)

// asker has connections to hosts, which it keeps.
type asker struct {
	lines map[string][]*line
	calm  func() error // ends the flood; nil: there is none
}

// line is one connection. One request is on it at a time.
type line struct {
	host string
	conn net.Conn
	from *bufio.Reader
}

// serveAsks answers the asks on stdin until that ends.
func serveAsks(ctx context.Context) error {
	a := &asker{lines: map[string][]*line{}}
	verbs := map[string]func(context.Context, ask) (sample, error){"open": a.open, "ask": a.ask, "event": a.event, "flood": a.flood, "calm": a.end}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var one ask
		if err := in.Decode(&one); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var got answer
		samples, err := verbs[one.Verb](ctx, one)
		if got.Samples = samples; err != nil {
			got.Code, got.Text = 1, err.Error()
		}
		if err := out.Encode(got); err != nil {
			return err
		}
	}
}

// open has at least so many connections to a host, each used once.
func (a *asker) open(ctx context.Context, one ask) (sample, error) {
	for len(a.lines[one.Host]) < one.Connections {
		l, err := dialLine(ctx, one.Host)
		for began := time.Now(); err != nil && time.Since(began) < openTime; {
			time.Sleep(openPause)
			l, err = dialLine(ctx, one.Host)
		}
		if err == nil { // one that is never used is closed before the others' turn
			_, _, err = l.get(one.Path)
		}
		if err != nil {
			return nil, err
		}
		a.lines[one.Host] = append(a.lines[one.Host], l)
		time.Sleep(openPause)
	}
	return nil, nil
}

// dialLine connects to a host with its port. The server's certificate is nobody's whom a
// sandbox knows.
func dialLine(ctx context.Context, host string) (*line, error) {
	d := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	return &line{host, conn, bufio.NewReader(conn)}, nil
}

// get makes a request, and tells when the answer's first byte had come, and its last.
func (l *line) get(path string) (first, last time.Duration, err error) {
	began := time.Now()
	if _, err := io.WriteString(l.conn, "GET "+path+" HTTP/1.1\r\nHost: "+l.host+"\r\n\r\n"); err != nil {
		return 0, 0, err
	}
	resp, err := http.ReadResponse(l.from, nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // it is for the error alone
		return 0, 0, fmt.Errorf("%s: %s", resp.Status, said)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		return 0, 0, err
	}
	first = time.Since(began)
	_, err = io.Copy(io.Discard, resp.Body)
	return first, time.Since(began), err
}

// ask makes requests on so many connections at once, on each one after another.
func (a *asker) ask(_ context.Context, one ask) (sample, error) {
	lines := a.lines[one.Host]
	if len(lines) < one.Connections {
		return nil, fmt.Errorf("there are %d connections to %s, and not %d", len(lines), one.Host, one.Connections)
	}
	var mu sync.Mutex // guards took
	var took sample
	var all errgroup.Group
	for _, l := range lines[:one.Connections] {
		all.Go(func() error {
			for range one.Count {
				_, last, err := l.get(one.Path)
				if err != nil {
					return err
				}
				mu.Lock()
				took.add(last)
				mu.Unlock()
			}
			return nil
		})
	}
	err := all.Wait()
	return took, err
}

// event tells when the first event of a stream had come.
func (a *asker) event(_ context.Context, one ask) (sample, error) {
	first, _, err := a.lines[one.Host][0].get(one.Path)
	if err != nil {
		return nil, err
	}
	var s sample
	s.add(first)
	return s, nil
}

// flood makes requests on so many connections without a pause, and new connections beside
// them, until end.
func (a *asker) flood(ctx context.Context, one ask) (sample, error) {
	if a.calm != nil {
		return nil, errors.New("there is a flood already")
	}
	ctx, cancel := context.WithCancel(ctx)
	var all errgroup.Group
	for _, l := range a.lines[one.Host][:min(one.Connections, len(a.lines[one.Host]))] {
		all.Go(func() error {
			for ctx.Err() == nil {
				if _, _, err := l.get(one.Path); err != nil {
					return err
				}
			}
			return nil
		})
	}
	all.Go(func() error {
		for ctx.Err() == nil {
			if l, err := dialLine(ctx, one.Host); err == nil { // most are refused: there is a limit
				_ = l.conn.Close() // it was for the handshake
			}
		}
		return nil
	})
	a.calm = func() error { cancel(); return all.Wait() }
	return nil, nil
}

// end ends the flood, and tells what broke of it.
func (a *asker) end(context.Context, ask) (sample, error) {
	if a.calm == nil {
		return nil, errors.New("there is no flood")
	}
	err := a.calm()
	a.calm = nil
	return nil, err
}
