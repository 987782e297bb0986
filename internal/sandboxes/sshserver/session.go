package sshserver

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Bounds of what a client says before its command starts.
const (
	mostVariables = 200
	mostVariable  = 32 << 10 // bytes of one, with its name
)

const shell = "/bin/bash"

// Size of a terminal of which the client does not say it.
const (
	usualRows = 24
	usualCols = 80
)

// refused is how a command that could not be started ends; the text is on stderr.
const refused = 126

// sftpServer starts the template's own server of files, wherever its distribution has it.
const sftpServer = `for server in /usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/lib/ssh/sftp-server /usr/libexec/sftp-server; do
	[ -x "$server" ] && exec "$server"
done
echo "there is no sftp-server in this sandbox: use the template debian or dev, or install openssh-sftp-server in your own; cofferdam cp works without" >&2
exit 127`

// sshSession is one channel of a client's: what it says of its command first, and then the
// command.
type sshSession struct {
	sandbox Sandbox
	channel ssh.Channel
	start   Command // as far as it is known

	hungUp sync.Once // a command is told once that its client has gone

	begun chan struct{} // closed when the command has started, or can't be

	mu         sync.Mutex // guards what follows
	process    Process    // nil: none runs
	rows, cols uint16     // that the client said last, once the command was asked for
}

// serveSession has a session be set up, runs its command, and tells how that ended.
func serveSession(ctx context.Context, sandbox Sandbox, user string, channel ssh.Channel, requests <-chan *ssh.Request) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	s := &sshSession{sandbox: sandbox, channel: channel, start: Command{User: user, Env: map[string]string{}}, begun: make(chan struct{})}
	for r := range requests {
		argv, known := s.takeRequest(ctx, r)
		if r.WantReply {
			_ = r.Reply(known, nil) // whoever has gone needs none
		}
		if argv != nil {
			s.start.Argv = argv
			start := s.start // from here on the terminal's size is the process's matter
			safego.In(&running, func() { s.runCommand(ctx, start) })
		}
	}
	s.hangUp(ctx)
}

// takeRequest does what a request asks for. argv is not nil if it starts the session's command,
// which one request does.
func (s *sshSession) takeRequest(ctx context.Context, r *ssh.Request) (argv []string, known bool) {
	if s.start.Argv != nil {
		return nil, s.tellCommand(ctx, r)
	}
	switch r.Type {
	case "pty-req":
		var p struct {
			Term                      string
			Cols, Rows, Width, Height uint32
			Modes                     string
		}
		if ssh.Unmarshal(r.Payload, &p) != nil {
			return nil, false
		}
		s.start.Rows, s.start.Cols = terminalSize(p.Rows, usualRows), terminalSize(p.Cols, usualCols)
		return nil, s.variable("TERM", p.Term)
	case "env":
		var p struct{ Name, Value string }
		return nil, ssh.Unmarshal(r.Payload, &p) == nil && s.variable(p.Name, p.Value)
	case "shell":
		return []string{shell, "-l"}, true
	case "exec":
		var p struct{ Command string }
		if ssh.Unmarshal(r.Payload, &p) != nil {
			return nil, false
		}
		return []string{shell, "-c", p.Command}, true
	case "subsystem":
		var p struct{ Name string }
		if ssh.Unmarshal(r.Payload, &p) != nil || p.Name != "sftp" {
			return nil, false
		}
		return []string{"/bin/sh", "-c", sftpServer}, true
	}
	return nil, false // agents and displays among them
}

// variable sets one for the command, unless there are too many, or it is no text: with that the
// command would not start at all, and clients send what their own locale has.
func (s *sshSession) variable(name, value string) bool {
	if name == "" || !utf8.ValidString(name) || !utf8.ValidString(value) || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") ||
		len(name)+len(value) > mostVariable || len(s.start.Env) >= mostVariables {
		return false
	}
	s.start.Env[name] = value
	return true
}

// tellCommand passes a request on to the command that runs.
func (s *sshSession) tellCommand(ctx context.Context, r *ssh.Request) bool {
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	switch r.Type {
	case "window-change":
		var p struct{ Cols, Rows, Width, Height uint32 }
		if ssh.Unmarshal(r.Payload, &p) != nil {
			return false
		}
		s.resize(ctx, terminalSize(p.Rows, usualRows), terminalSize(p.Cols, usualCols))
		return true
	case "signal":
		var p struct{ Name string }
		if ssh.Unmarshal(r.Payload, &p) != nil || process == nil {
			return false
		}
		process.Signal(ctx, p.Name)
		return true
	}
	return false
}

// resize has the command's terminal be of a size, now or when it has started.
func (s *sshSession) resize(ctx context.Context, rows, cols uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.cols = rows, cols
	if s.process != nil {
		s.process.Resize(ctx, rows, cols)
	}
}

// setProcess sets the command that runs; nil: it has ended.
func (s *sshSession) setProcess(ctx context.Context, process Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = process
	if process != nil && s.rows > 0 {
		process.Resize(ctx, s.rows, s.cols)
	}
}

// hangUp tells a command that its client has gone, as a terminal would. One that is just
// being started is waited for: it would go on with nobody there.
func (s *sshSession) hangUp(ctx context.Context) {
	if s.start.Argv == nil {
		return
	}
	wait := time.NewTimer(lastWords)
	defer wait.Stop()
	select {
	case <-s.begun:
	case <-wait.C:
	}
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	if process != nil {
		s.hungUp.Do(func() { process.HangUp(ctx) })
	}
}

// runCommand starts the command and stays with it.
func (s *sshSession) runCommand(ctx context.Context, start Command) {
	process, err := s.sandbox.Start(ctx, start)
	if err == nil {
		s.setProcess(ctx, process)
	}
	close(s.begun)
	if err != nil {
		s.writeLine("%s", err)
		s.sendExit(Exit{Code: refused})
		return
	}
	exit, err := process.Follow(ctx, s.channel, s.channel, s.channel.Stderr())
	if err != nil && ctx.Err() != nil { // it goes on: the server was ended, as ssh ends its proxy
		s.hungUp.Do(func() { process.HangUp(ctx) })
	}
	s.setProcess(ctx, nil)
	if err != nil {
		s.writeLine("the command was lost: %s", err)
		exit = Exit{Code: refused}
	} else if exit.Error != "" {
		s.writeLine("%s", exit.Error)
	}
	s.sendExit(exit)
}

// writeLine writes a line for the person at the client's. At a terminal a line ends at its left.
func (s *sshSession) writeLine(format string, args ...any) {
	end := "\n"
	if s.start.Rows > 0 {
		end = "\r\n"
	}
	_, _ = io.WriteString(s.channel.Stderr(), "cofferdam: "+fmt.Sprintf(format, args...)+end) // to whoever is there
}

// sendExit tells how the command ended, and ends the channel. A client that has gone is told nothing.
func (s *sshSession) sendExit(e Exit) {
	_ = s.channel.CloseWrite()
	if e.Signal != "" {
		_, _ = s.channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Name        string
			Core        bool
			Error, Lang string
		}{Name: e.Signal}))
	} else {
		_, _ = s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(e.Code)}))
	}
	_ = s.channel.Close()
}

// terminalSize is a terminal's, of which a client may know nothing, or too much.
func terminalSize(wanted uint32, usual uint16) uint16 {
	if wanted == 0 || wanted > 10_000 {
		return usual
	}
	return uint16(wanted)
}

// userInside is whom a login name means: root, a number, or else the sandbox's own user.
func userInside(login string) string {
	if _, err := strconv.ParseUint(login, 10, 32); err == nil || login == "root" {
		return login
	}
	return ""
}

// quoted is what a client said, for a message.
func quoted(s string) string { return strconv.QuoteToASCII(text.Shorten(s, 64)) }
