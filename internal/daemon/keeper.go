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

	"github.com/cofferdam-dev/cofferdam/internal/config"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/process"
)

// What the daemon grants a keeper.
const (
	keeperPatience = 10 * time.Second // to listen, when it is fresh
	keeperPause    = time.Second      // before what could not be done is tried again
)

// startKeeper finds the living keeper or starts one in a session of its own, so
// that no signal to the daemon reaches it.
func (d *Daemon) startKeeper(ctx context.Context) error {
	d.keeper = keeper.Dial(d.opts.Paths.KeeperSocket())
	if err := d.retireKeeper(ctx); err != nil {
		d.opts.Log.WarnContext(ctx, "an older keeper could not be replaced and goes on", "err", err)
	}
	return d.haveKeeper(ctx)
}

// retireKeeper ends a keeper that lacks something of this release, if it holds
// nothing: its sandboxes would end with it, and of dead ones what is known.
func (d *Daemon) retireKeeper(ctx context.Context) error {
	hello, err := d.keeper.Hello(ctx)
	if err != nil || len(hello.Lacks()) == 0 {
		return nil // none answers: there is nothing to replace
	}
	held, err := d.keeper.List(ctx)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		d.opts.Log.WarnContext(ctx, "the keeper is of an older release and has sandboxes; it is replaced when the daemon starts and it has none",
			"release", hello.Release, "protocol", hello.Protocol, "own", keeper.Protocol, "lacks", hello.Lacks(), "sandboxes", len(held))
		return nil
	}
	old, err := listenerOf(ctx, d.opts.Paths.KeeperSocket())
	if err != nil {
		return err
	}
	defer old.Close()
	if err := d.keeper.Shutdown(ctx); err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, keeperPatience)
	defer cancel()
	d.opts.Log.InfoContext(ctx, "a keeper of an older release held nothing and has been ended", "release", hello.Release, "protocol", hello.Protocol)
	return old.Await(patient) // it has the socket's lock until then
}

func (d *Daemon) haveKeeper(ctx context.Context) error {
	if d.keeper.Ping(ctx) == nil {
		return nil
	}
	log, err := config.OpenLog(d.opts.Paths.KeeperLog())
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
	if err == nil {
		defer handle.Close()
		err = handle.Await(ctx)
	}
	if err != nil { // it may be short of descriptors
		select {
		case <-ctx.Done():
		case <-time.After(keeperPause):
		}
	}
}

// listenerOf is a handle on the process that listens at a socket. That its number is
// not another's by the time that it is held is known when it still listens then.
func listenerOf(ctx context.Context, socket string) (process.Handle, error) {
	pid, err := listeningPid(ctx, socket)
	if err != nil {
		return process.Handle{}, err
	}
	handle, err := process.Hold(pid)
	if err != nil {
		return process.Handle{}, err
	}
	if now, err := listeningPid(ctx, socket); err != nil || now != pid {
		handle.Close()
		return process.Handle{}, errors.Join(err, errors.New("another keeper listens by now"))
	}
	return handle, nil
}

func listeningPid(ctx context.Context, socket string) (int, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	pid, failed := 0, error(nil)
	err = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			failed = err
			return
		}
		pid = int(peer.Pid)
	})
	return pid, errors.Join(err, failed)
}
