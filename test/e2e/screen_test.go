package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// screen STEPS ARG... runs cofferdam at a terminal that answers what programs ask of
// one. The file STEPS has what a person does, a line each: "see TEXT" waits until the screen
// has had the text since the step before, "type KEYS" types ("\r" is the return key, "\e"
// escape). At their end the terminal is closed, as a person closes a window.
func screen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: screen STEPS ARG...")
	}
	cmd := exec.Command(filepath.Join(ts.Getenv("BIN"), "cofferdam"), args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "COFFERDAM_STATE", "COFFERDAM_RUNTIME", "HOME"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "COLORTERM=truecolor")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	ts.Check(err)
	s := &watched{tty: tty}
	s.changed = sync.NewCond(&s.mu)
	go s.watch()
	err = s.follow(ts.ReadFile(args[0]))
	_ = tty.Close() // it gets SIGHUP, which ends its sandbox
	limit := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
	defer limit.Stop()
	_ = cmd.Wait() // of a signal, mostly
	if err != nil {
		ts.Fatalf("%v", err)
	}
}

// stepTime is how long a screen may stay without what is waited for.
const stepTime = time.Minute

// watched is a terminal and what it was shown.
type watched struct {
	tty *os.File

	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	raw     []byte
	seen    int // of the text, by the steps so far
	over    bool
}

// watch reads what comes, and answers questions.
func (s *watched) watch() {
	buf := make([]byte, 32<<10)
	answered := 0
	for {
		n, err := s.tty.Read(buf)
		s.mu.Lock()
		s.raw = append(s.raw, buf[:n]...)
		answered = s.answer(answered)
		s.over = err != nil
		s.changed.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// questions are what programs ask of a terminal: where the cursor is, what it is, which
// keys it knows, how large it is, and its colours.
var questions = regexp.MustCompile(`\x1b(?:\[6n|\[0?c|\[\?u|\[>0?q|\[14t|\]1\d;\?(?:\x07|\x1b\\)|\]4;\d+;\?(?:\x07|\x1b\\))`)

// replies has what xterm says to each, by how it begins.
var replies = []struct{ asked, reply string }{
	{"\x1b[6n", "\x1b[1;1R"},
	{"\x1b[c", "\x1b[?62;22c"},
	{"\x1b[0c", "\x1b[?62;22c"},
	{"\x1b[?u", "\x1b[?0u"},
	{"\x1b[>", "\x1bP>|xterm(1)\x1b\\"},
	{"\x1b[14t", "\x1b[4;800;1200t"},
	{"\x1b]10;?", "\x1b]10;rgb:ffff/ffff/ffff\x1b\\"},
	{"\x1b]11;?", "\x1b]11;rgb:0000/0000/0000\x1b\\"},
}

// answer answers what was asked since an offset, and is the next one. Needs mu.
func (s *watched) answer(since int) int {
	next := since
	for _, at := range questions.FindAllIndex(s.raw[since:], -1) {
		next = since + at[1]
		asked := string(s.raw[since+at[0] : next])
		reply := strings.Replace(asked, "?", "rgb:1111/2222/3333", 1) // a colour, by its number
		for _, r := range replies {
			if strings.HasPrefix(asked, r.asked) {
				reply = r.reply
			}
		}
		_, _ = s.tty.WriteString(reply) // whoever is gone asks no more
	}
	return next
}

// follow takes the steps.
func (s *watched) follow(steps string) error {
	for step := range strings.Lines(steps) {
		verb, what, _ := strings.Cut(strings.TrimSuffix(step, "\n"), " ")
		switch verb {
		case "see":
			if err := s.see(what); err != nil {
				return err
			}
		case "type":
			keys := strings.NewReplacer(`\r`, "\r", `\e`, "\x1b").Replace(what)
			if _, err := s.tty.WriteString(keys); err != nil {
				return fmt.Errorf("type %q: %w", what, err)
			}
		default:
			return fmt.Errorf("%q is no step: see or type", step)
		}
	}
	return nil
}

// see waits for text. Programs move the cursor where others write a space, so spaces count
// nothing.
func (s *watched) see(want string) error {
	late := false
	limit := time.AfterFunc(stepTime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.changed.Broadcast()
	})
	defer limit.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		text := shown(s.raw)
		if i := strings.Index(text[min(s.seen, len(text)):], squeezed(want)); i >= 0 {
			s.seen += i + len(squeezed(want))
			return nil
		}
		if s.over || late {
			return fmt.Errorf("the screen has no %q:\n%s", want, text[max(0, len(text)-4000):])
		}
		s.changed.Wait()
	}
}

// sequences are what moves the cursor, sets colours and asks questions.
var sequences = regexp.MustCompile(`\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b[\]P_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-B]|\x1b.`)

// shown is the letters of what was written to a terminal.
func shown(raw []byte) string { return squeezed(string(sequences.ReplaceAll(raw, nil))) }

func squeezed(s string) string { return strings.Join(strings.Fields(s), "") }
