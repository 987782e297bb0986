package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// The times that the daemon grants a keeper.
const (
	keeperTimeout = 10 * time.Second // to listen, when it is fresh
	keeperPause   = time.Second      // before what could not be done is tried again
)

// startKeeper finds the living keeper or starts one.
func (d *Daemon) startKeeper(ctx context.Context) error {
	d.keeper = keeper.Dial(d.opts.Paths.KeeperSocket())
	d.groups = newProcessGroups(processHierarchy(d.opts.Paths.State), d.opts.Config.Processes, d.opts.Log)
	d.nursery = keeperHolder{keeper: d.keeper, paths: d.opts.Paths, executable: d.opts.Executable, log: d.opts.Log, groups: d.groups, limited: &limitedProcess{name: "keeper"}}
	return d.nursery.findOrStartKeeper(ctx)
}

// endKeeper ends the keeper if it holds nothing.
func (n keeperHolder) endKeeper() {
	if n.keeper == nil { // the daemon ends before there was one
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	switch err := n.keeper.Shutdown(ctx); {
	case err == nil:
		n.groups.removeGroup(ctx, "keeper")
	case !errors.Is(err, fault.ErrConflict):
		n.log.Warn("the keeper did not end", "err", err)
	}
}

// keeperHolder sees to it that there is a keeper.
type keeperHolder struct {
	keeper     *keeper.Client
	paths      config.Paths
	executable string
	log        *slog.Logger
	groups     *processGroups  // nil: it is in no group
	limited    *limitedProcess // the keeper's; only begin and watch's goroutine touch it
}

// findOrStartKeeper finds the living keeper or starts one in a session of its own, so that no
// signal to the daemon reaches it.
func (n keeperHolder) findOrStartKeeper(ctx context.Context) error {
	if err := n.retire(ctx); err != nil {
		n.log.WarnContext(ctx, "an older keeper could not be replaced and goes on", "err", err)
	}
	return n.haveKeeper(ctx)
}

// retire ends a keeper that lacks something of this release, if it holds
// nothing: its sandboxes would end with it, and of dead ones what is known.
func (n keeperHolder) retire(ctx context.Context) error {
	hello, err := n.keeper.Hello(ctx)
	if err != nil || len(hello.Lacks()) == 0 {
		return nil // none answers: there is nothing to replace
	}
	held, err := n.keeper.List(ctx)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		n.log.WarnContext(ctx, "the keeper is of an older release and has sandboxes; it is replaced when the daemon starts and it has none",
			"release", hello.Release, "protocol", hello.Protocol, "own", keeper.Protocol, "lacks", hello.Lacks(), "sandboxes", len(held))
		return nil
	}
	old, err := listenerOf(ctx, n.paths.KeeperSocket())
	if err != nil {
		return err
	}
	defer old.Close()
	if err := n.keeper.Shutdown(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, keeperTimeout)
	defer cancel()
	n.log.InfoContext(ctx, "a keeper of an older release held nothing and has been ended", "release", hello.Release, "protocol", hello.Protocol)
	return old.Await(bounded) // it has the socket's lock until then
}

func (n keeperHolder) haveKeeper(ctx context.Context) error {
	if n.keeper.Ping(ctx) == nil {
		n.confineLiving(ctx)
		return nil
	}
	log, err := config.OpenLog(n.paths.KeeperLog())
	if err != nil {
		return err
	}
	defer log.Close()
	//nolint:noctx // the keeper outlives this daemon
	cmd := exec.Command(selfLink, "keeper")
	cmd.Args[0] = n.executable
	cmd.Env = append(hostEnvironment(n.paths), "COFFERDAM_STATE="+n.paths.State, "COFFERDAM_RUNTIME="+n.paths.Runtime)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	safego.Go(func() { ended <- cmd.Wait() })
	if err := n.confine(cmd.Process.Pid); err != nil { // nobody has asked it for anything yet
		_ = cmd.Process.Kill() // it is ours, and holds nothing
		return errors.Join(err, <-ended)
	}
	return n.awaitKeeper(ctx, ended)
}

// confine puts a keeper into its control group.
func (n keeperHolder) confine(pid int) (err error) {
	if n.groups != nil {
		*n.limited, err = n.groups.adoptProcess("keeper", pid, n.groups.limits.Keeper)
	}
	return err
}

// confineLiving does so with a keeper that an earlier daemon began, whose release may have had
// no groups. One that already has more than its limit goes on: sandboxes would end with it.
func (n keeperHolder) confineLiving(ctx context.Context) {
	pid, err := listeningPid(ctx, n.paths.KeeperSocket())
	if err == nil {
		err = n.confine(pid)
	}
	if err != nil {
		n.log.WarnContext(ctx, "the keeper goes on without its limits", "err", err)
	}
}

func (n keeperHolder) awaitKeeper(ctx context.Context, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, keeperTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("the keeper ended at once (%w); %s says more", orExit(err), n.paths.KeeperLog())
		case <-ctx.Done():
			return fmt.Errorf("the keeper did not listen; %s says more", n.paths.KeeperLog())
		case <-tick.C:
			if n.keeper.Ping(ctx) == nil {
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

// watchKeeper begins to watch the keeper: when it dies, another one is started, and replaced
// is called for what died with it. end ends the watching, and returns when it has; a
// keeper that dies afterwards is none of it.
func (n keeperHolder) watchKeeper(replaced func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	safego.Go(func() {
		defer close(done)
		safego.Stay(ctx, func() {
			for ctx.Err() == nil {
				awaitDeath(ctx, n.paths.KeeperSocket())
				if ctx.Err() == nil && n.keeper.Ping(ctx) != nil {
					n.replace(ctx, replaced)
				}
			}
		})
	})
	return func() {
		cancel()
		<-done
	}
}

// replace tries until another keeper answers.
func (n keeperHolder) replace(ctx context.Context, replaced func(context.Context)) {
	why := ""
	if n.limited != nil {
		if err := n.limited.explainEnd(nil); err != nil {
			why = err.Error()
		}
	}
	n.log.ErrorContext(ctx, "the keeper has died, and all sandboxes with it; another one is started", "why", why)
	for err := n.haveKeeper(ctx); ; err = n.haveKeeper(ctx) {
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			break
		}
		n.log.ErrorContext(ctx, "no keeper can be started; it is tried again", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(keeperPause):
		}
	}
	replaced(ctx)
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
