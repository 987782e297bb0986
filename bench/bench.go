package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
)

// bench is one run: an installation at work, a registry for it, the table.
type bench struct {
	opts     options
	progress *progress
	table    table

	dir      string // temporary
	home     string // the repository's own state, for what is fetched or built once
	wheels   []wheel
	npm, uv  project
	registry *registry
	daemon   *daemonProcess
}

// minRounds is what a median needs at least.
const minRounds = 3

// rounds scales a number of rounds as the command line says.
func (b *bench) rounds(n int) int { return max(minRounds, int(math.Round(float64(n)*b.opts.rounds))) }

// setUp has the template and the wheels ready, starts the registry, and the
// daemon that uses it.
func (b *bench) setUp(ctx context.Context) error {
	var err error
	// A short path: sockets are below it.
	if b.dir, err = os.MkdirTemp("", "cfb"); err != nil {
		return err
	}
	if err := os.Chmod(b.dir, 0o711); err != nil {
		return err
	}
	if b.home, err = repositoryState(); err != nil {
		return err
	}
	if err := b.buildTemplate(ctx, b.home); err != nil {
		return err
	}
	if b.wheels, err = b.fetchWheels(ctx, b.home); err != nil {
		return err
	}
	if b.npm, err = npmProject(b.home); err != nil {
		return err
	}
	if b.uv, err = uvProject(b.home); err != nil {
		return err
	}
	if err := b.fetchProjects(ctx); err != nil {
		return err
	}
	if b.registry, err = startRegistry(b.wheels, b.npm, b.uv); err != nil {
		return err
	}
	if err := b.registry.configure(b.state(), b.dir, dockerHost(b.dir)); err != nil {
		return err
	}
	if err := b.kernelOfMachines(); err != nil {
		return err
	}
	b.table.Machine = machine()
	b.progress.say("starting the daemon")
	b.daemon, err = b.startDaemon(ctx, "d")
	return err
}

// fetchProjects fetches the projects of the parts that measure them, before the
// daemon starts: a page that it has read already would lack their files.
func (b *bench) fetchProjects(ctx context.Context) error {
	wanted := func(part string) bool { return len(b.opts.only) == 0 || slices.Contains(b.opts.only, part) }
	if !wanted("projects") && !wanted("parallel") && !wanted("verdaccio") {
		return nil
	}
	if err := b.npm.fetch(ctx, b); err != nil {
		return err
	}
	return b.uv.fetch(ctx, b)
}

func (b *bench) state() string { return filepath.Join(b.dir, "state") }

// repositoryState is where the demo and the tests keep the templates.
func repositoryState() (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return "", fmt.Errorf("run it from the repository's root (make bench): %w", err)
	}
	return filepath.Join(root, ".cofferdam"), nil
}

func (b *bench) close() error {
	b.progress.clear()
	var errs []error
	if b.daemon != nil {
		errs = append(errs, b.daemon.stop())
	}
	if b.registry != nil {
		errs = append(errs, b.registry.close())
	}
	if b.dir != "" {
		errs = append(errs, os.RemoveAll(b.dir))
	}
	errs = append(errs, removeGroups())
	return errors.Join(errs...)
}

// sandbox makes one from the debian template with the policy and mounts.
func (b *bench) sandbox(ctx context.Context, policy string, mounts ...api.Mount) (api.Sandbox, error) {
	return b.daemon.client.CreateSandbox(ctx, api.CreateSandbox{
		Template: "debian", Policy: api.Policy{Document: []byte(policy)}, Mounts: mounts, Linger: true,
	})
}

// machine says what the figures were taken on.
func machine() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Sprintf("%d CPUs", runtime.NumCPU())
	}
	return fmt.Sprintf("%d CPUs, Linux %s %s", runtime.NumCPU(), unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]))
}
