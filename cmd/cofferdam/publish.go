package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const (
	// publishedMost bounds the connections to one port at a time.
	publishedMost = 128
	// publishedTimeout is how long a connection waits for a server that is about to
	// listen, and publishedPoll how often it looks.
	publishedTimeout = 10 * time.Second
	publishedPoll    = 100 * time.Millisecond
)

// publication is a port of the sandbox that this program brings to the host's loopback
// interface, for as long as it lives.
type publication struct {
	inside   int
	listener net.Listener
}

// URL is what a client on this host asks for.
func (p publication) URL() string { return "http://" + p.listener.Addr().String() + "/" }

// listenForPorts listens for all ports that are wanted, before anything is made: PORT, or
// HOSTPORT:PORT. A port alone has the same number on the host if that is free, else
// another; one that is named is that or an error.
func listenForPorts(ctx context.Context, wanted []string) (all []publication, err error) {
	defer func() {
		if err != nil {
			unpublish(all)
		}
	}()
	for _, spec := range wanted {
		outside, inside, err := parsePublish(spec)
		if err != nil {
			return all, err
		}
		for _, other := range all {
			if other.inside == inside {
				return all, fault.Invalid("--publish names the port %d twice", inside)
			}
		}
		l, err := listenFor(ctx, outside, inside)
		if err != nil {
			return all, err
		}
		all = append(all, publication{inside, l})
	}
	return all, nil
}

// parsePublish reads PORT or HOSTPORT:PORT; outside is -1 if it was left open.
func parsePublish(spec string) (outside, inside int, err error) {
	outsideText, insideText, both := strings.Cut(spec, ":")
	if !both {
		insideText, outsideText = spec, "-1"
	}
	outside, outsideErr := strconv.Atoi(outsideText)
	inside, insideErr := strconv.Atoi(insideText)
	if outsideErr != nil || insideErr != nil || inside < 1 || inside > 65535 || outside > 65535 || both && outside < 1 {
		return 0, 0, fault.Invalid("--publish %.40q must be PORT or HOSTPORT:PORT, such as 8000 or 8080:8000", spec)
	}
	return outside, inside, nil
}

func listenFor(ctx context.Context, outside, inside int) (net.Listener, error) {
	listen := func(port int) (net.Listener, error) {
		return (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	if outside > 0 {
		l, err := listen(outside)
		if err != nil {
			return nil, fault.Wrap(fault.ErrConflict, err, "--publish %d:%d: port %d of this host is not free; name another, or leave it out", outside, inside, outside)
		}
		return l, nil
	}
	l, err := listen(inside)
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) {
		l, err = listen(0)
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "--publish %d: no port of this host is free", inside)
	}
	return l, nil
}

func unpublish(all []publication) {
	for _, p := range all {
		_ = p.listener.Close()
	}
}

// serveConnections takes connections until the listener is closed or ctx ends, and ends those
// that are open then.
func (p publication) serveConnections(ctx context.Context, r *runner) {
	ctx, cancel := context.WithCancel(ctx)
	listener := accept.Patient(p.listener, nil)
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	places := make(chan struct{}, publishedMost)
	said := sync.OnceFunc(func() {
		r.stderr.Say("nothing listens on port %d of the sandbox, though somebody asked for %s", p.inside, p.URL())
	})
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		select {
		case places <- struct{}{}:
		default: // there are too many; this one may come again
			_ = conn.Close()
			continue
		}
		open.Go(func() {
			defer func() { <-places }()
			defer func() { _ = conn.Close() }()
			p.joinClient(ctx, r, conn, said)
		})
	}
}

// joinClient connects one client with the server inside, which may not listen yet.
func (p publication) joinClient(ctx context.Context, r *runner, conn net.Conn, nobody func()) {
	until := time.Now().Add(publishedTimeout)
	for {
		inside, err := askAgain(ctx, r.client, func(c *client.Client) (net.Conn, error) { return c.Port(ctx, r.box.ID, p.inside) })
		switch {
		case err == nil:
			defer func() { _ = inside.Close() }()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			relayBoth(conn, inside)
			return
		case client.StatusOf(err) != http.StatusServiceUnavailable:
			if ctx.Err() == nil {
				r.stderr.Say("port %d: %s", p.inside, err)
			}
			return
		case time.Now().After(until):
			nobody()
			return
		}
		if pauseFor(ctx, publishedPoll) != nil {
			return
		}
	}
}

// relayBoth copies both ways until both have ended; the end of one way is passed on.
func relayBoth(a, b net.Conn) {
	var group sync.WaitGroup
	group.Go(func() { copyHalf(a, b) })
	copyHalf(b, a)
	group.Wait()
}

func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from) // either may end at any time
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}

// openPorts begins to take connections and says where; the answer ends that.
func (r *runner) openPorts(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, p := range r.published {
		r.stderr.Say("port %d of the sandbox is %s on this host, until the run ends", p.inside, p.URL())
		group.Go(func() { p.serveConnections(ctx, r) })
	}
	return func() {
		cancel()
		group.Wait()
	}
}
