package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// source is a commit's tree, apart from its repository.
type source struct {
	work    string // everything below is the release's own
	tree    string
	version string    // as git describes the commit
	date    time.Time // the commit's; every file that is made has it
	gvisor  string    // version of the engine
}

// export writes a commit's tree into work.
func export(ctx context.Context, repository, commit, work string) (*source, error) {
	git := func(args ...string) (string, error) {
		out, err := output(ctx, "", nil, "git", append([]string{"-C", repository}, args...)...)
		return strings.TrimSpace(string(out)), err
	}
	s := &source{work: work, tree: filepath.Join(work, "source")}
	var err error
	if s.version, err = git("describe", "--tags", "--always", "--abbrev=12", commit); err != nil {
		return nil, err
	}
	seconds, err := git("log", "-1", "--format=%ct", commit)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the commit's date is %q: %w", seconds, err)
	}
	s.date = time.Unix(n, 0).UTC()
	if err := os.Mkdir(s.tree, 0o700); err != nil {
		return nil, err
	}
	packed := filepath.Join(work, "source.tar")
	if _, err := git("archive", "--format=tar", "--output="+packed, commit); err != nil {
		return nil, err
	}
	if _, err := output(ctx, s.tree, nil, "tar", "-xf", packed); err != nil {
		return nil, err
	}
	s.gvisor, err = goOutput(ctx, filepath.Join(s.tree, "runsc"), nil, "list", "-m", "-f", "{{.Version}}", "gvisor.dev/gvisor")
	return s, err
}

// embedded are the programs that go into the one binary, by their folders.
func embedded() map[string]string {
	return map[string]string{
		"./cmd/cofferdam-guest": "internal/sandboxes/guest/embedded/bin/cofferdam-guest",
		"./cmd/cofferdam-stage": "internal/sandboxes/engine/embedded/bin/cofferdam-stage",
	}
}

// buildPrograms makes an architecture's programs, the engine among them. The parts of the one
// binary are built first, for the same architecture.
func (s *source) buildPrograms(ctx context.Context, arch string) ([]string, error) {
	bin := filepath.Join(s.work, "bin-"+arch)
	plain := []string{"build", "-ldflags", "-s -w", "-o"}
	env := buildEnv(arch)
	for program, to := range embedded() {
		if _, err := goOutput(ctx, s.tree, env, append(slices.Clone(plain), filepath.Join(s.tree, to), program)...); err != nil {
			return nil, err
		}
	}
	cofferdam, runsc := filepath.Join(bin, "cofferdam"), filepath.Join(bin, "runsc")
	if _, err := goOutput(ctx, s.tree, env, "build", "-ldflags", "-s -w -X main.version="+s.version, "-o", cofferdam, "./cmd/cofferdam"); err != nil {
		return nil, err
	}
	_, err := goOutput(ctx, filepath.Join(s.tree, "runsc"), env, "build", "-ldflags", "-s -w -X gvisor.dev/gvisor/runsc/version.version="+s.gvisor, "-o", runsc, ".")
	return []string{cofferdam, runsc}, err
}

// hostProgram is a program that runs here, whichever architecture is released: it prints
// the completions.
func (s *source) hostProgram() string { return filepath.Join(s.work, "host", "cofferdam") }

func (s *source) buildHost(ctx context.Context) error {
	_, err := goOutput(ctx, s.tree, buildEnv(runtime.GOARCH), "build", "-ldflags", "-s -w", "-o", s.hostProgram(), "./cmd/cofferdam")
	return err
}

// buildEnv is all that decides about a program's bytes, but for Go and the source.
func buildEnv(arch string) []string {
	return []string{
		"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off",
		"GOEXPERIMENT=", "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false -mod=readonly",
	}
}

func goOutput(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	out, err := output(ctx, dir, env, "go", args...)
	return strings.TrimSpace(string(out)), err
}

// output runs a program and returns what it prints; what it says of errors is
// passed on.
func output(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stderr = io.MultiWriter(os.Stderr, &said)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(append([]string{name}, args...), " "), err, strings.TrimSpace(said.String()))
	}
	return out, nil
}
