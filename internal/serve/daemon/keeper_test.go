package daemon

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// olderVariable has a copy of the test's binary be a keeper of protocol 0, at the
// socket that it names, with a sandbox if the other is set.
const (
	olderVariable = "DAEMON_TEST_OLDER_KEEPER"
	heldVariable  = "DAEMON_TEST_HELD"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv(olderVariable); socket != "" {
		if err := beOlder(socket); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func beOlder(socket string) error {
	l, err := net.Listen("unix", socket) // it lives as long as its process
	if err != nil {
		return err
	}
	for {
		raw, err := l.Accept()
		if err != nil {
			return err
		}
		conn := channel.NewConn(raw)
		var req keeper.Request
		if conn.ReadStrictJSON(channel.FrameOpen, &req) != nil { // of who looks who listens
			_ = raw.Close()
			continue
		}
		answer := keeper.Response{OK: true}
		if req.Verb == keeper.VerbList && os.Getenv(heldVariable) != "" {
			answer.Sandbox = &keeper.Sandbox{ID: "box"}
		}
		_ = conn.WriteJSON(channel.FrameReply, answer)
		_ = raw.Close()
		if req.Verb == keeper.VerbShutdown {
			return os.Remove(socket)
		}
	}
}

// TestAnOlderKeeperIsReplacedWhenItHoldsNothing, and only then.
func TestAnOlderKeeperIsReplacedWhenItHoldsNothing(t *testing.T) {
	for _, holds := range []bool{false, true} {
		dir, err := os.MkdirTemp("", "kp") //nolint:usetesting // a socket's path must be short
		must(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		d := &Daemon{opts: Options{Paths: config.Paths{Runtime: dir, State: dir}, Log: quiet()}}
		socket := d.opts.Paths.KeeperSocket()
		must(t, os.MkdirAll(filepath.Dir(socket), 0o700))
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.Env = append(os.Environ(), olderVariable+"="+socket)
		if holds {
			cmd.Env = append(cmd.Env, heldVariable+"=1")
		}
		must(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		d.keeper = keeper.Dial(socket)
		for d.keeper.Ping(t.Context()) != nil {
			select {
			case err := <-ended:
				t.Fatalf("it ended at once: %v", err)
			case <-time.After(time.Millisecond):
			}
		}
		n := keeperHolder{keeper: d.keeper, paths: d.opts.Paths, log: d.opts.Log}
		must(t, n.retire(t.Context()))
		answers := d.keeper.Ping(t.Context()) == nil
		if answers != holds {
			t.Errorf("it holds something: %t; it answers: %t", holds, answers)
		}
		if holds {
			must(t, cmd.Process.Kill())
			<-ended
			continue
		}
		if err := <-ended; err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("its end: %v", err)
		}
	}
}
