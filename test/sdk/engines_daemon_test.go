package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCellsOfEngines: cells do the same whichever engine has the sandbox. gVisor's are those
// of TestInterpreter.
func TestCellsOfEngines(t *testing.T) {
	if !long() {
		t.Skip("set COFFERDAM_LONG=1 for it")
	}
	buildTemplate(t, "code-interpreter")
	kernel, err := filepath.Abs(filepath.Join("..", "..", ".tools", "kernel"))
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]string{"cells": cellsPolicy} // the pool's
	for _, engine := range []string{"runc", "docker", "microvm"} {
		policies[engine] = cellsPolicy + "isolation: " + engine + "\n"
	}
	d := startDaemonOf(t, "code-interpreter", policies, "guest_kernel: "+kernel, "docker: { host: "+startDocker(t)+" }")
	python := pythonOf(t, "interpreter", "e2b-code-interpreter")
	for _, engine := range []string{"runc", "docker", "microvm"} {
		t.Run(engine, func(t *testing.T) { run(t, d.env, 4, python, "enginecells.py", engine) })
	}
	d.leavesNothing(t)
}

// startDocker runs a Docker daemon until the test ends, and gives its address.
func startDocker(t *testing.T) (host string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "cfk") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	settings, err := json.Marshal(map[string]any{
		"data-root": filepath.Join(dir, "data"), "exec-root": filepath.Join(dir, "exec"), "pidfile": filepath.Join(dir, "pid"),
		"hosts": []string{"unix://" + socket}, "bridge": "none", "iptables": false, "ip-forward": false, "ip-masq": false,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), settings, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/usr/sbin/dockerd", "--config-file", filepath.Join(dir, "config.json"))
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: install the package docker.io", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait() // however it ends
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		for line := range strings.Lines(string(mounts)) {
			if at := strings.Fields(line)[4]; strings.HasPrefix(at, dir+"/") {
				_ = unix.Unmount(at, unix.MNT_DETACH) // it may have gone with another
			}
		}
		if err != nil || os.RemoveAll(dir) != nil {
			t.Errorf("the Docker daemon's folder is left: %v", err)
		}
	})
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
		if err == nil {
			_ = conn.Close()
			return fmt.Sprintf("%q", "unix://"+socket)
		}
		select {
		case <-look.C:
		case <-t.Context().Done():
			t.Fatal(err)
		}
	}
}
