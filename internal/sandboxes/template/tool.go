package template

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// toolCommand is a tool to be run for a build.
type toolCommand struct {
	path string
	args []string
	dir  string
	env  []string
}

// watchdog runs a tool and ends all of its process group when the builder is
// gone, however it went: descriptor 3 is a pipe that only the builder holds
// the other end of. A TERM is for the tool, which tidies up; the shell waits, and the dog
// watches on, so that it ends by KILL alone.
const watchdog = `trap : TERM
"$@" 3<&- &
tool=$!
( trap '' TERM; read -r _ <&3; kill -KILL 0 ) 2>/dev/null &
dog=$!
exec 3<&-
status=0
while kill -0 $tool 2>/dev/null; do wait $tool; status=$?; done
kill -KILL $dog 2>/dev/null
exit $status
`

// runTool runs a tool, turns its output into progress, keeps that output in
// the store, and makes one sentence of a failure.
func (b *debianBuild) runTool(ctx context.Context, c toolCommand) error {
	life, held, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	meter := newMeter(b.reportStep)
	output := &toolOutput{meter: meter, log: b.log}
	cmd := c.watched(ctx, b.store.grace)
	cmd.ExtraFiles = []*os.File{life}
	cmd.Stderr, cmd.Stdout = output, output
	err = cmd.Start()
	_ = life.Close()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "%s cannot be started", c.path)
	}
	err = cmd.Wait()
	output.flushOutput()
	if ctx.Err() != nil { // who takes no notice of a TERM is of the group still
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the tool has done its work, and what it left behind holds its output
	}
	if ended := interrupted(ctx, b.layout.name); ended != nil {
		return ended
	}
	if err != nil {
		return toolFault(err, filepath.Base(c.path), b.layout.name, meter.complaints, b.log.path, b.store.dir)
	}
	return nil
}

// watched is the tool's command under the watchdog, in a process group of its own. When ctx ends the tool has a TERM
// and the grace to unmount and remove; one that is deaf, or was not there yet when the TERM came, then goes with all of its group. The same grace bounds who holds the output after the tool's end.
func (c toolCommand) watched(ctx context.Context, grace time.Duration) *exec.Cmd {
	args := append([]string{"-c", watchdog, "watchdog", c.path}, c.args...)
	cmd := exec.CommandContext(ctx, "/bin/sh", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		// Mounts of its own, private: they go with the last process.
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd
}

// longestLine is how many bytes of a tool's line are looked at as one.
const longestLine = 64 << 10

// toolOutput feeds a tool's lines to the meter, and all that it says to the log.
type toolOutput struct {
	meter *meter
	log   io.Writer
	line  []byte
}

// Write implements io.Writer; it never fails, so that the tool goes on.
func (o *toolOutput) Write(p []byte) (int, error) {
	_, _ = o.log.Write(p)
	for rest := p; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		part = part[:min(len(part), longestLine-len(o.line))]
		o.line = append(o.line, part...)
		if whole || len(o.line) == longestLine {
			o.flushOutput()
		}
		rest = after
	}
	return len(p), nil
}

// flushOutput gives the meter what has no end of a line yet.
func (o *toolOutput) flushOutput() {
	if len(o.line) > 0 {
		o.meter.takeLine(string(o.line))
		o.line = o.line[:0]
	}
}

// toolFault says what a failed tool's complaints mean.
func toolFault(err error, tool, name string, complaints []string, logPath, dir string) error {
	all := strings.Join(complaints, "\n")
	says := "nothing"
	if len(complaints) > 0 {
		says = complaints[0]
	}
	has := func(texts ...string) bool {
		for _, t := range texts {
			if strings.Contains(all, t) {
				return true
			}
		}
		return false
	}
	switch {
	case has("No space left on device", "enough free space", "Disk quota exceeded"):
		return fault.Wrap(fault.ErrUnavailable, err, "the disk is full%s, so the template was not built", freeSpace(dir))
	case has("Could not resolve", "Temporary failure resolving", "Could not connect", "Unable to connect", "Failed to fetch", "Connection failed", "Connection timed out"):
		return fault.Wrap(fault.ErrUnavailable, err, "the Debian mirror cannot be reached (%s): check the network, or the proxy that apt uses", says)
	case has("newuidmap", "newgidmap", "/etc/subuid", "unprivileged_userns_clone", "unshare"):
		return fault.Wrap(fault.ErrUnavailable, err, "this user may not make the namespaces that a build needs (%s): apt-get install -y uidmap, and see that /etc/subuid and /etc/subgid have a line for the user; or %s", says, asRoot(name))
	case has("not have a Release file", "404  Not Found"):
		return fault.Wrap(fault.ErrUnavailable, err, "the mirror does not have the suite or a package (%s): run apt-get update, and check apt's sources on this host", says)
	case has("NO_PUBKEY", "is not signed"):
		return fault.Wrap(fault.ErrUnavailable, err, "the mirror's signature was not accepted (%s): check apt's sources and keyrings on this host", says)
	}
	return fault.Wrap(fault.ErrUnavailable, err, "%s failed (%s); its output is in %s", tool, says, logPath)
}
