package guest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// tap is a host's end that can be taken from its session, as a copy's host has
// nothing of the source's.
type tap struct {
	net.Conn
	raw net.Conn   // the socket below
	mu  sync.Mutex // guards cut; held over a write
	cut bool
}

func (c *tap) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return 0, io.EOF
	}
	return n, err
}

func (c *tap) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return 0, io.ErrClosedPipe
	}
	return c.Conn.Write(p)
}

func (c *tap) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return nil
	}
	return c.Conn.Close()
}

// take ends the session above and gives the connection.
func (c *tap) take() net.Conn {
	c.mu.Lock()
	c.cut = true
	c.mu.Unlock()
	_ = c.raw.SetReadDeadline(time.Unix(1, 0))
	return c.raw
}

// renewable is an agent whose channel can be started anew.
type renewable struct {
	*agentHere
	tap *tap
}

func startRenewable(t *testing.T, open func(channel.Open, *channel.Conn) channel.Reply) *renewable {
	t.Helper()
	hostEnd, guestFile, err := channel.SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.FileConn(guestFile)
	if err := errors.Join(err, guestFile.Close()); err != nil {
		t.Fatal(err)
	}
	session, err := channel.NewGuestSession(conn)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	agent := New(Config{
		Session: session, Root: root, DNS: ownAddress(), Socket: "/s",
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("the agent: %v", err)
		}
	})
	c := &tap{Conn: hostEnd, raw: hostEnd}
	a := &renewable{&agentHere{host: newHost(t, c, open), agent: agent, root: root}, c}
	a.mustCall(channel.Call{Kind: channel.CallConfigure, Configure: testConfigure(t)})
	return a
}

// renew starts the channel anew: the agent is a copy, and this its host.
func (a *renewable) renew(open func(channel.Open, *channel.Conn) channel.Reply) {
	a.t.Helper()
	conn := a.tap.take()
	<-a.session.Done()
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		a.t.Fatal(err)
	}
	wire := channel.UnpluggedWire()
	if err := wire.Renew(a.t.Context(), conn); err != nil {
		a.t.Fatal(err)
	}
	c := &tap{Conn: &wired{Wire: wire, Conn: conn}, raw: conn}
	a.host, a.tap = newHost(a.t, c, open), c
}

// wired is a wire where a connection is asked for.
type wired struct {
	*channel.Wire
	net.Conn
}

func (w *wired) Read(p []byte) (int, error)  { return w.Wire.Read(p) }
func (w *wired) Write(p []byte) (int, error) { return w.Wire.Write(p) }
func (w *wired) Close() error                { return w.Wire.Close() }

// adopt gives a command a stream of the present session.
func (a *renewable) adopt(id string) *execution {
	a.t.Helper()
	stream, reply := a.call(channel.Call{Kind: channel.CallAdopt, Adopt: id})
	if !reply.OK {
		a.t.Fatalf("adopt %s: %s", id, reply.Error)
	}
	return &execution{t: a.t, stream: stream}
}

// TestCommandsOutliveAReset: with their input, output, signals and exit.
func TestCommandsOutliveAReset(t *testing.T) {
	a := startRenewable(t, nil)
	first := a.start(channel.Exec{ID: "lines", Argv: []string{"sh", "-c", `while read -r l; do echo "got $l"; done; echo end`}, Stdin: true})
	first.send(channel.FrameStdin, []byte("one\n"))
	first.until("got one\n")
	sleeper := a.start(channel.Exec{ID: "sleeper", Argv: []string{"sleep", "1000"}})
	for !sleeper.next() || sleeper.started.PID == 0 {
		t.Fatal("the sleeper did not start")
	}
	a.renew(nil)
	second, other := a.adopt("lines"), a.adopt("sleeper")
	second.send(channel.FrameStdin, []byte("two\n"))
	second.until("got two\n")
	other.sendJSON(channel.FrameSignal, channel.Signal{Name: "TERM"})
	if exit := other.wait(); exit.Signal != "TERM" {
		t.Errorf("the sleeper: %+v", exit)
	}
	if other.started != sleeper.started {
		t.Errorf("started %+v, and then %+v", sleeper.started, other.started)
	}
	a.renew(nil) // a copy of the copy
	third := a.adopt("lines")
	third.send(channel.FrameStdin, nil)
	if exit := third.wait(); exit.Code != 0 || third.stdout.String() != "end\n" {
		t.Errorf("%+v, %q", exit, third.stdout.String())
	}
	if got := a.sh("echo on"); got != "on\n" {
		t.Errorf("%q", got)
	}
}

// TestOutputIsHeldBackOverAReset: from what the copy has not said yet, nothing
// is missing.
func TestOutputIsHeldBackOverAReset(t *testing.T) {
	const last = 400_000
	a := startRenewable(t, nil)
	first := a.start(channel.Exec{ID: "much", Argv: []string{"seq", "1", strconv.Itoa(last)}})
	first.until("\n5000\n")
	a.renew(nil)
	second := a.adopt("much")
	if exit := second.wait(); exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
	lines := strings.Split(strings.TrimSuffix(second.stdout.String(), "\n"), "\n")
	if len(lines) < 100 {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines[1:] { // the first may be a part of one
		if want := last - len(lines) + 2 + i; line != strconv.Itoa(want) {
			t.Fatalf("line %d is %q instead of %d", i+1, line, want)
		}
	}
}

// TestAnExitWaitsForItsAdopter: and the command is known no longer then.
func TestAnExitWaitsForItsAdopter(t *testing.T) {
	a := startRenewable(t, nil)
	first := a.start(channel.Exec{ID: "brief", Argv: []string{"sh", "-c", "echo $$; read -r l; echo more; exit 7"}, Stdin: true})
	first.until("\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first.stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	failed := a.start(channel.Exec{ID: "never", Argv: []string{"/bin/sh", "-c", "echo; read l"}, Stdin: true})
	failed.until("\n") // or it might not have begun when its session ends
	a.renew(nil)
	a.mustCall(channel.Call{Kind: channel.CallPing})
	a.sh("kill " + strconv.Itoa(pid))
	gone(t, pid)
	second := a.adopt("brief")
	if exit := second.wait(); exit.Signal != "TERM" {
		t.Errorf("%+v", exit)
	}
	for id, code := range map[string]channel.ErrorCode{"brief": channel.CodeNotFound, "unheard of": channel.CodeNotFound} {
		stream, reply := a.call(channel.Call{Kind: channel.CallAdopt, Adopt: id})
		_ = stream.Close()
		if reply.OK || reply.Code != code {
			t.Errorf("adopt %s: %+v", id, reply)
		}
	}
	never := a.adopt("never")
	stream, reply := a.call(channel.Call{Kind: channel.CallAdopt, Adopt: "never"})
	_ = stream.Close()
	if reply.OK || reply.Code != channel.CodeExists {
		t.Errorf("a second adoption: %+v", reply)
	}
	never.send(channel.FrameStdin, nil)
	never.wait()
}

// TestABrokenChannelIsNoReset: its commands are killed.
func TestABrokenChannelIsNoReset(t *testing.T) {
	a := startRenewable(t, nil)
	e := a.start(channel.Exec{Argv: []string{"sh", "-c", "echo $$; exec sleep 1000"}})
	e.until("\n")
	pid, err := strconv.Atoi(strings.TrimSpace(e.stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	_ = a.session.Close()
	gone(t, pid)
}

// TestQuestionsAreAskedAnew: one whose answer was on its way.
func TestQuestionsAreAskedAnew(t *testing.T) {
	asked, never := make(chan struct{}), make(chan struct{})
	a := startRenewable(t, func(channel.Open, *channel.Conn) channel.Reply {
		close(asked)
		<-never
		return channel.Reply{}
	})
	defer close(never)
	type answer struct {
		reply channel.Reply
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		stream, reply, err := openStream(t.Context(), guestLine{a.agent.config.Session, a.agent.clock}, channel.Open{Kind: channel.OpenWhy}, whyDeadline)
		if err == nil {
			_ = stream.Close()
		}
		got <- answer{reply, err}
	}()
	<-asked
	a.mustCall(channel.Call{Kind: channel.CallHold, Hold: &channel.Hold{Stopped: true}})
	a.renew(func(channel.Open, *channel.Conn) channel.Reply { return channel.Reply{OK: true, Text: "because"} })
	if r := <-got; r.err != nil || r.reply.Text != "because" {
		t.Errorf("%+v", r)
	}
	a.mustCall(channel.Call{Kind: channel.CallPing})
	a.agent.paid.mu.Lock()
	defer a.agent.paid.mu.Unlock()
	if a.agent.paid.stopped {
		t.Error("the clock of commands' timeouts stands still for a question of the source's")
	}
}

// TestUnwantedOutputIsThrownAway: after a while the command goes on, and can
// still be adopted.
func TestUnwantedOutputIsThrownAway(t *testing.T) {
	a := startRenewable(t, nil)
	streams := make(chan *channel.Conn, 1)
	a.open = func(_ channel.Open, s *channel.Conn) channel.Reply { streams <- s; return channel.Reply{OK: true} }
	session := a.agent.config.Session
	stream, err := session.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := newOutlet(t.Context(), stream, a.agent.clock)
	o.timeout = 1
	if o.claimOutlet() {
		t.Error("a stream that works was given away")
	}
	o.loseStream(stream)
	if err := o.WriteFrame(channel.FrameStdout, []byte("nobody's")); err != nil {
		t.Error(err)
	}
	if _, unwanted, _ := o.streamNow(); !unwanted {
		t.Error("it was not thrown away")
	}
	if !o.claimOutlet() || o.claimOutlet() {
		t.Error("a claim is not one's own")
	}
	o.giveStream(stream)
	if err := o.WriteFrame(channel.FrameStdout, []byte("wanted")); err != nil {
		t.Error(err)
	}
	if got, err := o.awaitStream(); err != nil || got != stream {
		t.Errorf("%v, %v", got, err)
	}
	_ = stream.Close()
}
