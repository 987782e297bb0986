package daemon

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// keeperPatience bounds how long a fresh keeper may take to listen.
const keeperPatience = 10 * time.Second

// startKeeper finds the living keeper or starts one in a session of its own, so
// that no signal to the daemon reaches it.
func (d *Daemon) startKeeper(ctx context.Context) error {
	d.keeper = keeper.Dial(d.opts.Paths.KeeperSocket())
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
	go func() { ended <- cmd.Wait() }()
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
