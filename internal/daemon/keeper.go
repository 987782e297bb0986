package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// What the daemon grants a keeper.
const (
	keeperPatience = 10 * time.Second // to listen, when it is fresh
	keeperPause    = time.Second      // before what could not be done is tried again
	keeperLook     = 500              // milliseconds between two looks whether the daemon ends
)

// startKeeper finds the living keeper or starts one in a session of its own, so
// that no signal to the daemon reaches it.
func (d *Daemon) startKeeper(ctx context.Context) error {
	d.keeper = keeper.Dial(d.opts.Paths.KeeperSocket())
	return d.haveKeeper(ctx)
}

func (d *Daemon) haveKeeper(ctx context.Context) error {
	if d.keeper.Ping(ctx) == nil {
		return nil
	}
	log, err := os.OpenFile(d.opts.Paths.KeeperLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	//nolint:noctx // the keeper outlives this daemon
	cmd := exec.Command(d.opts.Executable, "keeper")
	cmd.Env = append(os.Environ(), "COFFERDAM_STATE="+d.opts.Paths.State, "COFFERDAM_RUNTIME="+d.opts.Paths.Runtime)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	errand.Go(func() { ended <- cmd.Wait() })
	return d.awaitKeeper(ctx, ended)
}

func (d *Daemon) awaitKeeper(ctx context.Context, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, keeperPatience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("the keeper ended at once (%w); %s says more", orExit(err), d.opts.Paths.KeeperLog())
		case <-ctx.Done():
			return fmt.Errorf("the keeper did not listen; %s says more", d.opts.Paths.KeeperLog())
		case <-tick.C:
			if d.keeper.Ping(ctx) == nil {
				return nil
			}
		}
	}
}

func orExit(err error) error {
	if err == nil {
		return fmt.Errorf("exit status 0")
	}
	return err
}

// watchKeeper begins to watch the keeper: when it dies, another one is started, and
// the sandboxes that died with it are taken away. end ends the watching, and returns
// when it has; a keeper that dies afterwards is none of it.
func (d *Daemon) watchKeeper() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	errand.Go(func() {
		defer close(done)
		errand.Stay(ctx, func() {
			for ctx.Err() == nil {
				awaitDeath(ctx, d.opts.Paths.KeeperSocket())
				if ctx.Err() == nil && d.keeper.Ping(ctx) != nil {
					d.replaceKeeper(ctx)
				}
			}
		})
	})
	return func() {
		cancel()
		<-done
	}
}

// replaceKeeper tries until another keeper answers.
func (d *Daemon) replaceKeeper(ctx context.Context) {
	d.opts.Log.ErrorContext(ctx, "the keeper has died, and all sandboxes with it; another one is started")
	for err := d.haveKeeper(ctx); ; err = d.haveKeeper(ctx) {
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			break
		}
		d.opts.Log.ErrorContext(ctx, "no keeper can be started; it is tried again", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(keeperPause):
		}
	}
	d.sandboxes.KeeperEnded(ctx)
}

// awaitDeath returns when the process that listens at a socket has ended, or nobody
// listens there, or ctx is over. The process is held by a handle that can't come to
// mean another one.
func awaitDeath(ctx context.Context, socket string) {
	handle, err := listenerOf(ctx, socket)
	if err != nil { // it may be short of descriptors
		select {
		case <-ctx.Done():
		case <-time.After(keeperPause):
		}
		return
	}
	defer unix.Close(handle) //nolint:errcheck // nothing is written to it
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, keeperLook)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// listenerOf is a handle on the process that listens at a socket.
func listenerOf(ctx context.Context, socket string) (int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return -1, err
	}
	defer conn.Close() // only then may it end: as long as it listens its number is its own
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return -1, err
	}
	handle, failed := -1, error(nil)
	err = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			failed = err
			return
		}
		handle, failed = unix.PidfdOpen(int(peer.Pid), 0)
	})
	return handle, errors.Join(err, failed)
}
