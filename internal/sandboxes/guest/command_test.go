package guest

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

func TestExitCodesAreThoseOfAShell(t *testing.T) {
	dir := t.TempDir()
	files := map[string]os.FileMode{"plain": 0o644, "noline": 0o755, "badline": 0o755}
	content := map[string]string{"plain": "x", "noline": "echo hi", "badline": "#!/no/such/interpreter\n"}
	for name, mode := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content[name]), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, nil)
	tests := map[string]struct {
		exec   channel.Exec
		code   int
		signal string
		says   string
	}{
		"success":           {channel.Exec{Argv: []string{"true"}}, 0, "", ""},
		"failure":           {channel.Exec{Argv: []string{"sh", "-c", "exit 3"}}, 3, "", ""},
		"killed":            {channel.Exec{Argv: []string{"sh", "-c", "kill -KILL $$"}}, 137, "KILL", ""},
		"terminated":        {channel.Exec{Argv: []string{"sh", "-c", "kill -TERM $$"}}, 143, "TERM", ""},
		"not found":         {channel.Exec{Argv: []string{"no-such-command"}}, 127, "", "is not in the sandbox"},
		"path not found":    {channel.Exec{Argv: []string{"/no/such/command"}}, 127, "", "is not in the sandbox"},
		"below a file":      {channel.Exec{Argv: []string{"/etc/passwd/x"}}, 127, "", "is not in the sandbox"},
		"empty name":        {channel.Exec{Argv: []string{""}}, 127, "", "empty"},
		"not executable":    {channel.Exec{Argv: []string{dir + "/plain"}}, 126, "", "permission denied"},
		"found, not to run": {channel.Exec{Argv: []string{"plain"}, Env: map[string]string{"PATH": dir}}, 126, "", "permission denied"},
		"a directory":       {channel.Exec{Argv: []string{dir + "/folder"}}, 126, "", "is a directory"},
		"no first line":     {channel.Exec{Argv: []string{dir + "/noline"}}, 126, "", "first line"},
		"bad first line":    {channel.Exec{Argv: []string{dir + "/badline"}}, 126, "", "interpreter"},
		"zero byte":         {channel.Exec{Argv: []string{"echo", "a\x00b"}}, 126, "", "zero byte"},
		"missing directory": {channel.Exec{Argv: []string{"true"}, Dir: dir + "/none"}, 126, "", "does not exist"},
		"file as directory": {channel.Exec{Argv: []string{"true"}, Dir: dir + "/plain"}, 126, "", "not a directory"},
		"relative":          {channel.Exec{Argv: []string{"true"}, Dir: "tmp"}, 126, "", "absolute"},
		"agent's own files": {channel.Exec{Argv: []string{"true"}, Dir: "/proc/self/fd/7"}, 126, "", ""},
		"proc":              {channel.Exec{Argv: []string{"true"}, Dir: "/proc/self/cwd/../proc"}, 126, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := a.run(test.exec)
			if e.exit.Code != test.code || e.exit.Signal != test.signal || !strings.Contains(e.exit.Error, test.says) {
				t.Errorf("got %+v, want code %d, signal %q, an error with %q", *e.exit, test.code, test.signal, test.says)
			}
			if (e.exit.Error == "") == (test.code >= 126 && test.signal == "") {
				t.Errorf("error %q does not fit code %d", e.exit.Error, test.code)
			}
		})
	}
}

func TestRefusedCalls(t *testing.T) {
	a := startAgent(t, nil)
	tests := map[string]struct {
		exec *channel.Exec
		says string
	}{
		"nothing":       {nil, "needs an id"},
		"no argv":       {&channel.Exec{ID: "x"}, "needs an id"},
		"unknown user":  {&channel.Exec{ID: "x", Argv: []string{"true"}, User: "nobody-here"}, "no user \"nobody-here\""},
		"user in words": {&channel.Exec{ID: "x", Argv: []string{"true"}, User: "a b"}, "no user"},
		"bad variable":  {&channel.Exec{ID: "x", Argv: []string{"true"}, Env: map[string]string{"A=B": "c"}}, "environment variable"},
		"zero byte":     {&channel.Exec{ID: "x", Argv: []string{"true"}, Env: map[string]string{"A": "\x00"}}, "environment variable"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stream, reply := a.call(channel.Call{Kind: channel.CallExec, Exec: test.exec})
			defer stream.Close()
			if reply.OK || !strings.Contains(reply.Error, test.says) {
				t.Errorf("got %+v, want an error with %q", reply, test.says)
			}
		})
	}
}

func TestNothingRunsBeforeConfigure(t *testing.T) {
	a := startBare(t, nil)
	stream, reply := a.call(channel.Call{Kind: channel.CallExec, Exec: &channel.Exec{ID: "x", Argv: []string{"true"}}})
	defer stream.Close()
	if reply.OK || !strings.Contains(reply.Error, "not configured") {
		t.Errorf("got %+v", reply)
	}
}

func TestAnIdRunsOnce(t *testing.T) {
	a := startAgent(t, nil)
	first := a.start(channel.Exec{ID: "one", Argv: []string{"cat"}, Stdin: true})
	stream, reply := a.call(channel.Call{Kind: channel.CallExec, Exec: &channel.Exec{ID: "one", Argv: []string{"true"}}})
	_ = stream.Close()
	if reply.OK {
		t.Error("a second command with the same id was taken")
	}
	first.send(channel.FrameStdin, nil)
	first.wait()
	a.run(channel.Exec{ID: "one", Argv: []string{"true"}})
}

// Arguments and environment reach the program as they are (C-EX-04).
func TestArgumentsAreVerbatim(t *testing.T) {
	a := startAgent(t, nil)
	args := []string{"$(id)", "a\nb", "--", "; rm -rf x", "*", "", "é\u2028", strings.Repeat("x", 100_000)}
	e := a.run(channel.Exec{Argv: append([]string{"printf", `%s\0`}, args...)})
	if got, want := e.stdout.String(), strings.Join(args, "\x00")+"\x00"; got != want {
		t.Errorf("got %.200q, want %.200q", got, want)
	}
	e = a.run(channel.Exec{
		Argv: []string{"env", "-0"},
		Env:  map[string]string{"LINES": "a\nb", "BASH_ENV": "/x", "HOME": "/other", markerVariable: "forged"},
	})
	got := strings.Split(e.stdout.String(), "\x00")
	for _, want := range []string{"LINES=a\nb", "BASH_ENV=/x", "HOME=/other", markerVariable + "=c1", "CARGO_HTTP_TIMEOUT=600", "SSL_CERT_FILE=/run/cofferdam/tls/bundle.pem", "PATH=/usr/bin:/bin:/.cofferdam/bin"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in the environment %q", want, got)
		}
	}
	e = a.run(channel.Exec{Argv: []string{"true", strings.Repeat("x", 200_000)}})
	if e.exit.Code != 126 || !strings.Contains(e.exit.Error, "too long") {
		t.Errorf("an argument that is too long: %+v", *e.exit)
	}
}

func TestOutputsAreSeparateAndInputEnds(t *testing.T) {
	a := startAgent(t, nil)
	e := a.start(channel.Exec{Argv: []string{"sh", "-c", "echo err >&2; cat; echo end"}, Stdin: true})
	e.send(channel.FrameStdin, []byte("one\n"))
	e.send(channel.FrameStdin, []byte("two\n"))
	e.send(channel.FrameStdin, nil)
	exit := e.wait()
	if e.stdout.String() != "one\ntwo\nend\n" || e.stderr.String() != "err\n" || exit.Code != 0 {
		t.Errorf("stdout %q, stderr %q, %+v", e.stdout.String(), e.stderr.String(), exit)
	}
	e = a.run(channel.Exec{Argv: []string{"sh", "-c", "cat; readlink /proc/self/fd/0"}})
	if e.stdout.String() != "/dev/null\n" {
		t.Errorf("without input stdin is %q", e.stdout.String())
	}
}

// Input that nobody reads does not keep a signal from arriving.
func TestSignalOvertakesInput(t *testing.T) {
	a := startAgent(t, nil)
	e := a.start(channel.Exec{Argv: []string{"sh", "-c", "trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done"}, Stdin: true})
	e.until("ready")
	chunk := make([]byte, channel.MaxPayload)
	for range 16 {
		e.send(channel.FrameStdin, chunk)
	}
	e.sendJSON(channel.FrameSignal, channel.Signal{Name: "USR1"})
	if exit := e.wait(); exit.Code != 9 {
		t.Errorf("got %+v", exit)
	}
}

func TestSignalReachesTheGroup(t *testing.T) {
	a := startAgent(t, nil)
	e := a.start(channel.Exec{Argv: []string{"sh", "-c", "sleep 1000 & echo $!; wait"}})
	e.until("\n")
	pid, err := strconv.Atoi(strings.TrimSpace(e.stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	e.sendJSON(channel.FrameSignal, channel.Signal{Name: "NOSUCH"})
	e.send(channel.FrameSignal, []byte("{"))
	e.sendJSON(channel.FrameSignal, channel.Signal{Name: "SIGTERM"})
	if exit := e.wait(); exit.Code != 143 || exit.Signal != "TERM" {
		t.Errorf("got %+v", exit)
	}
	gone(t, pid)
}

func TestTerminal(t *testing.T) {
	a := startAgent(t, nil)
	e := a.start(channel.Exec{
		Argv: []string{"sh", "-c", "trap 'stty size' WINCH; stty size; tty; echo err >&2; echo $TERM; while :; do read line && echo got $line && break; done; cat; echo end"},
		PTY:  &channel.WindowSize{Rows: 12, Cols: 34},
	})
	e.until("12 34")
	e.until("/dev/pts/")
	e.until("err")
	e.until("xterm-256color")
	e.sendJSON(channel.FrameResize, channel.WindowSize{Rows: 40, Cols: 100})
	e.send(channel.FrameStdin, []byte("line\n"))
	e.until("40 100")
	e.until("got line")
	e.send(channel.FrameStdin, nil)
	exit := e.wait()
	if exit.Code != 0 || !strings.Contains(e.stdout.String(), "end") || e.stderr.Len() != 0 {
		t.Errorf("stdout %q, stderr %q, %+v", e.stdout.String(), e.stderr.String(), exit)
	}
}

func TestInterruptTypedOnATerminal(t *testing.T) {
	// Tests that a shell runs in the background begin with interrupts ignored, and so
	// would what they start; what is caught here begins there as always.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	defer signal.Stop(caught)
	a := startAgent(t, nil)
	e := a.start(channel.Exec{Argv: []string{"sh", "-c", "trap 'exit 9' INT; echo ready; while :; do sleep 0.01; done"}, PTY: &channel.WindowSize{Rows: 1, Cols: 1}})
	e.until("ready")
	e.send(channel.FrameStdin, []byte{3})
	if exit := e.wait(); exit.Code != 9 {
		t.Errorf("got %+v", exit)
	}
}

// A host that does not read holds the command back, and loses nothing (C-RE-05).
func TestBackPressure(t *testing.T) {
	a := startAgent(t, nil)
	count := filepath.Join(t.TempDir(), "count")
	const total = 8 << 20
	script := fmt.Sprintf("head -c %d /dev/zero; echo done > %s", total, count)
	e := a.start(channel.Exec{Argv: []string{"sh", "-c", script}})
	// Another command runs and ends while the first can't go on.
	a.run(channel.Exec{ID: "c2", Argv: []string{"true"}})
	if _, err := os.Stat(count); err == nil {
		t.Error("the command wrote all its output though nobody read it")
	}
	if exit := e.wait(); exit.Code != 0 || e.stdout.Len() != total {
		t.Errorf("%d bytes of %d, %+v", e.stdout.Len(), total, exit)
	}
}

// A flood keeps its bytes, in order, whatever they are.
func TestFlood(t *testing.T) {
	a := startAgent(t, nil)
	e := a.run(channel.Exec{Argv: []string{"sh", "-c", `yes "$(printf '\377\303')" | head -c 20000000`}})
	if want := bytes.Repeat([]byte("\xff\xc3\n"), 20_000_000/3+1)[:20_000_000]; !bytes.Equal(e.stdout.Bytes(), want) {
		t.Errorf("%d bytes, not those written", e.stdout.Len())
	}
}

// The end of a command is the end of its process, whoever holds its pipes (C-LI-04).
func TestGrandchildHoldsThePipe(t *testing.T) {
	a := startAgent(t, nil)
	dir := t.TempDir()
	e := a.run(channel.Exec{Argv: []string{"sh", "-c", "sh -c 'echo $$ > " + dir + "/pid; exec sleep 1000' & while [ ! -s " + dir + "/pid ]; do sleep 0.01; done; echo last"}})
	if e.exit.Code != 0 || e.stdout.String() != "last\n" {
		t.Errorf("%q %+v", e.stdout.String(), *e.exit)
	}
	pid, err := strconv.Atoi(readWhenThere(t, dir+"/pid"))
	if err != nil {
		t.Fatal(err)
	}
	if p, err := process.Read(pid); err != nil || p.Dead {
		t.Errorf("a process in the background did not outlive its command: %v", err)
	}
	e = a.run(channel.Exec{Argv: []string{"sh", "-c", "kill -KILL " + strconv.Itoa(pid)}})
	if e.exit.Code != 0 {
		t.Errorf("%+v", *e.exit)
	}
	gone(t, pid)
}

// A call that the host gives up is ended, since nobody could learn of it.
func TestSessionEndKillsCommands(t *testing.T) {
	a := startAgent(t, nil)
	e := a.start(channel.Exec{Argv: []string{"sh", "-c", "echo $$; exec sleep 1000"}})
	e.until("\n")
	_ = a.session.Close()
	gone(t, e.started.PID)
}

func TestManyAtOnce(t *testing.T) {
	a := startAgent(t, nil)
	const n = 50
	var all []*execution
	for i := range n {
		all = append(all, a.start(channel.Exec{ID: strconv.Itoa(i), Argv: []string{"sh", "-c", "echo $COFFERDAM_COMMAND; exit " + strconv.Itoa(i)}}))
	}
	for i, e := range all {
		if exit := e.wait(); exit.Code != i || e.stdout.String() != strconv.Itoa(i)+"\n" {
			t.Errorf("command %d: %q, %+v", i, e.stdout.String(), exit)
		}
	}
}
