package template

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// runTool runs a tool, turns its output into progress, keeps that output in
// the store as build.log, and makes one sentence of a failure.
func (b *debianBuild) runTool(ctx context.Context, c command) error {
	logPath := filepath.Join(b.store.dir, "."+NameDebian+".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return diskFault(err, b.store.dir)
	}
	defer func() { _ = log.Close() }()
	// The child dies with the thread that started it (Pdeathsig), so a killed
	// build leaves no installer behind; hence the locked thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, c.path, c.args...) //nolint:gosec // our own arguments
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second // the tool unmounts and removes first
	stderr, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = stderr.Close() }()
	cmd.Stderr, cmd.Stdout = writer, writer
	if err := cmd.Start(); err != nil {
		_ = writer.Close()
		return fault.Wrap(fault.ErrUnavailable, err, "%s cannot be started", c.path)
	}
	_ = writer.Close()
	meter := newMeter(b.report)
	watch(io.TeeReader(stderr, log), meter)
	err = cmd.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return toolFault(err, filepath.Base(c.path), meter.complaints, logPath, b.store.dir)
	}
	return nil
}

// watch feeds lines to the meter until the tool has closed its output.
func watch(r io.Reader, m *meter) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		m.line(string(line))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// toolFault says what a failed tool's complaints mean.
func toolFault(err error, tool string, complaints []string, logPath, dir string) error {
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
		return fault.Wrap(fault.ErrUnavailable, err, "the disk is full%s, so the debian template was not built", freeSpace(dir))
	case has("Could not resolve", "Temporary failure resolving", "Could not connect", "Unable to connect", "Failed to fetch", "Connection failed", "Connection timed out"):
		return fault.Wrap(fault.ErrUnavailable, err, "the Debian mirror cannot be reached (%s): check the network, or the proxy that apt uses", says)
	case has("newuidmap", "newgidmap", "/etc/subuid", "unprivileged_userns_clone", "unshare"):
		return fault.Wrap(fault.ErrUnavailable, err, "this user may not make the namespaces that a build needs (%s): build it once as root (sudo cofferdam template build debian), or use the template host", says)
	case has("NO_PUBKEY", "is not signed", "not have a Release file"):
		return fault.Wrap(fault.ErrUnavailable, err, "the mirror's signature was not accepted (%s): check apt's sources and keyrings on this host", says)
	}
	return fault.Wrap(fault.ErrUnavailable, err, "%s failed (%s); its output is in %s", tool, says, logPath)
}
