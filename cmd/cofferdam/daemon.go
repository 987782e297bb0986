package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// How a daemon is waited for.
const (
	daemonTimeout = 60 * time.Second
	daemonPoll    = 20 * time.Millisecond
	logTail       = 4 << 10
)

// connectDaemon returns a client of the daemon that the command line names, else of this
// user's own, and starts that in the background where none runs.
func connectDaemon(ctx context.Context) (*client.Client, error) {
	if c, err := elsewhere(ctx); c != nil || err != nil {
		return c, err
	}
	return connectHere(ctx)
}

// connectHere connects to this user's own daemon, whatever daemon a command is for: what lies on this host, and who
// uses it, no other one knows.
func connectHere(ctx context.Context) (*client.Client, error) {
	paths, err := config.DefaultPaths()
	if err != nil {
		return nil, err
	}
	return connectAt(ctx, paths)
}

func connectAt(ctx context.Context, paths config.Paths) (*client.Client, error) {
	c := client.Own(paths.DaemonSocket())
	_, err := c.Version(ctx)
	if err == nil {
		return c, nil
	}
	// A connection that is lost before the first answer is one to a daemon that
	// is about to end.
	if !errors.Is(err, client.ErrNoDaemon) && !errors.Is(err, client.ErrLost) {
		return nil, fmt.Errorf("the daemon at %s does not answer: %w", paths.DaemonSocket(), err)
	}
	if err := paths.Make(); err != nil {
		return nil, err
	}
	unlock, err := lockStart(ctx, paths)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another client may have started one meanwhile, somebody else may just be
	// starting one, or one may be about to end: it still has its lock then.
	running := func() bool {
		_, err := c.Version(ctx)
		return err == nil
	}
	waiting, cancel := context.WithTimeout(ctx, daemonTimeout)
	defer cancel()
	if err := awaitLock(waiting, paths, running); err != nil {
		return nil, fmt.Errorf("a daemon holds %s and does not listen; see %s: %w", paths.DaemonLock(), paths.DaemonLog(), err)
	}
	if running() {
		return c, nil
	}
	return c, ui.ShowWaiting("starting the daemon", func() error { return startDaemon(ctx, c, paths) })
}

// awaitLock returns when no daemon has the daemon's lock, or enough says that
// this need not be waited for.
func awaitLock(ctx context.Context, paths config.Paths, enough func() bool) error {
	lock, err := filelock.Await(ctx, paths.DaemonLock(), daemonPoll, func() error {
		if enough() {
			return filelock.ErrHeld
		}
		return nil
	})
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	return lock.Release()
}

// lockStart lets one client at a time start a daemon. The lock ends with the
// process, whatever becomes of it.
func lockStart(ctx context.Context, paths config.Paths) (unlock func(), err error) {
	lock, err := filelock.Await(ctx, filepath.Join(paths.Runtime, "start.lock"), daemonPoll, nil)
	if err != nil {
		return nil, fmt.Errorf("lock the start of the daemon: %w", err)
	}
	return func() { _ = lock.Release() }, nil
}

// startDaemon runs `serve --background` in a session of its own, its output in
// the daemon's log, and returns when it answers or why it does not.
func startDaemon(ctx context.Context, c *client.Client, paths config.Paths) error {
	log, err := config.OpenLog(paths.DaemonLog())
	if err != nil {
		return fmt.Errorf("open the daemon's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	before, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("open the daemon's log: %w", err)
	}
	ended, err := spawnDaemon(log)
	if err != nil {
		return err
	}
	timeout := time.NewTimer(daemonTimeout)
	defer timeout.Stop()
	tick := time.NewTicker(daemonPoll)
	defer tick.Stop()
	for {
		if _, err := c.Version(ctx); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case state := <-ended:
			if _, err := c.Version(ctx); err == nil { // it found another one at work
				return nil
			}
			return fmt.Errorf("the daemon did not start (%s)%s", state, readLogTail(paths.DaemonLog(), before))
		case <-timeout.C:
			return fmt.Errorf("the daemon did not answer within %s%s", daemonTimeout, readLogTail(paths.DaemonLog(), before))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// spawnDaemon starts the daemon and yields how it ended, should it end.
func spawnDaemon(log *os.File) (<-chan string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program to start the daemon: %w", err)
	}
	cmd := exec.Command(self, "serve", "--background") //nolint:noctx // this very program; it outlives this one
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	ended := make(chan string, 1)
	go func() {
		_ = cmd.Wait() // ProcessState tells it better
		ended <- cmd.ProcessState.String()
	}()
	return ended, nil
}

// readLogTail reads the end of what the log has had since an offset, for an error.
func readLogTail(path string, since int64) string {
	file, err := os.Open(path)
	if err != nil {
		return "; see " + path
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil {
		since = max(since, info.Size()-logTail)
	}
	text, err := io.ReadAll(io.NewSectionReader(file, since, logTail))
	text = bytes.TrimSpace(text)
	if err != nil || len(text) == 0 {
		return "; its log " + path + " says nothing"
	}
	return "; its log " + path + " says:\n" + string(text)
}
