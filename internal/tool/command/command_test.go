package command_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/tool"
	"github.com/cofferdam-dev/cofferdam/internal/tool/command"
	"github.com/cofferdam-dev/cofferdam/internal/tool/tooltest"
)

// nobody is whom a program runs as where the test is root.
func nobody() *command.User {
	if os.Geteuid() == 0 {
		return &command.User{UID: 65534, GID: 65534}
	}
	return nil
}

// shell is a tool that is a shell script.
func shell(script string, args ...string) *command.Command {
	return &command.Command{Argv: append([]string{"/bin/sh", "-c", script, "tool"}, args...), Environment: map[string]string{"PATH": "/usr/bin:/bin"}, User: nobody()}
}

// place is a directory that the program may write to.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tool") //nolint:usetesting // another user has to reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// appears waits for a file and gives what is in it.
func appears(t *testing.T, path string) string {
	t.Helper()
	for look := looks(t); ; <-look {
		if text, err := os.ReadFile(path); err == nil && strings.HasSuffix(string(text), "\n") {
			return strings.TrimSpace(string(text))
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// looks ticks between two looks at a condition that has to come true.
func looks(t *testing.T) <-chan time.Time {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	t.Cleanup(tick.Stop)
	return tick.C
}

// gone waits until a process runs no more.
func gone(t *testing.T, pid string) {
	t.Helper()
	for look := looks(t); ; <-look {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
}

func runs(t *testing.T, pid string) {
	t.Helper()
	if stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat")); err != nil || strings.Contains(string(stat), ") Z ") {
		t.Fatalf("the control is broken: process %q does not run", pid)
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	tooltest.Suite(t, func(t *testing.T, b tooltest.Behaviour) (tool.Runner, <-chan struct{}) {
		t.Helper()
		began := filepath.Join(place(t), "began")
		scripts := map[tooltest.Behaviour]string{
			tooltest.Echo:    `cat`,
			tooltest.Deaf:    `printf ok`,
			tooltest.Silent:  `:`,
			tooltest.Fail:    `echo ` + tooltest.Secret + `; echo ` + tooltest.Secret + ` >&2; exit 3`,
			tooltest.Flood:   `while :; do echo 0123456789012345678901234567890123456789; done`,
			tooltest.Hang:    `echo yes > "$1"; while :; do sleep 100; done`,
			tooltest.Binary:  `printf '\377\000'`,
			tooltest.WhoAsks: `echo "$COFFERDAM_RUN $COFFERDAM_SANDBOX"`,
		}
		begun := make(chan struct{})
		if b == tooltest.Hang {
			go func() { appears(t, began); close(begun) }()
		}
		return shell(scripts[b], began), begun
	})
}

// TestWhatAProgramHas: the operator's environment and no other, and its arguments where no
// list of processes shows them.
func TestWhatAProgramHas(t *testing.T) {
	t.Setenv("DAEMON_SECRET", "not for tools")
	c := shell(`env | sort; tr '\0' ' ' < /proc/self/cmdline; pwd; id -u`)
	c.Environment["OPERATOR"] = "named"
	got, err := c.Run(t.Context(), tool.Call{Run: "r", Sandbox: "s", Arguments: `{"secret":"argument"}`, MaxOutput: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	text := string(got)
	if strings.Contains(text, "DAEMON_SECRET") || strings.Contains(text, "argument") {
		t.Errorf("the program has what it must not have:\n%s", text)
	}
	for _, want := range []string{"OPERATOR=named\n", "COFFERDAM_RUN=r\n", "/\n", fmt.Sprintf("\n%d\n", uid())} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

func uid() int {
	if os.Geteuid() == 0 {
		return 65534
	}
	return os.Geteuid()
}

// TestWhatIsLeftBehind: a program that ends well leaves nothing of its group behind, and its
// answer does not wait for that.
func TestWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	out := filepath.Join(place(t), "pid")
	c := shell(`sleep 1000 & echo $! > "$1.new"; mv "$1.new" "$1"; echo done`, out)
	got, err := c.Run(t.Context(), tool.Call{Arguments: `{}`, MaxOutput: 100})
	if err != nil || string(got) != "done\n" {
		t.Fatalf("%q, %v", got, err)
	}
	gone(t, appears(t, out))
}

// TestForksEndWithTheCall: what a program that hangs has started ends with it.
func TestForksEndWithTheCall(t *testing.T) {
	t.Parallel()
	out := filepath.Join(place(t), "pid")
	c := shell(`(sleep 1000 & echo $! > "$1.new"; mv "$1.new" "$1"; wait) & wait`, out)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, tool.Call{Arguments: `{}`, MaxOutput: 100})
		ended <- err
	}()
	pid := appears(t, out)
	runs(t, pid)
	cancel()
	if err := <-ended; err == nil {
		t.Error("a call that was ended has a result")
	}
	gone(t, pid)
}

// TestOneThatLeavesItsGroup: its open output does not keep the call.
func TestOneThatLeavesItsGroup(t *testing.T) {
	t.Parallel()
	out := filepath.Join(place(t), "pid")
	c := shell(`setsid sh -c 'echo $$ > "$1.new"; mv "$1.new" "$1"; exec sleep 1000' x "$1" & while ! [ -e "$1" ]; do :; done; echo done`, out)
	got, err := c.Run(t.Context(), tool.Call{Arguments: `{}`, MaxOutput: 100})
	if err != nil || string(got) != "done\n" {
		t.Errorf("%q, %v", got, err)
	}
	pid := appears(t, out)
	var n int
	if _, err := fmt.Sscan(pid, &n); err != nil || n < 2 {
		t.Fatalf("%q is no process", pid)
	}
	if left, err := os.FindProcess(n); err == nil {
		_ = left.Kill()
	}
}

// TestCodes: of a program that fails its code is known, and of one that is killed there is none.
func TestCodes(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{`exit 3`: 3, `kill -TERM $$`: -1} {
		_, err := shell(script).Run(t.Context(), tool.Call{Arguments: `{}`, MaxOutput: 100})
		f, ok := errors.AsType[*tool.Failure](err)
		if !ok || (f.Exit == nil) != (want < 0) || f.Exit != nil && *f.Exit != want {
			t.Errorf("%s: %+v", script, err)
		}
	}
}

func TestProgramsThatCanNotBe(t *testing.T) {
	t.Parallel()
	good := shell(`:`)
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]*command.Command{
		"none":           {User: nobody()},
		"by PATH":        {Argv: []string{"sh"}, User: nobody()},
		"a NUL":          {Argv: []string{"/bin/sh", "a\x00b"}, User: nobody()},
		"a place":        {Argv: []string{"/bin/sh"}, Dir: "here", User: nobody()},
		"a variable":     {Argv: []string{"/bin/sh"}, Environment: map[string]string{"A=B": "c"}, User: nobody()},
		"a NUL in value": {Argv: []string{"/bin/sh"}, Environment: map[string]string{"A": "b\x00"}, User: nobody()},
	} {
		if c.Check() == nil {
			t.Errorf("%s: nothing is wrong", what)
		}
	}
	if os.Geteuid() == 0 {
		if (&command.Command{Argv: []string{"/bin/sh"}}).Check() == nil {
			t.Error("a program of root's daemon has no user, and nothing is wrong")
		}
	}
	missing := &command.Command{Argv: []string{"/no/such/program"}, User: nobody()}
	if _, err := missing.Run(t.Context(), tool.Call{MaxOutput: 10}); err == nil || strings.Contains(err.(*tool.Failure).Sentence, "/no/such") { //nolint:errorlint // the contract is this type
		t.Errorf("a program that is not there: %v", err)
	}
}
