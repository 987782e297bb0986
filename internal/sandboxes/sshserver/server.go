// Package sshserver is an SSH server for one client and one sandbox. It listens nowhere: a
// client's ProxyCommand starts it, and speaks with it over stdin and stdout. The client's requests
// are done in the sandbox with the rights of whoever started it, judged and recorded as any other
// command or connection there.
//
// A session is a command of the sandbox with its streams, started as a shell, by a command line, or
// as a subsystem, of which there is one, sftp. A forwarding leads to a port of the sandbox's
// loopback interface. A sandbox has two keys: a host key, by which the client knows it, and the one
// key that may come in.
//
// Nothing leads from the sandbox to the client: forwardings of the other direction, agents
// and displays are refused.
package sshserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// mostChannels bounds the sessions and forwardings of one client at a time.
const mostChannels = 128

// Sandbox is what a client's wishes are done in.
type Sandbox interface {
	// Start starts a command. The error's text is for the client.
	Start(ctx context.Context, c Command) (Process, error)
	// Dial connects to a port of the sandbox's loopback interface.
	Dial(ctx context.Context, port int) (net.Conn, error)
}

// Command is what is to be started. It has an input.
type Command struct {
	Argv       []string
	Env        map[string]string // as far as the client sets it
	User       string            // "": the sandbox's own
	Rows, Cols uint16            // of its terminal; 0: it has none
}

// Exit is how a command ended.
type Exit struct {
	Code   int
	Signal string // by which it ended, without SIG; "": none
	Error  string // what else there is to say; "": nothing
}

// Process is a command that was started.
type Process interface {
	// Follow passes input and output on until the command has ended.
	Follow(ctx context.Context, in io.Reader, out, err io.Writer) (Exit, error)
	// Resize and Signal wait for nothing; what can't be told any more is lost.
	Resize(ctx context.Context, rows, cols uint16)
	Signal(ctx context.Context, name string) // "INT", "TERM", ...
	// HangUp tells it that its client has gone, and returns when it has been told or can't be.
	HangUp(ctx context.Context)
}

// Server serves one sandbox.
type Server struct {
	Sandbox Sandbox
	Keys    Keys
	Version string // of this program, for the client's log
}

// errUnknownKey is told to nobody in particular: a client says only that it was not let in.
var errUnknownKey = errors.New("this is not the sandbox's key")

// Serve speaks with the client at the other end of conn until either is done or ctx ends.
func (s *Server) Serve(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer safego.When(ctx, func() { _ = conn.Close() })() // whoever uses it is told
	config := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-Cofferdam_" + s.Version,
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), s.Keys.client.Marshal()) {
				return nil, errUnknownKey
			}
			return &ssh.Permissions{}, nil
		},
	}
	config.AddHostKey(s.Keys.host)
	client, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return fmt.Errorf("no SSH client came in: %w", err)
	}
	var open sync.WaitGroup
	safego.In(&open, func() { refuseRequests(requests) })
	places := make(chan struct{}, mostChannels)
	for wanted := range channels {
		select {
		case places <- struct{}{}:
		default:
			_ = wanted.Reject(ssh.ResourceShortage, fmt.Sprintf("a client has at most %d sessions and forwardings at a time", mostChannels))
			continue
		}
		safego.In(&open, func() {
			defer func() { <-places }()
			s.channel(ctx, client.User(), wanted)
		})
	}
	open.Wait() // each has seen that its client has gone
	return nil
}

// refuseRequests says no to what is asked of the connection as a whole: ports and sockets on this
// side for the sandbox to connect to. Asking whether somebody is there is answered, too.
func refuseRequests(requests <-chan *ssh.Request) {
	for r := range requests {
		if r.WantReply {
			_ = r.Reply(r.Type == "keepalive@openssh.com", nil) // whoever has gone needs none
		}
	}
}

// channel opens what a client wants to have opened, and stays with it.
func (s *Server) channel(ctx context.Context, user string, wanted ssh.NewChannel) {
	switch wanted.ChannelType() {
	case "session":
		opened, requests, err := wanted.Accept()
		if err != nil {
			return // it has gone
		}
		defer func() { _ = opened.Close() }() // closed already, where all went well
		serveSession(ctx, s.Sandbox, userInside(user), opened, requests)
	case "direct-tcpip":
		forward(ctx, s.Sandbox, wanted)
	default:
		_ = wanted.Reject(ssh.UnknownChannelType, "a sandbox has sessions and its own ports, and no "+quoted(wanted.ChannelType()))
	}
}
