package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// How a daemon is waited for.
const (
	daemonPatience = 60 * time.Second
	daemonPoll     = 20 * time.Millisecond
	logTail        = 2 << 10
)

// daemonProcess is a resident daemon of the bench's installation.
type daemonProcess struct {
	client *client.Client
	keeper *keeper.Client
	paths  config.Paths
	cmd    *exec.Cmd
	ended  chan error
}

// startDaemon runs `cofferdam serve` with a runtime directory of its own, and
// returns when it answers.
func (b *bench) startDaemon(ctx context.Context, runtime string) (*daemonProcess, error) {
	d := &daemonProcess{paths: config.Paths{State: b.state(), Runtime: filepath.Join(b.dir, runtime)}, ended: make(chan error, 1)}
	if err := d.paths.Make(); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(d.paths.DaemonLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	d.cmd = exec.Command(filepath.Join(b.opts.bin, "cofferdam"), "serve") // stop ends it
	d.cmd.Env = append(os.Environ(), d.environment()...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is for the bench, which ends the daemon
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the daemon (make build?): %w", err)
	}
	go func() { d.ended <- d.cmd.Wait() }()
	d.client, d.keeper = client.New(d.paths.DaemonSocket()), keeper.Dial(d.paths.KeeperSocket())
	if err := d.await(ctx); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

func (d *daemonProcess) environment() []string {
	return []string{"COFFERDAM_STATE=" + d.paths.State, "COFFERDAM_RUNTIME=" + d.paths.Runtime}
}

func (d *daemonProcess) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, daemonPatience)
	defer cancel()
	tick := time.NewTicker(daemonPoll)
	defer tick.Stop()
	for {
		if _, err := d.client.Version(ctx); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-d.ended:
			d.ended <- err
			return fmt.Errorf("the daemon ended (%w); its log ends with:\n%s", orDone(err), d.logTail())
		case <-ctx.Done():
			return fmt.Errorf("the daemon does not answer; its log ends with:\n%s", d.logTail())
		}
	}
}

func orDone(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func (d *daemonProcess) logTail() []byte {
	text, err := os.ReadFile(d.paths.DaemonLog())
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(text[max(0, len(text)-logTail):])
}

// stop ends the daemon, its sandboxes, and with them keeper and gateway.
func (d *daemonProcess) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), daemonPatience)
	defer cancel()
	err := d.client.Shutdown(ctx, true)
	if errors.Is(err, client.ErrNoDaemon) {
		err = nil
	}
	if err != nil {
		err = errors.Join(err, d.cmd.Process.Kill())
	}
	select {
	case ended := <-d.ended:
		return errors.Join(err, ended)
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("the daemon does not end: %w", d.cmd.Process.Kill()))
	}
}
