package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// awaits waits until something is so.
func (in *installation) awaits(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(longestWait); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not come to this: %s", what)
		}
	}
}

// lives tells whether a process of the sandbox's user is there.
func (in *installation) lives(sb api.Sandbox, pid string) bool {
	return in.run(sb, "sh", "-c", "kill -0 "+pid+" 2>/dev/null").Exit.Code == 0
}

// reader reads what a command writes, or leaves it there until it is told to go on.
type reader struct {
	pid  chan string
	read chan struct{} // closed to read on
	exit chan *api.Exit
}

func follow(link *client.Attachment, reads bool) *reader {
	r := &reader{pid: make(chan string, 1), read: make(chan struct{}), exit: make(chan *api.Exit, 1)}
	go func() {
		defer close(r.exit)
		said := ""
		for event, err := range link.Events() {
			if err != nil {
				return
			}
			if len(said) < 1<<10 {
				said += string(event.Stdout)
			}
			if pid, _, whole := strings.Cut(said, "\n"); whole && cap(r.pid) > len(r.pid) {
				select {
				case r.pid <- pid:
				default:
				}
				if !reads {
					<-r.read
				}
			}
			if event.Exit != nil {
				r.exit <- event.Exit
			}
		}
	}()
	return r
}

// TestAKillIsAKill: in real sandboxes, whatever waits between a command and its client: input
// that the command does not read, output that the client does not. Asked by another client,
// and answered when it is done.
func TestAKillIsAKill(t *testing.T) {
	t.Parallel()
	in := start(t, "default_template: debian\n")
	for _, engine := range []string{"gvisor", "runc"} {
		sb, err := in.Client.CreateSandbox(t.Context(), api.CreateSandbox{Template: "debian", Isolation: engine, Policy: api.Policy{Document: []byte(nothingAllowed)}, Linger: true})
		if err != nil {
			t.Fatal(err)
		}
		for name, waits := range map[string]struct{ input, output bool }{
			"nothing": {}, "input": {input: true}, "output": {output: true}, "both": {true, true},
		} {
			t.Run(engine+"/"+name, func(t *testing.T) {
				script := "echo $$; sleep 1000; echo not killed"
				if waits.output {
					script = "echo $$; cat /dev/zero"
				}
				c, err := in.Client.StartCommand(t.Context(), sb.ID, api.StartCommand{Argv: []string{"sh", "-c", script}, Stdin: true})
				if err != nil {
					t.Fatal(err)
				}
				link, err := in.Client.Attach(t.Context(), sb.ID, c.ID, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer link.Close()
				r := follow(link, !waits.output)
				pid := <-r.pid
				if waits.input {
					var sent atomic.Int64
					go func() {
						for n, err := link.Write(make([]byte, 64<<10)); err == nil; n, err = link.Write(make([]byte, 64<<10)) {
							sent.Add(int64(n))
						}
					}()
					in.awaits(t, "more input waits than the sandbox takes", func() bool { return sent.Load() >= 4<<20 })
				}
				if !in.lives(sb, pid) {
					t.Fatal("the control: it is not seen while it lives")
				}
				if err := client.SignalCommand(t.Context(), in.Client, sb.ID, c.ID, "KILL", true); err != nil {
					t.Fatal(err)
				}
				if in.lives(sb, pid) {
					t.Error("it was told as killed, and lives")
				}
				close(r.read)
				if exit := <-r.exit; exit == nil || exit.Signal != "KILL" || exit.Code != 137 {
					t.Errorf("it ended with %+v", exit)
				}
				if err := client.SignalCommand(t.Context(), in.Client, sb.ID, c.ID, "KILL", true); err != nil {
					t.Errorf("of one that has ended: %v", err)
				}
				if err := client.SignalCommand(t.Context(), in.Client, sb.ID, c.ID, "TERM", false); client.StatusOf(err) != 409 {
					t.Errorf("of one that has ended: %v", err)
				}
			})
		}
	}
}

// program is `cofferdam` for this installation.
func (in *installation) program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(binaries(repository(t)), "cofferdam"), args...)
	cmd.Env = in.environ()
	cmd.Dir = t.TempDir()
	return cmd
}

// TestSignalsPastInput: a signal of `cofferdam exec -i` is the command's, though it reads none
// of its input.
func TestSignalsPastInput(t *testing.T) {
	t.Parallel()
	in := start(t, "default_template: debian\n")
	sb := in.create("debian", nothingAllowed)
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		zero, err := os.Open("/dev/zero")
		if err != nil {
			t.Fatal(err)
		}
		defer zero.Close()
		var sent atomic.Int64
		cmd := in.program(t, "exec", "-i", sb.ID, "--", "sh", "-c", "echo $$; exec sleep 1000")
		cmd.Stdin = io.TeeReader(zero, counter{&sent})
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.WaitDelay = time.Second // nobody reads its input any more then
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var pid string
		if _, err := fmt.Fscanln(out, &pid); err != nil {
			t.Fatal(err)
		}
		in.awaits(t, "more input waits than the sandbox takes", func() bool { return sent.Load() >= 4<<20 })
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its exit code is looked at
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("after %s it ended with %d, want %d", sig, got, want)
		}
		if in.lives(sb, pid) {
			t.Errorf("after %s the command lives", sig)
		}
	}
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// TestARunHasALease: nothing is left of a run whose client was told to end twice, or by
// `timeout`, or was killed; one that is to be kept is.
func TestARunHasALease(t *testing.T) {
	t.Parallel()
	in := start(t, "default_template: debian\n")
	runs := func() string {
		boxes, err := in.Client.Sandboxes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, b := range boxes {
			all = append(all, b.Run)
		}
		return strings.Join(all, " ")
	}
	begin := func(run string, flags ...string) *exec.Cmd {
		cmd := in.program(t, append(append([]string{"run", "--run-id", run}, flags...), "--", "sh", "-c", "echo begun; sleep 1000")...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = &bytes.Buffer{}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line := make([]byte, 6); true {
			if _, err := io.ReadFull(out, line); err != nil {
				t.Fatalf("%v: %s", err, cmd.Stderr)
			}
		}
		return cmd
	}
	cmd := begin("twice")
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = cmd.Wait() // its exit code is looked at
	}()
	for told := true; told; { // again and again: two that come at once are one
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-over:
			told = false
		case <-time.After(time.Millisecond):
		}
	}
	// The last of the signals may come when nothing is left to do but to end: to a shell both are 143.
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	ended := status.ExitStatus() == 143 || status.Signaled() && status.Signal() == syscall.SIGTERM
	if got := runs(); got != "" || !ended {
		t.Errorf("after SIGTERM twice (%v) there are %q: %s", cmd.ProcessState, got, cmd.Stderr)
	}
	killed, kept := begin("killed"), begin("kept", "--keep")
	for _, cmd := range []*exec.Cmd{killed, kept} {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	in.awaits(t, "the one whose client was killed has ended", func() bool { return runs() == "kept" })
	in.wantEndReason(t, "killed", "its client is gone")
}

// wantEndReason looks for why a run's sandbox ended.
func (in *installation) wantEndReason(t *testing.T, run, want string) {
	t.Helper()
	var all []string
	for line, err := range in.Client.Records(t.Context(), client.RecordFilter{Run: run, Kinds: []string{"sandbox"}, Outcomes: []string{"finished"}}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(line))
	}
	if len(all) != 1 || !strings.Contains(all[0], want) {
		t.Errorf("the end of %s on record is %q", run, all)
	}
}
