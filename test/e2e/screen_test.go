package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// screen STEPS ARG... runs cofferdam at a terminal, which is tmux without anybody before it.
// The file STEPS has what a person does, a line each:
//
//	see TEXT      waits until the screen has the text
//	choose TEXT   waits for a list that has it, moves the list's mark there, and takes it
//	insist TEXT   the same, and again until the line is gone
//	type TEXT     types it
//	press KEY     presses a key by its name in tmux: Enter, Down, Escape
//
// At their end the terminal is closed, as a person closes a window, which has to end the command.
func screen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: screen STEPS ARG...")
	}
	dir, err := os.MkdirTemp("", "cfd") // a socket's path must be short
	ts.Check(err)
	defer os.RemoveAll(dir)
	t := &terminal{socket: filepath.Join(dir, "tmux"), changed: make(chan struct{}, 1), over: make(chan struct{})}
	for _, name := range []string{"PATH", "COFFERDAM_STATE", "COFFERDAM_RUNTIME", "HOME"} {
		t.env = append(t.env, name+"="+ts.Getenv(name))
	}
	ts.Check(os.WriteFile(filepath.Join(dir, "conf"), []byte(terminalConf), 0o600))
	start := []string{"-u", "-f", filepath.Join(dir, "conf"), "new-session", "-d", "-x", "120", "-y", "40", "-c", ts.MkAbs(".")}
	_, err = t.tmux(append(append(start, filepath.Join(ts.Getenv("BIN"), "cofferdam")), args[1:]...)...)
	ts.Check(err)
	err = t.follow(ts.ReadFile(args[0]))
	if closed := t.close(); err == nil {
		err = closed
	}
	if err != nil {
		ts.Fatalf("%v", err)
	}
}

// terminalConf is a terminal with colours that programs can ask for.
const terminalConf = `
set -g default-terminal tmux-256color
set -g window-style "fg=#ffffff,bg=#000000"
set -g escape-time 0
set -g status off
`

// terminal is a tmux of its own, with one command in it.
type terminal struct {
	socket string
	env    []string

	changed chan struct{} // has something if the screen is another, perhaps
	over    chan struct{} // closed when the command has ended
	last    string        // what was on the screen
}

// tmux is what one of its commands prints.
func (t *terminal) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-S", t.socket}, args...)...)
	cmd.Env = append([]string{"TERM=xterm-256color", "COLORTERM=truecolor", "LC_ALL=C.UTF-8"}, t.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

// follow takes the steps.
func (t *terminal) follow(steps string) error {
	stop, err := t.watch()
	if err != nil {
		return err
	}
	defer stop()
	for step := range strings.Lines(steps) {
		verb, what, _ := strings.Cut(strings.TrimSuffix(step, "\n"), " ")
		switch verb {
		case "see":
			err = t.until(what, func(lines []string) bool { return strings.Contains(strings.Join(lines, "\n"), what) })
		case "choose":
			err = t.choose(what)
		case "insist":
			err = t.insist(what)
		case "type":
			_, err = t.tmux("send-keys", "-l", what)
		case "press":
			_, err = t.tmux("send-keys", what)
		default:
			err = fmt.Errorf("%q is no step: see, choose, insist, type or press", step)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watch has tmux tell what happens on the screen, until stop.
func (t *terminal) watch() (stop func(), err error) {
	cmd := exec.Command("tmux", "-S", t.socket, "-C", "attach-session", "-f", "ignore-size")
	cmd.Env = t.env
	in, err := cmd.StdinPipe() // it leaves at its end
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(t.over)
		buf := make([]byte, 32<<10)
		for {
			if _, err := out.Read(buf); err != nil {
				return
			}
			select {
			case t.changed <- struct{}{}:
			default: // it will look anyway
			}
		}
	}()
	return func() {
		_ = in.Close()
		<-t.over
		_ = cmd.Wait() // it may have lost its server
	}, nil
}

// until waits until what is on the screen is good.
func (t *terminal) until(what string, good func(lines []string) bool) error {
	limit := time.NewTimer(longestWait)
	defer limit.Stop()
	for {
		if text, err := t.tmux("capture-pane", "-p"); err == nil {
			t.last = text
		}
		if good(strings.Split(t.last, "\n")) {
			return nil
		}
		select {
		case <-t.changed:
		case <-t.over:
			return fmt.Errorf("the command ended before the screen had %q:\n%s", what, t.last)
		case <-limit.C:
			return fmt.Errorf("the screen has no %q:\n%s", what, t.last)
		}
	}
}

// mark is how lists of agents show which of their lines return would take.
var mark = regexp.MustCompile(`^[\s│]*[❯›●>]\s`)

// choose takes a line of a list: it moves the mark there, and when it has seen that presses
// Enter once. Some programs lose keys that come too fast.
func (t *terminal) choose(what string) error {
	moved := -1
	var failed error
	err := t.until(what, func(lines []string) bool {
		want, at := marked(lines, what)
		if at < 0 || at == want || at == moved {
			return at >= 0 && at == want
		}
		moved = at
		key := "Down"
		if at > want {
			key = "Up"
		}
		_, failed = t.tmux("send-keys", key)
		return failed != nil
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	_, err = t.tmux("send-keys", "Enter")
	return err
}

// insist is choose that goes on until the line is gone: some programs draw a list anew, with
// its mark where it was, after a key was pressed.
func (t *terminal) insist(what string) error {
	sent := "" // the key whose effect is waited for
	from := -1 // where the mark was when it was sent
	taken := false
	var failed error
	err := t.until(what, func(lines []string) bool {
		want, at := marked(lines, what)
		if want < 0 {
			return taken
		}
		key := "Enter"
		if at < want {
			key = "Down"
		} else if at > want {
			key = "Up"
		}
		if at < 0 || key == sent && at == from {
			return false
		}
		sent, from, taken = key, at, taken || key == "Enter"
		_, failed = t.tmux("send-keys", key)
		return failed != nil
	})
	return errors.Join(err, failed)
}

// marked are the lines that have a text, and the list's mark next to that; -1: there is none.
func marked(lines []string, what string) (want, at int) {
	want, at = -1, -1
	for i, line := range lines {
		if strings.Contains(line, what) {
			want = i
		}
	}
	for i, line := range lines {
		if want >= 0 && mark.MatchString(line) && (at < 0 || distance(i, want) < distance(at, want)) {
			at = i
		}
	}
	return want, at
}

func distance(a, b int) int { return max(a-b, b-a) }

// close takes the terminal away, and waits for the command's end.
func (t *terminal) close() error {
	text, err := t.tmux("display-message", "-p", "#{pane_pid}")
	if err != nil {
		return nil // it has ended, and tmux with it
	}
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return err
	}
	command, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(command)
	if _, err := t.tmux("kill-server"); err != nil {
		return err
	}
	ended := []unix.PollFd{{Fd: int32(command), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(ended, int(longestWait.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			_ = unix.PidfdSendSignal(command, unix.SIGKILL, nil, 0)
			return errors.New("the command lives on without its terminal")
		default:
			return nil
		}
	}
}
