package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// logTail is how much of a failed starter's log its error tells.
const logTail = 4 << 10

// validID tells whether s can name a sandbox or a command.
func validID(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' || s[0] == '-' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}) < 0
}

func checkLaunch(l *Launch) error {
	if l == nil {
		return fault.Invalid("a launch needs its description")
	}
	if !validID(l.ID) {
		return fault.Invalid("%q cannot be a sandbox's id: letters, digits, dot, dash and underscore, 1 to 128 of them", text.Shorten(l.ID, 64))
	}
	if len(l.Argv) == 0 || !filepath.IsAbs(l.Argv[0]) {
		return fault.Invalid("sandbox %s: the program to launch must be an absolute path", l.ID)
	}
	paths := append([]string{}, l.CgroupProcs...)
	for _, p := range []string{l.Dir, l.Log} {
		if p != "" {
			paths = append(paths, p)
		}
	}
	for _, p := range paths {
		if !filepath.IsAbs(p) {
			return fault.Invalid("sandbox %s: %q must be an absolute path", l.ID, text.Shorten(p, 256))
		}
	}
	for _, s := range slices.Concat(l.Argv, l.Env, paths) {
		if strings.ContainsRune(s, 0) {
			return fault.Invalid("sandbox %s: an argument, variable or path holds a zero byte", l.ID)
		}
	}
	return nil
}

// checked is what a launch runs, and the meta that it keeps.
func (s *Server) checked(l *Launch) (argv []string, meta json.RawMessage, err error) {
	if err := checkLaunch(l); err != nil {
		return nil, nil, err
	}
	if argv, err = s.joiningArgv(l); err != nil {
		return nil, nil, err
	}
	meta, err = checkMeta(l.Meta)
	return argv, meta, err
}

// launch starts a sandbox and returns when it runs. It is not bound to its
// client: one that gives up finds the sandbox in the list, or nothing.
func (s *Server) launch(l *Launch) (*sandbox, error) {
	argv, meta, err := s.checked(l)
	if err != nil {
		return nil, err
	}
	log, err := openLog(l.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()

	host, guest, err := channel.SocketPair()
	if err != nil {
		return nil, err
	}
	defer guest.Close()
	box, err := s.newSandbox(l, meta, host)
	if err != nil {
		_ = host.Close()
		return nil, err
	}
	if err := s.addSandbox(box); err != nil {
		_ = box.session.Close()
		_ = host.Close()
		return nil, err
	}
	safego.In(&s.streams, func() { s.uplink.serveStreams(box) })
	err = s.bringUp(box, l, argv, guest, log)
	if err == nil && l.Reset {
		_ = guest.Close() // so that a guest that has ended is noticed
		err = s.renewChannel(box, host)
	}
	if err != nil {
		s.removeSandbox(box)
		_ = box.session.Close()
		_ = host.Close()
		close(box.settled)
		return nil, fault.Wrap(fault.ErrUnavailable, err, "sandbox %s could not be launched%s", l.ID, readLogTail(box.began.path, box.began.size))
	}
	close(box.settled)
	s.log.Info("sandbox launched", slog.String("sandbox", l.ID))
	return box, nil
}

// joiningArgv returns the words with the program that joins the cgroups in front.
func (s *Server) joiningArgv(l *Launch) ([]string, error) {
	if len(l.CgroupProcs) == 0 {
		return l.Argv, nil
	}
	if len(s.cfg.CgroupExec) == 0 {
		return nil, fault.New(fault.ErrUnavailable, "this keeper has no program that joins cgroups")
	}
	return slices.Concat(s.cfg.CgroupExec, l.CgroupProcs, []string{"--"}, l.Argv), nil
}

func openLog(path string) (*os.File, error) {
	if path == "" {
		return os.OpenFile(os.DevNull, os.O_RDWR, 0)
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "a sandbox's log cannot be opened")
	}
	return log, nil
}

// logMark is a log, and how long it was.
type logMark struct {
	path string
	size int64
}

// markOf is a log as it is now; one that is not there yet is empty.
func markOf(path string) logMark {
	m := logMark{path: path}
	if info, err := os.Stat(path); err == nil {
		m.size = info.Size()
	}
	return m
}

// newSandbox makes a sandbox whose wire is host, or of a copy is to be.
func (s *Server) newSandbox(l *Launch, meta []byte, host net.Conn) (*sandbox, error) {
	wire := channel.UnpluggedWire()
	if !l.Reset {
		if err := wire.Plug(host); err != nil {
			return nil, err
		}
	}
	session, err := s.memory.NewHostSession(wire)
	if err != nil {
		return nil, errors.Join(err, wire.Close())
	}
	box := &sandbox{
		id: l.ID, started: time.Now(), reaper: s.reaper, log: s.log, session: session, wire: wire, meta: meta,
		calls: make(chan struct{}, maxCalls), dials: make(chan struct{}, maxDials), freezes: make(chan struct{}, maxFreezes), controls: make(chan struct{}, maxControls), follows: make(chan struct{}, maxFollows), inputs: make(chan struct{}, maxInputs), settled: make(chan struct{}), keepEnded: s.cfg.EndedCommands,
		moving: make(chan struct{}, 1), changed: make(chan struct{}), began: markOf(l.Log),
	}
	box.output = s.output.newOutputShare(box.relieveOutput)
	return box, nil
}

// renewChannel has the guest of a copy start its end of the channel anew, on the wire
// that it already has. An attached process that does not is killed, and gone when
// that is told; what a starter left behind is its caller's to find.
func (s *Server) renewChannel(box *sandbox, host net.Conn) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	safego.Go(func() { // a kill ends the waiting, too
		select {
		case <-box.session.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	err := box.wire.Renew(ctx, host)
	if err == nil {
		return nil
	}
	box.mu.Lock()
	tracked := slices.Clone(box.tracked)
	box.mu.Unlock()
	for _, p := range tracked {
		err = errors.Join(err, s.reaper.signalChild(p, syscall.SIGKILL, true))
	}
	ending, over := context.WithTimeout(context.Background(), killPatience)
	defer over()
	return errors.Join(err, awaitEnd(ending, box.id, tracked))
}

// killPatience bounds the wait for a process that was killed and may be held by a disk.
const killPatience = 10 * time.Second

// bringUp starts the process, and waits for it if it is only a starter. The
// child has the guest's end as stdin and stdout, the log as stderr, no other
// descriptor, and a session of its own.
func (s *Server) bringUp(box *sandbox, l *Launch, argv []string, guest, log *os.File) error {
	wire := guest.Fd()
	p, err := s.reaper.startChild(box.id, argv, &syscall.ProcAttr{
		Dir: l.Dir, Env: l.Env, Files: []uintptr{wire, wire, log.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	box.mu.Lock()
	box.born = p.born
	if l.Attached {
		box.tracked = []*child{p}
	} else {
		box.starter = p
	}
	killed := box.killed
	box.mu.Unlock()
	if killed { // while it was being started
		_ = s.reaper.signalChild(p, syscall.SIGKILL, true)
	}
	if l.Attached {
		safego.Go(func() { box.closeAfter([]*child{p}) })
		return nil
	}
	<-p.done
	if p.exit.Code != 0 {
		return fmt.Errorf("%s ended with %d", l.Argv[0], p.exit.Code)
	}
	return nil
}

// readLogTail reads the end of what was written to a log since, as one clause.
func readLogTail(path string, since int64) string {
	if path == "" {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || end <= since {
		return ""
	}
	buf := make([]byte, min(end-since, logTail))
	n, _ := f.ReadAt(buf, end-int64(len(buf)))
	text := strings.TrimSpace(strings.Map(printable, strings.ToValidUTF8(string(buf[:n]), "?")))
	return fmt.Sprintf(" (%s: %s)", path, text)
}

// printable keeps lines and drops what could drive a terminal.
func printable(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
		return -1
	}
	return r
}
