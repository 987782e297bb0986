package command_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool/command"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool/tooltest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
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

// sleeping begins a process that lives on, and writes its number into the file $1: the one by
// which this test knows it, and not its namespace.
const sleeping = `sh -c 'read n _ < /proc/self/stat; echo $n > "$1.new"; mv "$1.new" "$1"; exec sleep 1000' x "$1" & `

// TestWhatIsLeftBehind: a program that ends well leaves nothing behind, and its
// answer does not wait for that.
func TestWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	out := filepath.Join(place(t), "pid")
	c := shell(sleeping+`while ! [ -e "$1" ]; do :; done; echo done`, out)
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
	c := shell(`(`+sleeping+`wait) & wait`, out)
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

// leaving is a script that leaves its process group, session and parent behind, as daemons do,
// writes its number into the file $1, and lives on.
const leaving = `setsid sh -c 'sh -c "echo \$\$ > $1.new; mv $1.new $1; exec sleep 1000" x $1 & exit' x "$1" </dev/null >/dev/null 2>&1 & while ! [ -e "$1" ]; do :; done; `

// none waits until no process is left but this one and those that the test counts on.
func none(t *testing.T) {
	t.Helper()
	for look := looks(t); ; <-look {
		if len(others(t)) == 0 {
			return
		}
	}
}

// others are the processes of this pid namespace that live, but for this one and its children
// of the same program.
func others(t *testing.T) (all []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if exe, err := os.Readlink(filepath.Join("/proc", e.Name(), "exe")); err == nil && exe != self {
			all = append(all, e.Name()+" "+exe)
		}
	}
	return all
}

// TestOneThatLeavesEverything: a process that has left its group, its session and its parent
// ends with the call all the same: with its answer, its time, and with the daemon.
func TestOneThatLeavesEverything(t *testing.T) {
	if dir := os.Getenv(daemonVariable); dir != "" {
		asDaemon(t, dir)
		return
	}
	if !processtest.Inside(t) {
		return
	}
	out := filepath.Join(place(t), "pid")
	got, err := shell(leaving+`echo done`, out).Run(t.Context(), tool.Call{Arguments: `{}`, MaxOutput: 100})
	if err != nil || string(got) != "done\n" {
		t.Fatalf("%q, %v", got, err)
	}
	none(t)

	for limit := 300 * time.Millisecond; ; limit *= 2 {
		out := filepath.Join(place(t), "pid")
		limited := tool.Tool{Limits: tool.Limits{Time: limit}, Runner: shell(leaving+`wait; sleep 1000`, out)}
		if _, err := limited.Call(t.Context(), tool.Call{Arguments: `{}`}); err == nil || !strings.Contains(err.Error(), "did not answer within") {
			t.Errorf("%v", err)
		}
		none(t)
		if _, err := os.Stat(out); err == nil {
			break // it had left before its time was over
		}
	}

	// The same in a process that is killed, as a daemon is.
	dir := place(t)
	daemon := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
	daemon.Env = append(os.Environ(), daemonVariable+"="+dir)
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	appears(t, filepath.Join(dir, "pid"))
	if left := others(t); len(left) < 2 {
		t.Fatalf("the control is broken: of the tool only %q runs", left)
	}
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait()
	none(t)
}

const daemonVariable = "COFFERDAM_TEST_DAEMON"

// asDaemon calls a tool that does not end, until it is killed.
func asDaemon(t *testing.T, dir string) {
	t.Helper()
	_, err := shell(leaving+`wait; sleep 1000`, filepath.Join(dir, "pid")).Run(t.Context(), tool.Call{Arguments: `{}`, MaxOutput: 100})
	t.Fatalf("the tool ended: %v", err)
}

// TestCodes: of a program that fails its code is known, and of one that is killed there is none.
func TestCodes(t *testing.T) {
	t.Parallel()
	_, err := shell(`exit 3`).Run(t.Context(), tool.Call{Arguments: `{}`, MaxOutput: 100})
	if f, ok := errors.AsType[*tool.Failure](err); !ok || f.Exit == nil || *f.Exit != 3 {
		t.Errorf("%+v", err)
	}
	out := filepath.Join(place(t), "pid")
	ended := make(chan error, 1)
	go func() {
		_, err := shell(`read n _ < /proc/self/stat; echo $n > "$1"; while :; do sleep 1000; done`, out).Run(t.Context(), tool.Call{Arguments: `{}`, MaxOutput: 100})
		ended <- err
	}()
	n, err := strconv.Atoi(appears(t, out))
	if err != nil || n < 2 || unix.Kill(n, unix.SIGKILL) != nil {
		t.Fatalf("process %d: %v", n, err)
	}
	if f, ok := errors.AsType[*tool.Failure](<-ended); !ok || f.Exit != nil || !strings.Contains(f.Sentence, "SIGKILL") {
		t.Errorf("%+v", f)
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

// TestADefinitionIsOfTheBytes: a program that was replaced is another tool, and is not run for what
// was judged before. The control: as long as it is the same one, it is.
func TestADefinitionIsOfTheBytes(t *testing.T) {
	path := filepath.Join(place(t), "lookup.sh")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for how, c := range map[string]*command.Command{
		"the program":     {Argv: []string{path}, User: nobody()},
		"what it is told": {Argv: []string{"/bin/sh", path}, User: nobody()},
	} {
		write("echo 1")
		judged := c.Definition()
		if got, err := c.Run(t.Context(), tool.Call{Arguments: "{}", MaxOutput: 100, Defined: judged}); err != nil || string(got) != "1\n" {
			t.Errorf("%s: %q, %v", how, got, err)
		}
		write("echo 2")
		if c.Definition() == judged {
			t.Errorf("%s was replaced, and the definition is the same", how)
		}
		got, err := c.Run(t.Context(), tool.Call{Arguments: "{}", MaxOutput: 100, Defined: judged})
		if f, is := errors.AsType[*tool.Failure](err); !is || got != nil || !strings.Contains(f.Sentence, "was changed") {
			t.Errorf("%s was replaced, and is run: %q, %v", how, got, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if c.Definition() == judged {
			t.Errorf("%s is gone, and the definition is the same", how)
		}
	}
}

// TestAProgramThatASandboxMayWrite is not run.
func TestAProgramThatASandboxMayWrite(t *testing.T) {
	dir := place(t)
	path := filepath.Join(dir, "p.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	at, err := hostpath.Open(dir, hostpath.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	var trees []hostpath.Tree
	c := &command.Command{Argv: []string{path}, User: nobody(), Writable: func() []hostpath.Tree { return trees }}
	if got, err := c.Run(t.Context(), tool.Call{Arguments: "{}", MaxOutput: 100}); err != nil || string(got) != "1\n" {
		t.Errorf("%q, %v", got, err)
	}
	trees = []hostpath.Tree{{Path: dir, ID: at.ID}}
	if got, err := c.Run(t.Context(), tool.Call{Arguments: "{}", MaxOutput: 100}); err == nil || got != nil {
		t.Errorf("it is run: %q", got)
	}
	for how, elsewhere := range map[string]*command.Command{
		"in its directory": {Argv: []string{"/bin/echo"}, User: nobody(), Dir: dir},
		"in its PATH":      {Argv: []string{"/bin/echo"}, User: nobody(), Environment: map[string]string{"PATH": "/bin:" + dir}},
	} {
		if got, err := elsewhere.Run(t.Context(), tool.Call{Arguments: "{}", MaxOutput: 100}); err != nil || string(got) != "\n" { // the control
			t.Errorf("%s: %q, %v", how, got, err)
		}
		elsewhere.Writable = c.Writable
		if got, err := elsewhere.Run(t.Context(), tool.Call{Arguments: "{}", MaxOutput: 100}); err == nil || got != nil {
			t.Errorf("a sandbox may write %s, and it is run: %q", how, got)
		}
	}
}
