package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// wheel is a file of the ten-package set.
type wheel struct {
	project string
	file    string
	path    string
	sha256  string
	bytes   []byte
}

// tenPackages is the set that is installed: requests and what it requires, and
// five more, all of them pure Python.
func tenPackages() []string {
	return []string{
		"requests==2.32.3", "charset-normalizer==3.4.1", "idna==3.10", "urllib3==2.3.0", "certifi==2025.1.31",
		"six==1.17.0", "attrs==25.1.0", "packaging==24.2", "click==8.1.8", "tomli==2.2.1",
	}
}

// anyPackage lets the ten wheels in for the download.
const anyPackage = "name: bench-download\npackages:\n  default: allow\n"

// buildTemplate makes the debian template once, where the demo and the tests
// have it too, and shares it.
func (b *bench) buildTemplate(ctx context.Context, home string) error {
	b.progress.say("the debian template, built if there is none of this version")
	if err := b.cofferdam(ctx, home, "template", "build", "--if-needed", "debian"); err != nil {
		return err
	}
	if err := b.cofferdam(ctx, home, "stop"); err != nil {
		return err
	}
	if err := os.Mkdir(b.state(), 0o711); err != nil {
		return err
	}
	return os.Symlink(filepath.Join(home, "templates"), filepath.Join(b.state(), "templates"))
}

// cofferdam runs a command of the binary under measurement.
func (b *bench) cofferdam(ctx context.Context, state string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(b.opts.bin, "cofferdam"), args...)
	cmd.Env = append(os.Environ(), "COFFERDAM_STATE="+state, "COFFERDAM_RUNTIME="+filepath.Join(b.dir, "once"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cofferdam %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// fetchWheels downloads the set once, from the registry that this machine uses,
// through a sandbox, and keeps it beside the templates.
func (b *bench) fetchWheels(ctx context.Context, home string) ([]wheel, error) {
	dir := filepath.Join(home, "bench", "wheels")
	wheels, err := readWheels(dir)
	if err == nil && len(wheels) == len(tenPackages()) {
		return wheels, nil
	}
	b.progress.say("downloading the ten packages (once)")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	policy := filepath.Join(b.dir, "download.yaml")
	if err := os.WriteFile(policy, []byte(anyPackage), 0o600); err != nil {
		return nil, err
	}
	args := []string{
		"run", "--template", "debian", "--policy", policy, "--mount", dir + ":/wheels:rw", "--",
		"pip", "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--platform=any", "--dest=/wheels",
	}
	if err := b.cofferdam(ctx, b.state(), append(args, tenPackages()...)...); err != nil {
		return nil, err
	}
	if err := b.cofferdam(ctx, b.state(), "stop"); err != nil {
		return nil, err
	}
	if wheels, err = readWheels(dir); err != nil {
		return nil, err
	}
	if len(wheels) != len(tenPackages()) {
		return nil, fmt.Errorf("%s has %d wheels instead of %d; remove it and try again", dir, len(wheels), len(tenPackages()))
	}
	return wheels, nil
}

func readWheels(dir string) ([]wheel, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil {
		return nil, err
	}
	wheels := make([]wheel, 0, len(paths))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		name, _, _ := strings.Cut(filepath.Base(path), "-")
		wheels = append(wheels, wheel{
			project: strings.ReplaceAll(strings.ToLower(name), "_", "-"), file: filepath.Base(path), path: path,
			sha256: hex.EncodeToString(sum[:]), bytes: data,
		})
	}
	return wheels, nil
}
