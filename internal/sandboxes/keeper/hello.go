package keeper

import (
	"context"
	"net"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// makeHello makes the hello of this keeper.
func (s *Server) makeHello() *Hello {
	self, err := process.Self()
	if err != nil { // then nobody takes its numbers for his
		self = process.ID{}
	}
	return &Hello{Protocol: Protocol, Features: Features(), Release: s.cfg.Release, Self: self}
}

// Hello asks the keeper what it is. One that tells nothing, of a release before
// there was anything to tell, is the zero Hello.
func (c *Client) Hello(ctx context.Context) (Hello, error) {
	r, err := c.callForOne(ctx, Request{Verb: VerbPing})
	if err != nil || r.Hello == nil {
		return Hello{}, err
	}
	return *r.Hello, nil
}

// meeting is what is known of the keeper that was asked last.
type meeting struct {
	peer  process.ID // as this process sees it
	hello Hello
}

// meetKeeper returns what the keeper at the other end of a link has told. It is asked once.
func (c *Client) meetKeeper(ctx context.Context, l *link) (meeting, error) {
	peer := listens(l.Raw())
	c.mu.Lock()
	met := c.met
	c.mu.Unlock()
	if peer.Pid != 0 && met.peer == peer {
		return met, nil
	}
	hello, err := c.Hello(ctx)
	if err != nil {
		return meeting{}, err
	}
	met = meeting{peer: peer, hello: hello}
	c.mu.Lock()
	c.met = met
	c.mu.Unlock()
	return met, nil
}

// listens is the process that listens at the other end; zero if it can't be seen.
func listens(conn net.Conn) process.ID {
	cred, err := peerOf(conn)
	if err != nil || !process.Ordinary(int(cred.Pid)) {
		return process.ID{}
	}
	id, err := process.Of(int(cred.Pid))
	if err != nil {
		return process.ID{}
	}
	return id
}

// checkRequest refuses a request that the keeper would refuse, and says why.
func (m meeting) checkRequest(req *Request) error {
	for _, f := range req.neededFeatures() {
		if !m.hello.hasFeature(f) {
			return fault.New(fault.ErrUnavailable, "the keeper that runs is of an older release (protocol %d, this one speaks %d) and can't do this (%s): when its sandboxes have ended, restart the daemon, which then starts a keeper of its own", m.hello.Protocol, Protocol, f)
		}
	}
	return nil
}

// countsAlike tells whether keeper and client count processes and time alike.
func (m meeting) countsAlike() bool { return m.peer.Pid != 0 && m.peer == m.hello.Self }

// peerOf is who is at the other end of a Unix socket: of a client's connection the
// process that listens, of the keeper's the one that connected.
func peerOf(conn net.Conn) (*unix.Ucred, error) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fault.New(fault.ErrForbidden, "not a Unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	return cred, failed
}
