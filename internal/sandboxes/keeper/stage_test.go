package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// roleVar tells a copy of the test binary what to be.
const roleVar = "KEEPER_TEST_ROLE"

// raceVar lets a copy under the race detector end at once.
const raceVar = "GORACE=atexit_sleep_ms=0"

// TestMain: a keeper must be alone in its process, so that each test's keeper,
// guests and starters are copies of this binary.
func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := enact(role); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(3)
	}
	os.Exit(0)
}

func enact(role string) error {
	switch role {
	case "keeper":
		return beKeeper()
	case "guest":
		return beGuest()
	case "starter":
		return beStarter()
	case "cgroupexec":
		return CgroupExec(os.Args[1:])
	case "failing starter":
		return errors.New("\x1b[31mno such image\x00")
	case "sleeper":
		return beIdle()
	case "garbage":
		_, _ = os.Stdout.WriteString("runsc: not a multiplexer at all\n")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "mute": // holds its end and never reads or writes
		return beIdle()
	}
	return errors.New("no such role")
}

// beIdle waits in the kernel for ever: the runtime of a static program ends one of which
// nothing waits for anything.
func beIdle() error {
	for {
		if _, err := unix.Poll(nil, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// beKeeper runs a keeper, then looks for what it left behind.
func beKeeper() error {
	var cfg Config
	if err := json.Unmarshal([]byte(os.Getenv("KEEPER_TEST_CONFIG")), &cfg); err != nil {
		return err
	}
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, cancel := context.WithCancel(context.Background())
	// Stays registered to the end: a second SIGTERM must not cut the looking short.
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	go func() {
		select {
		case <-terminate:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := NewServer(cfg).Run(ctx)
	cancel()
	return errors.Join(err, goleak.Find())
}

// beStarter does as a detaching runtime does: it leaves two processes behind.
func beStarter() error {
	var pids []string
	for _, role := range []string{"guest", "sleeper"} {
		pid, err := syscall.ForkExec("/proc/self/exe", []string{role}, &syscall.ProcAttr{
			Env: []string{roleVar + "=" + role, raceVar}, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
		})
		if err != nil {
			return err
		}
		pids = append(pids, strconv.Itoa(pid))
	}
	return os.WriteFile(os.Getenv("PID_FILE"), []byte(strings.Join(pids, " ")), 0o600)
}

// stage is a keeper in a process of its own, and a client of it.
type stage struct {
	*Client
	t      *testing.T
	dir    string
	keeper *exec.Cmd
	log    *os.File
	uplink string
}

func newStage(t *testing.T, adjust ...func(*Config)) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "keeper") //nolint:usetesting // t.TempDir may be too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Socket: filepath.Join(dir, "k.sock"), Uplink: filepath.Join(dir, "u.sock"), Gateway: 100 * time.Millisecond}
	cfg.CgroupExec = []string{"/usr/bin/env", roleVar + "=cgroupexec", self}
	for _, a := range adjust {
		a(&cfg)
	}
	s := &stage{Client: Dial(cfg.Socket), t: t, dir: dir, uplink: cfg.Uplink}
	s.start(cfg)
	t.Cleanup(s.end)
	return s
}

func (s *stage) start(cfg Config) {
	s.t.Helper()
	encoded, err := json.Marshal(struct {
		Config
		Logger any
	}{Config: cfg})
	if err != nil {
		s.t.Fatal(err)
	}
	s.log, err = os.Create(filepath.Join(s.dir, "keeper.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.keeper = exec.CommandContext(context.Background(), "/proc/self/exe") // the test ends it itself
	s.keeper.Env = []string{roleVar + "=keeper", "KEEPER_TEST_CONFIG=" + string(encoded), "GORACE=halt_on_error=1 atexit_sleep_ms=0"}
	s.keeper.Stderr = s.log
	if err := s.keeper.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the keeper answers", func() bool { return s.Ping(s.t.Context()) == nil })
}

// end stops the keeper, which must leave no goroutine, no child and no race.
func (s *stage) end() {
	_ = s.keeper.Process.Signal(syscall.SIGTERM)
	if err := s.keeper.Wait(); err != nil || s.t.Failed() {
		log, _ := os.ReadFile(s.log.Name())
		s.t.Errorf("the keeper ended with %v; its log:\n%s", err, log)
	}
	_ = s.log.Close()
}

// eventually polls a condition that nothing announces.
func (s *stage) eventually(what string, is func() bool) {
	s.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-limit.C:
			s.t.Fatalf("it did not come to be that %s", what)
		}
	}
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// launch starts an attached process of a role.
func (s *stage) launch(id, role string) Sandbox {
	s.t.Helper()
	self, err := os.Executable()
	s.must(err)
	box, err := s.Launch(s.t.Context(), Launch{
		ID: id, Argv: []string{self}, Env: []string{roleVar + "=" + role, raceVar}, Dir: "/", Log: filepath.Join(s.dir, id+".log"), Attached: true,
	})
	s.must(err)
	return box
}

// run starts a command of the fake guest.
func (s *stage) run(box, id string, o ExecOptions, argv ...string) {
	s.t.Helper()
	s.must(s.Exec(s.t.Context(), box, channel.Exec{ID: id, Argv: argv, Stdin: true}, o))
}

// output is what an attachment got until the exit.
type output struct {
	out, errs bytes.Buffer
	gap       int64
	pid       int // of a FrameStarted, which must come first
	exit      channel.Exit
}

func (s *stage) attach(box, id string, offset int64) *channel.Conn {
	s.t.Helper()
	raw, err := s.Attach(s.t.Context(), box, id, offset)
	s.must(err)
	s.t.Cleanup(func() { _ = raw.Close() })
	return channel.NewConn(raw)
}

// said reads the next frame that is not of the command's start.
func (s *stage) said(conn *channel.Conn) (channel.FrameType, []byte, error) {
	s.t.Helper()
	kind, payload, err := conn.ReadFrame()
	if kind == channel.FrameStarted && err == nil {
		return conn.ReadFrame()
	}
	return kind, payload, err
}

// collect reads an attachment to its exit.
func (s *stage) collect(conn *channel.Conn) *output {
	s.t.Helper()
	var o output
	for {
		kind, payload, err := conn.ReadFrame()
		s.must(err)
		switch kind {
		case channel.FrameStdout:
			o.out.Write(payload)
		case channel.FrameStderr:
			o.errs.Write(payload)
		case channel.FrameStarted:
			var started channel.Started
			s.must(channel.DecodeStrictJSON(kind, payload, &started))
			if o.pid != 0 || o.out.Len()+o.errs.Len() > 0 || o.gap > 0 {
				s.t.Error("the start is told late, or twice")
			}
			o.pid = started.PID
		case channel.FrameGap:
			var g channel.Gap
			s.must(channel.DecodeStrictJSON(kind, payload, &g))
			o.gap += g.Bytes
		case channel.FrameExit:
			s.must(channel.DecodeStrictJSON(kind, payload, &o.exit))
			return &o
		default:
			s.t.Fatalf("frame of type %d", kind)
		}
	}
}

// result attaches from the start and collects.
func (s *stage) result(box, id string) *output {
	s.t.Helper()
	conn := s.attach(box, id, 0)
	defer conn.Raw().Close()
	return s.collect(conn)
}

// listenUplink serves the gateway's end of the uplink.
func (s *stage) listenUplink(serve func(*channel.Conn)) {
	s.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "unix", s.uplink)
	s.must(err)
	s.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer raw.Close()
				serve(channel.NewConn(raw))
			}()
		}
	}()
}

// gone tells whether no process, not even a zombie, has this pid.
func gone(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return errors.Is(err, os.ErrNotExist)
}
