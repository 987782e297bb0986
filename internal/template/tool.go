package template

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// command is a tool to be run for a build.
type command struct {
	path string
	args []string
	dir  string
	env  []string
}

// watchdog runs a tool and ends all of its process group when the builder is
// gone, however it went: descriptor 3 is a pipe that only the builder holds
// the other end of. A TERM is for the tool, which tidies up; the shell waits. The dog
// ends by KILL: one that has just begun would take a TERM as the shell does, and stay.
const watchdog = `trap : TERM
"$@" 3<&- &
tool=$!
( read -r _ <&3; kill -KILL 0 ) 2>/dev/null &
dog=$!
exec 3<&-
status=0
while kill -0 $tool 2>/dev/null; do wait $tool; status=$?; done
kill -KILL $dog 2>/dev/null
exit $status
`

// runTool runs a tool, turns its output into progress, keeps that output in
// the store, and makes one sentence of a failure.
func (b *debianBuild) runTool(ctx context.Context, c command) error {
	life, held, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	output, writer, err := os.Pipe()
	if err != nil {
		_ = life.Close()
		return err
	}
	defer func() { _ = output.Close() }()
	cmd := c.watched(ctx)
	cmd.ExtraFiles = []*os.File{life}
	cmd.Stderr, cmd.Stdout = writer, writer
	err = cmd.Start()
	_ = writer.Close()
	_ = life.Close()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "%s cannot be started", c.path)
	}
	meter := newMeter(b.say)
	watch(output, meter, b.log)
	err = cmd.Wait()
	if ended := interrupted(ctx, b.layout.name); ended != nil {
		return ended
	}
	if err != nil {
		return toolFault(err, filepath.Base(c.path), b.layout.name, meter.complaints, b.log.path, b.store.dir)
	}
	return nil
}

// watched is the tool's command under the watchdog, in a process group of its own.
func (c command) watched(ctx context.Context) *exec.Cmd {
	args := append([]string{"-c", watchdog, "watchdog", c.path}, c.args...)
	cmd := exec.CommandContext(ctx, "/bin/sh", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		// Mounts of its own, private: they go with the last process.
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second // the tool unmounts and removes first
	return cmd
}

// watch feeds lines to the meter and the log until the tool has closed its output.
func watch(r io.Reader, m *meter, log io.Writer) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		_, _ = log.Write(line)
		m.line(string(line))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
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
