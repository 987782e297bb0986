package sshserver_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sshserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is a sandbox whose commands are processes of the test's, and whose ports are servers
// of it.
type box struct {
	ports map[int]string

	mu      sync.Mutex // guards what follows
	started []sshserver.Command
	hungUp  chan struct{}
	sizes   chan [2]uint16

	asked, gone chan struct{} // of a command that is slow to start: that it is wanted; and that its client has gone
	hasGone     func()
}

// slowStart is how long that command takes to start once its client has gone.
const slowStart = 300 * time.Millisecond

// ending tells when nothing more is to be read.
type ending struct {
	net.Conn

	over func()
}

func (e *ending) Read(b []byte) (int, error) {
	n, err := e.Conn.Read(b)
	if err != nil {
		e.over()
	}
	return n, err
}

func newBox() *box {
	b := &box{ports: map[int]string{}, hungUp: make(chan struct{}, 1), sizes: make(chan [2]uint16, 10), asked: make(chan struct{}, 1), gone: make(chan struct{})}
	b.hasGone = sync.OnceFunc(func() { close(b.gone) })
	return b
}

func (b *box) Start(ctx context.Context, c sshserver.Command) (sshserver.Process, error) {
	if strings.Contains(strings.Join(c.Argv, " "), "slow") {
		b.asked <- struct{}{}
		<-b.gone
		select {
		case <-time.After(slowStart):
		case <-ctx.Done():
			return nil, ctx.Err() // it may have been started all the same
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.Contains(strings.Join(c.Argv, " "), "forbidden") {
		return nil, errors.New("the policy's rule no-forbidden refuses it")
	}
	b.started = append(b.started, c)
	return &process{box: b, start: c}, nil
}

func (b *box) Dial(ctx context.Context, port int) (net.Conn, error) {
	to := b.ports[port]
	if to == "" {
		return nil, errors.New("nothing listens on port " + strconv.Itoa(port))
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to)
}

func (b *box) commands() []sshserver.Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.started)
}

type process struct {
	box   *box
	start sshserver.Command
	mu    sync.Mutex // guards cmd
	cmd   *exec.Cmd
}

func (p *process) Follow(ctx context.Context, in io.Reader, out, errs io.Writer) (sshserver.Exit, error) {
	cmd := exec.CommandContext(ctx, p.start.Argv[0], p.start.Argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = out, errs
	for name, value := range p.start.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return sshserver.Exit{}, err
	}
	p.mu.Lock()
	err = cmd.Start()
	p.cmd = cmd
	p.mu.Unlock()
	if err != nil {
		return sshserver.Exit{}, err
	}
	go func() {
		_, _ = io.Copy(stdin, in)
		_ = stdin.Close()
	}()
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return sshserver.Exit{Code: 128 + int(status.Signal()), Signal: map[syscall.Signal]string{syscall.SIGHUP: "HUP", syscall.SIGTERM: "TERM"}[status.Signal()]}, nil
	}
	return sshserver.Exit{Code: cmd.ProcessState.ExitCode()}, nil
}

func (p *process) Resize(_ context.Context, rows, cols uint16) { p.box.sizes <- [2]uint16{rows, cols} }

func (p *process) Signal(_ context.Context, name string) {
	p.kill(map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[name])
}

func (p *process) HangUp(context.Context) {
	p.kill(syscall.SIGHUP)
	p.box.hungUp <- struct{}{}
}

func (p *process) kill(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

// served is a server for a box, and how to reach it.
type served struct {
	*box
	keys   sshserver.Keys
	folder string
}

func serve(t *testing.T) served {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "ssh")
	keys, err := sshserver.KeysIn(folder, "sb1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return served{newBox(), keys, filepath.Join(folder, "sb1")}
}

// pair is the two ends of a connection that holds some bytes: both sides of SSH speak
// first.
func pair(t *testing.T) (here, there net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		if ends[i], err = net.FileConn(file); err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
	}
	return ends[0], ends[1]
}

// signer is the key that a file has.
func signer(t *testing.T, path string) ssh.Signer {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// dial comes in with a key. The server's words at its end are the channel's.
func (s served) dial(t *testing.T, user string, key ssh.Signer) (*ssh.Client, <-chan error, error) {
	t.Helper()
	here, there := pair(t)
	over := make(chan error, 1)
	go func() {
		over <- (&sshserver.Server{Sandbox: s.box, Keys: s.keys, Version: "test"}).Serve(t.Context(), &ending{there, s.hasGone})
	}()
	conn, channels, requests, err := ssh.NewClientConn(here, "sb1", &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: ssh.FixedHostKey(signer(t, filepath.Join(s.folder, "host_key")).PublicKey()),
	})
	if err != nil {
		_ = here.Close()
		return nil, over, err
	}
	return ssh.NewClient(conn, channels, requests), over, nil
}

// client comes in, and sees to it that the server ends.
func (s served) client(t *testing.T, user string) *ssh.Client {
	t.Helper()
	c, over, err := s.dial(t, user, signer(t, filepath.Join(s.folder, "id_ed25519")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	return c
}

func session(t *testing.T, c *ssh.Client) *ssh.Session {
	t.Helper()
	s, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCommand: streams stay apart, input arrives and ends, the code is the command's, and
// the user and the variables are those that were asked for.
func TestCommand(t *testing.T) {
	t.Parallel()
	in := serve(t)
	s := session(t, in.client(t, "root"))
	var out, errs bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader("given"), &out, &errs
	if err := s.Setenv("WHO", "me"); err != nil {
		t.Fatal(err)
	}
	err := s.Run(`cat; echo "$WHO" >&2; exit 3`)
	exit, ok := errors.AsType[*ssh.ExitError](err)
	if !ok || exit.ExitStatus() != 3 || out.String() != "given" || errs.String() != "me\n" {
		t.Errorf("%v %q %q", err, out.String(), errs.String())
	}
	if got := in.commands(); len(got) != 1 || got[0].User != "root" || got[0].Rows != 0 {
		t.Errorf("%+v", got)
	}
}

// TestUsers: a number is a number, and any other name is the sandbox's own user.
func TestUsers(t *testing.T) {
	t.Parallel()
	for login, want := range map[string]string{"root": "root", "65534": "65534", "alice": "", "-1": ""} {
		in := serve(t)
		if err := session(t, in.client(t, login)).Run("true"); err != nil {
			t.Fatal(err)
		}
		if got := in.commands()[0].User; got != want {
			t.Errorf("%s is %q, not %q", login, got, want)
		}
	}
}

// TestTerminal: it has the client's size and name, and a later size arrives.
func TestTerminal(t *testing.T) {
	t.Parallel()
	in := serve(t)
	s := session(t, in.client(t, "user"))
	stdin, err := s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.RequestPty("xterm-odd", 30, 100, nil), s.Start("cat"), s.WindowChange(50, 200)); err != nil {
		t.Fatal(err)
	}
	if got := <-in.sizes; got != [2]uint16{50, 200} {
		t.Errorf("the size is %v", got)
	}
	_ = stdin.Close()
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	if got := in.commands()[0]; got.Rows != 30 || got.Cols != 100 || got.Env["TERM"] != "xterm-odd" {
		t.Errorf("%+v", got)
	}
}

// TestOddTerminal: a size that no terminal has is the usual one.
func TestOddTerminal(t *testing.T) {
	t.Parallel()
	in := serve(t)
	s := session(t, in.client(t, "user"))
	if err := errors.Join(s.RequestPty("x", 10_001, 1<<31, nil), s.Run("true")); err != nil {
		t.Fatal(err)
	}
	if got := in.commands()[0]; got.Rows != 24 || got.Cols != 80 {
		t.Errorf("%+v", got)
	}
}

// TestVariables: what is none is refused, and what is too much.
func TestVariables(t *testing.T) {
	t.Parallel()
	in := serve(t)
	s := session(t, in.client(t, "user"))
	for _, v := range [][2]string{{"", "x"}, {"A=B", "x"}, {"A\x00", "x"}, {"A", "x\x00"}, {"A", strings.Repeat("x", 32<<10)}, {"A\xff", "x"}, {"A", "x\xff"}} {
		if err := s.Setenv(v[0], v[1]); err == nil {
			t.Errorf("%q is a variable", v[0])
		}
	}
	most := 0
	for most < 300 && s.Setenv("V"+strconv.Itoa(most), "x") == nil {
		most++
	}
	if err := s.Run("true"); err != nil {
		t.Fatal(err)
	}
	if got := in.commands()[0].Env; most != 200 || len(got) != 200 || got["V0"] != "x" {
		t.Errorf("%d variables were taken, and the command has %d", most, len(got))
	}
}

// TestRefusedCommand: who asked is told why, and the code is that of a refusal.
func TestRefusedCommand(t *testing.T) {
	t.Parallel()
	s := session(t, serve(t).client(t, "user"))
	out, err := s.CombinedOutput("forbidden")
	exit, ok := errors.AsType[*ssh.ExitError](err)
	if !ok || exit.ExitStatus() != 126 || string(out) != "cofferdam: the policy's rule no-forbidden refuses it\n" {
		t.Errorf("%v %q", err, out)
	}
}

// TestSignal: a signal is the command's, and its end by one is told as that.
func TestSignal(t *testing.T) {
	t.Parallel()
	s := session(t, serve(t).client(t, "user"))
	out, err := s.StdoutPipe()
	if err := errors.Join(err, s.Start("echo there; exec sleep 1000")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := s.Signal(ssh.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err = s.Wait()
	if exit, ok := errors.AsType[*ssh.ExitError](err); !ok || exit.Signal() != "TERM" {
		t.Error(err)
	}
}

// TestHangUp: a command whose client goes is told so, as by a terminal.
func TestHangUp(t *testing.T) {
	t.Parallel()
	in := serve(t)
	c, over, err := in.dial(t, "user", signer(t, filepath.Join(in.folder, "id_ed25519")))
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, c)
	out, err := s.StdoutPipe()
	if err := errors.Join(err, s.Start("echo there; exec sleep 1000")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	<-in.hungUp
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// TestHangUpAtOnce: also one that was just being started when its client went.
func TestHangUpAtOnce(t *testing.T) {
	t.Parallel()
	in := serve(t)
	c, over, err := in.dial(t, "user", signer(t, filepath.Join(in.folder, "id_ed25519")))
	if err != nil {
		t.Fatal(err)
	}
	if err := session(t, c).Start("exec sleep 1000 # slow"); err != nil {
		t.Fatal(err)
	}
	<-in.asked
	_ = c.Close()
	select {
	case <-in.hungUp:
		if err := <-over; err != nil {
			t.Error(err)
		}
	case err := <-over:
		t.Error("it was told nothing, and goes on:", err)
	}
}

// TestForwardWhoseClientHasGone ends, whatever the server in the sandbox does, and has said
// to it all that was said.
func TestForwardWhoseClientHasGone(t *testing.T) {
	t.Parallel()
	in := serve(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	heard := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn)
		heard <- string(all)
		<-t.Context().Done() // that nobody says more is no reason to hang up
	}()
	in.ports[8000] = listener.Addr().String()
	c, over, err := in.dial(t, "user", signer(t, filepath.Join(in.folder, "id_ed25519")))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.Dial("tcp", "localhost:8000")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "last words")
	_ = c.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if got := <-heard; got != "last words" {
		t.Errorf("%q", got)
	}
}

// TestForward: the sandbox's own ports are reached, and the end of each half is passed on.
func TestForward(t *testing.T) {
	t.Parallel()
	in := serve(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	in.ports[8000] = listener.Addr().String()
	c := in.client(t, "user")
	conn, err := c.Dial("tcp", "localhost:8000")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "echoed")
	_ = conn.(interface{ CloseWrite() error }).CloseWrite()
	if got, err := io.ReadAll(conn); err != nil || string(got) != "echoed" {
		t.Errorf("%q %v", got, err)
	}
}

// TestRefusals: nothing leads from the sandbox to the client, nor through the sandbox to
// anywhere else; what can be refused with a reason has one.
func TestRefusals(t *testing.T) {
	t.Parallel()
	in := serve(t)
	c := in.client(t, "user")
	for to, want := range map[string]string{
		"other.example:80": "a sandbox has its own ports and no network: forward to localhost, and not to",
		"10.0.0.1:22":      `forward to localhost`,
		"localhost:9000":   "nothing listens on port 9000",
	} {
		if _, err := c.Dial("tcp", to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", to, err)
		}
	}
	for _, port := range []uint32{0, 65536, 1<<32 - 1} {
		in.ports[int(port)] = "127.0.0.1:1"
		to := ssh.Marshal(struct {
			Host     string
			Port     uint32
			From     string
			FromPort uint32
		}{Host: "localhost", Port: port})
		if _, _, err := c.OpenChannel("direct-tcpip", to); err == nil || !strings.Contains(err.Error(), "forward to localhost, and not to") {
			t.Errorf("%d is a port: %v", port, err)
		}
	}
	if _, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("the sandbox may connect to this side")
	}
	if ok, _, err := c.SendRequest("streamlocal-forward@openssh.com", true, nil); ok || err != nil {
		t.Error("the sandbox may connect to a socket of this side:", err)
	}
	if ok, _, err := c.SendRequest("keepalive@openssh.com", true, nil); !ok || err != nil {
		t.Error("nobody says that somebody is there:", err)
	}
	if _, _, err := c.OpenChannel("direct-streamlocal@openssh.com", nil); err == nil || !strings.Contains(err.Error(), "has sessions and its own ports") {
		t.Error(err)
	}
	s := session(t, c)
	for _, request := range []string{"auth-agent-req@openssh.com", "x11-req", "env", "pty-req", "exec", "subsystem", "window-change", "signal"} {
		if ok, err := s.SendRequest(request, true, []byte{0, 0, 0, 200, 'x'}); ok || err != nil {
			t.Errorf("%s: %v %v", request, ok, err)
		}
	}
	if err := s.Run("true"); err != nil {
		t.Error("after all that nothing can be started:", err)
	}
	if n := len(in.commands()); n != 1 {
		t.Errorf("%d commands were started", n)
	}
	if err := session(t, c).RequestSubsystem("netconf"); err == nil {
		t.Error("there is an unknown subsystem")
	}
}

// TestOneCommand: a session has one.
func TestOneCommand(t *testing.T) {
	t.Parallel()
	in := serve(t)
	s := session(t, in.client(t, "user"))
	stdin, err := s.StdinPipe()
	if err := errors.Join(err, s.Start("cat")); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.SendRequest("exec", true, ssh.Marshal(struct{ C string }{"true"})); ok || err != nil {
		t.Error(ok, err)
	}
	_ = stdin.Close()
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
	if n := len(in.commands()); n != 1 {
		t.Errorf("%d commands were started", n)
	}
}

// TestTooMany: a client's channels are bounded, and the next has a place when one has gone.
func TestTooMany(t *testing.T) {
	t.Parallel()
	c := serve(t).client(t, "user")
	var last ssh.Channel
	for i := 0; ; i++ {
		opened, requests, err := c.OpenChannel("session", nil)
		if err != nil {
			if i != 128 || !strings.Contains(err.Error(), "at most 128") {
				t.Errorf("after %d: %v", i, err)
			}
			break
		}
		go ssh.DiscardRequests(requests)
		last = opened
	}
	_ = last.Close()
	for deadline := time.Now().Add(time.Minute); ; {
		opened, _, err := c.OpenChannel("session", nil)
		if err == nil {
			_ = opened.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestStrangers: only the sandbox's key comes in, and no client without one.
func TestStrangers(t *testing.T) {
	t.Parallel()
	in, other := serve(t), serve(t)
	if _, over, err := in.dial(t, "user", signer(t, filepath.Join(other.folder, "id_ed25519"))); err == nil || <-over == nil {
		t.Error("another sandbox's key came in")
	}
	if _, over, err := in.dial(t, "user", signer(t, filepath.Join(in.folder, "host_key"))); err == nil || <-over == nil {
		t.Error("the host's own key came in")
	}
	c, over, err := in.dial(t, "user", signer(t, filepath.Join(in.folder, "id_ed25519"))) // the control
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// TestRubbish: what is no SSH ends, with a word.
func TestRubbish(t *testing.T) {
	t.Parallel()
	in := serve(t)
	here, there := pair(t)
	over := make(chan error, 1)
	go func() { over <- (&sshserver.Server{Sandbox: in.box, Keys: in.keys}).Serve(t.Context(), there) }()
	go func() { _, _ = io.Copy(io.Discard, here) }()
	_, _ = io.WriteString(here, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"+strings.Repeat("x", 1<<10)+"\r\n")
	_ = here.Close()
	if err := <-over; err == nil || !strings.HasPrefix(err.Error(), "no SSH client came in: ") {
		t.Error(err)
	}
}

// TestChannelsHaveABound: sessions and forwardings of one client are bounded together, the one
// too many is told so, and one that ends makes room. Another client is not concerned.
func TestChannelsHaveABound(t *testing.T) {
	t.Parallel()
	const most = 128
	in := serve(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	in.ports[8080] = listener.Addr().String()
	c := in.client(t, "user")
	var sessions []*ssh.Session
	for range most - 1 {
		sessions = append(sessions, session(t, c))
	}
	if _, err := c.Dial("tcp", "localhost:8080"); err != nil {
		t.Fatalf("INCONCLUSIVE: not even the last one that there is room for: %v", err)
	}
	for range 3 {
		_, err := c.NewSession()
		refused, ok := errors.AsType[*ssh.OpenChannelError](err)
		if !ok || refused.Reason != ssh.ResourceShortage || !strings.Contains(refused.Message, strconv.Itoa(most)) {
			t.Fatalf("one too many: %v", err)
		}
	}
	if err := session(t, in.client(t, "user")).Run("true"); err != nil {
		t.Errorf("another client: %v", err)
	}
	if err := sessions[0].Run("true"); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(time.Minute); ; { // the server frees the place after the client has its answer
		if _, err := c.NewSession(); err == nil {
			return
		} else if time.Now().After(late) {
			t.Fatalf("one has ended, and there is no room: %v", err)
		}
	}
}
