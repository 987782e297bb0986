package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// roleProcess is this program in a role of its own.
type roleProcess struct {
	cmd     *exec.Cmd
	limited limitedProcess
}

// groupOf is the control group of a role: the gateway's dialer is in the gateway's.
func groupOf(role string) string {
	if role == "dialer" {
		return "gateway"
	}
	return role
}

// startRole starts this program in a role, within the limits of the gateway.
func startRole(ctx context.Context, d *Daemon, name string, document any, attr *syscall.SysProcAttr, files ...*os.File) (*roleProcess, error) {
	boot, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	cmd := exec.CommandContext(ctx, selfLink, name)
	cmd.Args[0] = d.opts.Executable
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stderr = in, os.Stderr
	cmd.ExtraFiles = files
	cmd.Env = gatewayEnv(hostEnvironment(d.opts.Paths))
	cmd.SysProcAttr = attr
	cmd.SysProcAttr.Setpgid = true // it ends when its socket closes, so when we do
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Start(); err != nil {
		out.Close()
		return nil, err
	}
	started := &roleProcess{cmd: cmd}
	// Before it is told anything: what it does, it does within its limits.
	if started.limited, err = d.groups.adoptProcess(groupOf(name), cmd.Process.Pid, d.opts.Config.Processes.Gateway); err == nil {
		_, err = out.Write(boot)
	}
	if err == nil {
		return started, out.Close()
	}
	out.Close()
	_ = cmd.Process.Kill() // it reads nothing, so it is about to end
	return nil, errors.Join(err, cmd.Wait())
}
