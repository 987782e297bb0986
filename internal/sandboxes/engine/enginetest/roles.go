package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// The roles that a test binary plays when it runs itself.
const (
	roleKeeper = "enginetest-keeper"
	roleJoin   = "enginetest-join"
	roleGuest  = "enginetest-guest"
	roleStage  = "enginetest-stage"
)

// Main is a TestMain: it runs the tests, or plays the role that a test gave
// to another process of its binary. stage is what StageArgv runs, with the arguments that
// follow; nil: nothing does.
func Main(m *testing.M, stage ...func(args []string) error) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	var err error
	switch os.Args[1] {
	case roleKeeper:
		err = runKeeper(os.Args[2])
	case roleJoin:
		err = keeper.CgroupExec(os.Args[2:])
	case roleGuest:
		err = attend(os.Args[2])
	case roleStage:
		err = stage[0](os.Args[2:])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, os.Args[1]+":", err)
		os.Exit(1)
	}
}

// StageArgv is the argv of the stage that Main was given.
func StageArgv(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, roleStage}
}

// runKeeper runs the keeper. It ends when its test's process does, whose end of its standard input is closed then. The
// kernel's signal at a parent's death would come when the thread that started the keeper ends, and a test's threads do:
// engines end those that have taken a user or a namespace.
func runKeeper(socket string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	safego.Go(func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // as a kill does: a shutdown would wait for sandboxes
	})
	return keeper.NewServer(keeper.Config{
		Socket: socket, Uplink: uplinkOf(socket), CgroupExec: keeper.Joiner(self, roleJoin),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}).Run(ctx)
}

// attend is a guest agent that is an ordinary process: what it writes goes
// under root, and it touches nothing of the host's network.
func attend(root string) error {
	conn, err := guest.TakeChannel()
	if err != nil {
		return err
	}
	session, err := channel.NewGuestSession(conn)
	if err != nil {
		return err
	}
	return guest.New(guest.Config{
		Session: session, Root: root, DNS: ownAddress(), Socket: "/agent.sock",
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}).Run(context.Background())
}

// ownAddress is a loopback address that no other process has, and any port: one
// that is free for UDP may be taken for TCP where all test servers listen.
func ownAddress() string {
	pid := os.Getpid() // 22 bits at most
	return fmt.Sprintf("127.%d.%d.%d:0", 128+pid>>16, pid>>8&255, pid&255)
}

// PlainInit is the argv of a PID 1 for engines that isolate nothing.
func PlainInit(t *testing.T, root string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, roleGuest, root}
}

// StartKeeper runs a keeper in a process of its own, as an installation does,
// and ends it with the test; sandboxes that it still has then are an error.
func StartKeeper(t *testing.T, socket string) *keeper.Client {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(socket+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self, roleKeeper, socket)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	tether, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client := keeper.Dial(socket)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := client.Shutdown(ctx)
		if err != nil {
			_ = cmd.Process.Kill()
		}
		ended := cmd.Wait()
		_, _ = tether.Close(), log.Close()
		if err != nil {
			t.Errorf("the keeper's end: %v; its process: %v; it said last:\n%s", err, ended, lastSaid(log.Name()))
		}
	})
	awaitKeeper(t, client)
	return client
}

// lastSaid is the end of a log, for a test that has failed.
func lastSaid(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	const most = 4 << 10
	return string(text[max(0, len(text)-most):])
}

func awaitKeeper(t *testing.T, client *keeper.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		err := client.Ping(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(errors.Join(errors.New("the keeper does not answer"), err))
		}
	}
}
