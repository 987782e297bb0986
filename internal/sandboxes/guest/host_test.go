package guest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// TestMain makes the test process inherit orphans, as PID 1 does.
func TestMain(m *testing.M) {
	if os.Getenv(stageVariable) != "" {
		enterSandbox()
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if binary, err := buildAgent(); err == nil {
			_ = os.RemoveAll(filepath.Dir(binary))
		}
		os.Exit(code)
	}))
}

// host is the host's end of an agent's channel. open answers the streams that
// the guest opens; nil refuses them all.
type host struct {
	t       *testing.T
	session *channel.Session
	open    func(open channel.Open, stream *channel.Conn) channel.Reply
	serving sync.WaitGroup
}

// newHost serves what comes over conn until the test ends.
func newHost(t *testing.T, conn net.Conn, open func(channel.Open, *channel.Conn) channel.Reply) *host {
	t.Helper()
	session, err := channel.NewHostSession(conn)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, session: session, open: open}
	h.serving.Go(func() {
		for {
			stream, err := session.Accept()
			if err != nil {
				return
			}
			h.serving.Go(func() { h.answer(stream) })
		}
	})
	t.Cleanup(func() {
		_ = session.Close()
		h.serving.Wait()
	})
	return h
}

func (h *host) answer(stream *channel.Conn) {
	defer stream.Close()
	var open channel.Open
	if err := stream.ReadStrictJSON(channel.FrameOpen, &open); err != nil {
		return
	}
	reply := channel.Reply{Error: "refused"}
	if h.open != nil {
		reply = h.open(open, stream)
	}
	if stream.WriteJSON(channel.FrameReply, reply) == nil && reply.OK && open.Kind == channel.OpenTCP {
		_, _ = io.Copy(stream.Raw(), stream.Raw()) // an echo
	}
}

// call opens a stream with a call and reads the reply.
func (h *host) call(call channel.Call) (*channel.Conn, channel.Reply) {
	h.t.Helper()
	stream, err := h.session.Open(h.t.Context())
	if err != nil {
		h.t.Fatalf("open a stream: %v", err)
	}
	var reply channel.Reply
	if err := stream.WriteJSON(channel.FrameOpen, call); err != nil {
		h.t.Fatal(err)
	}
	if err := stream.ReadStrictJSON(channel.FrameReply, &reply); err != nil {
		h.t.Fatalf("read the reply to %s: %v", call.Kind, err)
	}
	return stream, reply
}

// mustCall is call for a call that is only a reply.
func (h *host) mustCall(call channel.Call) channel.Reply {
	h.t.Helper()
	stream, reply := h.call(call)
	_ = stream.Close()
	if !reply.OK {
		h.t.Fatalf("%s: %s", call.Kind, reply.Error)
	}
	return reply
}

// execution is a running command as the host sees it.
type execution struct {
	t       *testing.T
	stream  *channel.Conn
	started channel.Started
	stdout  bytes.Buffer
	stderr  bytes.Buffer
	exit    *channel.Exit
}

// start runs a command; refused, the test fails.
func (h *host) start(exec channel.Exec) *execution {
	h.t.Helper()
	if exec.ID == "" {
		exec.ID = "c1"
	}
	stream, reply := h.call(channel.Call{Kind: channel.CallExec, Exec: &exec})
	if !reply.OK {
		h.t.Fatalf("exec %q: %s", exec.Argv, reply.Error)
	}
	return &execution{t: h.t, stream: stream}
}

// run runs a command to its end.
func (h *host) run(exec channel.Exec) *execution {
	h.t.Helper()
	e := h.start(exec)
	e.wait()
	return e
}

// sh runs a shell script to its end and returns its standard output.
func (h *host) sh(script string) string {
	h.t.Helper()
	e := h.run(channel.Exec{Argv: []string{"sh", "-c", script}})
	if e.exit.Code != 0 {
		h.t.Fatalf("%q: %+v\n%s%s", script, *e.exit, e.stdout.String(), e.stderr.String())
	}
	return e.stdout.String()
}

// next reads one frame; false at the end of the stream.
func (e *execution) next() bool {
	e.t.Helper()
	kind, payload, err := e.stream.ReadFrame()
	if err != nil {
		return false
	}
	switch kind {
	case channel.FrameStarted:
		err = channel.DecodeStrictJSON(kind, payload, &e.started)
	case channel.FrameStdout:
		e.stdout.Write(payload)
	case channel.FrameStderr:
		e.stderr.Write(payload)
	case channel.FrameExit:
		e.exit = new(channel.Exit)
		err = channel.DecodeStrictJSON(kind, payload, e.exit)
	default:
		e.t.Errorf("a frame of type %d from a command", kind)
	}
	if err != nil {
		e.t.Error(err)
	}
	return true
}

// wait reads to the end of the stream, which an exit must precede.
func (e *execution) wait() channel.Exit {
	e.t.Helper()
	for e.next() {
		if e.exit != nil {
			break
		}
	}
	if e.exit == nil {
		e.t.Fatal("the stream ended without an exit")
	}
	_ = e.stream.Close()
	return *e.exit
}

// until reads until standard output contains s.
func (e *execution) until(s string) {
	e.t.Helper()
	for !strings.Contains(e.stdout.String(), s) {
		if !e.next() || e.exit != nil {
			e.t.Fatalf("the command ended before it said %q: %q %q %+v", s, e.stdout.String(), e.stderr.String(), e.exit)
		}
	}
}

func (e *execution) send(kind channel.FrameType, payload []byte) {
	e.t.Helper()
	if err := e.stream.WriteFrame(kind, payload); err != nil {
		e.t.Fatal(err)
	}
}

func (e *execution) sendJSON(kind channel.FrameType, v any) {
	e.t.Helper()
	if err := e.stream.WriteJSON(kind, v); err != nil {
		e.t.Fatal(err)
	}
}

// agentHere is an agent in this process, with its files below root.
type agentHere struct {
	*host
	agent *Agent
	root  string
}

// testUser is whoever runs the tests: only a root agent can run commands as another.
func testUser(t *testing.T) channel.User {
	t.Helper()
	return channel.User{Name: "agent", UID: os.Getuid(), GID: os.Getgid(), Home: t.TempDir()}
}

// startAgent runs a configured agent in this process.
func startAgent(t *testing.T, open func(channel.Open, *channel.Conn) channel.Reply) *agentHere {
	t.Helper()
	a := startBare(t, open)
	a.mustCall(channel.Call{Kind: channel.CallConfigure, Configure: testConfigure(t)})
	return a
}

func testConfigure(t *testing.T) *channel.Configure {
	t.Helper()
	return &channel.Configure{
		Hostname: "box", User: testUser(t), CAPEM: []byte(testCA),
		Env: map[string]string{"PATH": "/usr/bin:/bin"},
	}
}

// startBare runs an agent that is not configured.
func startBare(t *testing.T, open func(channel.Open, *channel.Conn) channel.Reply) *agentHere {
	t.Helper()
	hostEnd, guestEnd, err := channel.SocketPair()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.FileConn(guestEnd)
	if err != nil {
		t.Fatal(err)
	}
	_ = guestEnd.Close()
	session, err := channel.NewGuestSession(conn)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	agent := New(Config{
		Session: session, Root: root, DNS: ownAddress(), Proxy: ownAddress(), Socket: "/s",
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("the agent: %v", err)
		}
	})
	a := &agentHere{host: newHost(t, hostEnd, open), agent: agent, root: root}
	a.mustCall(channel.Call{Kind: channel.CallPing})
	return a
}

// agents counts the agents of this process, for ownAddress.
var agents atomic.Int64

// ownAddress is one for a resolver that nothing else has for UDP or TCP.
func ownAddress() string {
	return fmt.Sprintf("127.66.%d.%d:5353", os.Getpid()%250+1, agents.Add(1)%250+1)
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	for {
		p, err := process.Read(pid)
		if err != nil || p.Dead {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("process %d is still there", pid)
		}
		runtime.Gosched()
	}
}

// readWhenThere reads a file that another process is about to write.
func readWhenThere(t *testing.T, path string) string {
	t.Helper()
	for t.Context().Err() == nil {
		if data, err := os.ReadFile(path); err == nil && bytes.HasSuffix(data, []byte("\n")) {
			return strings.TrimSpace(string(data))
		}
		runtime.Gosched()
	}
	t.Fatalf("%s was never written", filepath.Base(path))
	return ""
}

const testCA = `-----BEGIN CERTIFICATE-----
AAAA
-----END CERTIFICATE-----
`
