package attest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/accept"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// mostCanaries bounds the addresses of this host that are listened at.
const mostCanaries = 6

// Canaries listen at addresses of this host. Nobody has a reason to come, and who comes
// without the token is nobody of ours. Safe for concurrent use.
type Canaries struct {
	token  []byte
	opened []io.Closer
	at     []string
	group  sync.WaitGroup

	mu     sync.Mutex // guards visits
	visits []string
}

// Listen opens the canaries of a token, at the loopback addresses and others of this
// host. Close ends them.
func Listen(ctx context.Context, token string) (*Canaries, error) {
	c := &Canaries{token: []byte(token)}
	var failed []error
	for _, host := range hostAddresses() {
		failed = append(failed, c.openListeners(ctx, host))
	}
	if len(c.at) == 0 {
		c.Close()
		return nil, errors.Join(append(failed, errors.New("this host has no address to listen at"))...)
	}
	return c, nil
}

// hostAddresses are this host's, the loopback's first.
func hostAddresses() []string {
	all := []string{"127.0.0.1", "::1"}
	found, err := net.InterfaceAddrs()
	if err != nil {
		return all
	}
	for _, a := range found {
		if prefix, ok := a.(*net.IPNet); ok && prefix.IP.IsGlobalUnicast() && len(all) < mostCanaries {
			all = append(all, prefix.IP.String())
		}
	}
	return all
}

// openListeners listens for connections, and for datagrams at the same port.
func (c *Canaries) openListeners(ctx context.Context, host string) error {
	var config net.ListenConfig
	streams, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	at := streams.Addr().String()
	c.opened, c.at = append(c.opened, streams), append(c.at, at)
	safego.In(&c.group, func() { c.accept(streams, at) })
	packets, err := config.ListenPacket(ctx, "udp", at)
	if err != nil {
		return err
	}
	c.opened = append(c.opened, packets)
	safego.In(&c.group, func() { c.receiveDatagrams(packets, at) })
	return nil
}

func (c *Canaries) accept(l net.Listener, at string) {
	l = accept.Patient(l, nil)
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		safego.In(&c.group, func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(time.Second)) // a word takes no longer
			words := make([]byte, len(c.token))
			n, _ := io.ReadFull(conn, words) // what came is looked at
			c.visited(words[:n], at)
		})
	}
}

func (c *Canaries) receiveDatagrams(l net.PacketConn, at string) {
	words := make([]byte, 512)
	for {
		n, _, err := l.ReadFrom(words)
		if err != nil {
			return
		}
		c.visited(words[:n], at)
	}
}

func (c *Canaries) visited(words []byte, at string) {
	if !bytes.Contains(words, c.token) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.visits, at) {
		c.visits = append(c.visits, at)
	}
}

// At are the canaries' addresses.
func (c *Canaries) At() []string { return slices.Clone(c.at) }

// Visits are the canaries of whose visitors the token was heard so far.
func (c *Canaries) Visits() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.visits)
}

// Close ends the canaries, once those who came were heard. It may be called again.
func (c *Canaries) Close() {
	for _, l := range c.opened {
		_ = l.Close() // it listens no more
	}
	c.group.Wait()
}
