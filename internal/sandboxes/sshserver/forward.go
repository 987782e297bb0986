package sshserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// lastWords is how long what a client said may still take to arrive, once it has gone.
const lastWords = 5 * time.Second

// forward connects a client with a server in the sandbox.
func forward(ctx context.Context, sandbox Sandbox, wanted ssh.NewChannel) {
	var to struct {
		Host     string
		Port     uint32
		From     string
		FromPort uint32
	}
	if ssh.Unmarshal(wanted.ExtraData(), &to) != nil {
		_ = wanted.Reject(ssh.Prohibited, "the forwarding can't be read")
		return
	}
	if !isOwnName(to.Host) || to.Port < 1 || to.Port > 65535 {
		_ = wanted.Reject(ssh.Prohibited, fmt.Sprintf("a sandbox has its own ports and no network: forward to localhost, and not to %s port %d", quoted(to.Host), to.Port))
		return
	}
	inside, err := sandbox.Dial(ctx, int(to.Port))
	if err != nil {
		_ = wanted.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer func() { _ = inside.Close() }()
	outside, requests, err := wanted.Accept()
	if err != nil {
		return // it has gone
	}
	defer func() { _ = outside.Close() }()
	defer safego.When(ctx, func() {
		_ = inside.Close()
		_ = outside.Close()
	})()
	carryBoth(inside, outside, requests)
}

// carryBoth carries both ways until both have ended, or the client has closed the channel.
func carryBoth(inside net.Conn, outside ssh.Channel, requests <-chan *ssh.Request) {
	var both sync.WaitGroup
	defer both.Wait()
	sent := make(chan struct{})
	safego.In(&both, func() {
		defer close(sent)
		carryHalf(inside, outside)
	})
	safego.In(&both, func() {
		ssh.DiscardRequests(requests)
		// The client has closed the channel, or has gone: it hears nothing any more, and
		// whoever is inside may wait for ever.
		last := time.NewTimer(lastWords)
		defer last.Stop()
		select {
		case <-sent:
		case <-last.C:
		}
		_ = inside.Close()
	})
	carryHalf(outside, inside)
	<-sent
	_ = outside.Close()
}

// carryHalf copies one way, and passes its end on. Either side may end at any time.
func carryHalf(to io.WriteCloser, from io.Reader) {
	_, _ = io.Copy(to, from)
	if h, ok := to.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
		return
	}
	_ = to.Close()
}

// isOwnName tells whether a name is the sandbox's for itself.
func isOwnName(host string) bool {
	if host == "localhost" || host == "" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && (a.Unmap().IsLoopback() || a.IsUnspecified())
}
