package main

import (
	"context"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sshserver"
)

// hangUpTime bounds the last word to a command whose client has gone.
const hangUpTime = 5 * time.Second

// sshSandbox is a sandbox as the server of SSH needs it.
type sshSandbox struct {
	client *client.Client
	id     string
	alarms func(context.Context) *alarmNews // of this client, from its first command on
}

func newSSHSandbox(c *client.Client, id string) sshSandbox {
	var once sync.Once
	var news *alarmNews
	return sshSandbox{client: c, id: id, alarms: func(ctx context.Context) *alarmNews {
		once.Do(func() { news = watchAlarms(ctx, c, id) })
		return news
	}}
}

// Start implements sshserver.Sandbox. Where ctx ends meanwhile, the daemon's answer is waited for a
// moment all the same: a command that has started is returned, so that it is hung up. One whose start
// takes longer is killed by the daemon, which finds that nobody waits for it.
func (s sshSandbox) Start(ctx context.Context, c sshserver.Command) (sshserver.Process, error) {
	news := s.alarms(ctx)
	whole, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer safego.When(ctx, func() {
		limit := time.NewTimer(hangUpTime)
		defer limit.Stop()
		select {
		case <-limit.C:
			end()
		case <-whole.Done():
		}
	})()
	command, err := s.client.StartCommand(whole, s.id, api.StartCommand{
		Argv: c.Argv, Env: c.Env, User: c.User, Rows: c.Rows, Cols: c.Cols, Stdin: true,
	})
	if err != nil {
		return nil, err
	}
	of := newSession()
	of.attach, of.beside = attaching(s.client, s.id, command.ID), signaling(s.client, s.id, command.ID)
	return sshProcess{session: of, news: news, terminal: c.Rows > 0}, nil
}

// Dial implements sshserver.Sandbox.
func (s sshSandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	return askAgain(ctx, s.client, func(c *client.Client) (net.Conn, error) { return c.Port(ctx, s.id, port) })
}

// sshProcess is a command as the server of SSH needs it.
type sshProcess struct {
	session  *session
	news     *alarmNews
	terminal bool
}

// Follow implements sshserver.Process. A daemon that comes back meanwhile is found
// again, without a word in the command's own streams.
func (p sshProcess) Follow(ctx context.Context, in io.Reader, out, errs io.Writer) (sshserver.Exit, error) {
	s := p.session
	s.out, s.err, s.say = out, errs, func(string, ...any) {}
	go s.pumpInput(ctx, in, func(p []byte) []byte { return p }) // it ends with the channel
	exit, err := s.followCommand(ctx)
	if err == nil {
		p.tellAlarms(ctx, errs)
	}
	return sshserver.Exit{Code: exit.Code, Signal: strings.TrimPrefix(exit.Signal, "SIG"), Error: exit.Error}, err
}

// tellAlarms writes of alarms that came meanwhile, each to the command that ends next. At a
// terminal a line ends at its left.
func (p sshProcess) tellAlarms(ctx context.Context, errs io.Writer) {
	end := "\n"
	if p.terminal {
		end = "\r\n"
	}
	for _, line := range p.news.listNewAlarms(ctx) {
		_, _ = io.WriteString(errs, "cofferdam: "+line+end) // to whoever is there
	}
}

// Resize implements sshserver.Process.
func (p sshProcess) Resize(ctx context.Context, rows, cols uint16) {
	go func() {
		_ = p.session.sendThroughLink(ctx, func(link *client.Attachment) error { return link.Resize(rows, cols) })
	}()
}

// Signal implements sshserver.Process.
func (p sshProcess) Signal(ctx context.Context, name string) {
	go p.session.sendSignal(ctx, name)
}

// HangUp implements sshserver.Process. It waits for no attachment: of a command whose client went while
// it started there is none.
func (p sshProcess) HangUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hangUpTime)
	defer cancel()
	if p.session.beside(ctx, "HUP") != nil {
		p.session.sendSignal(ctx, "HUP")
	}
}

// oddInVersion is what has no place in the line by which SSH begins.
var oddInVersion = regexp.MustCompile(`[^A-Za-z0-9_.]`)

func sshVersion() string { return oddInVersion.ReplaceAllString(version, "_") }
