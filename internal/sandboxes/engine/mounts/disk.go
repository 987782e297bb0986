// Package mounts is what engines lay out of mounts on the host for a container of its
// kernel: capped disks, templates, mounts whose owners are mapped, and what must not be
// mounted at all.
//
// A disk is a file of a fixed size with an ext4 file system.
package mounts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// formatTimeout bounds the making of a file system, which takes milliseconds: who waits for
// it may have no other bound, and holds what others wait for.
const formatTimeout = time.Minute

// MakeDisk makes a sparse file with an empty file system.
func MakeDisk(ctx context.Context, file string, bytes int64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(bytes), f.Close()); err != nil {
		return err
	}
	program, err := findMkfs()
	if err != nil {
		return err
	}
	return format(ctx, program, file, formatTimeout)
}

// format runs a mkfs.ext4, which is killed when the time is over or ctx ends.
func format(ctx context.Context, program, file string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// No journal: what is in it dies with the instance. Its checksums have a seed of their
	// own, so that a copy can get another identity.
	cmd := exec.CommandContext(ctx, program, "-q", "-F", "-b", "4096", "-m", "0",
		"-O", "^has_journal,^resize_inode,metadata_csum,metadata_csum_seed", "-E", "nodiscard,lazy_itable_init=1", file)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.WaitDelay = 100 * time.Millisecond // a program that it started may hold its output
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		err = nil // mkfs ended well, and only its output did not end in time
	}
	if err != nil && ctx.Err() != nil {
		return fault.Wrap(fault.ErrUnavailable, ctx.Err(), "%s did not end and was killed", program)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %.300s", program, err, out)
	}
	return nil
}

// CanMakeDisks tells what of the host is missing; name is the engine that needs them.
func CanMakeDisks(name string) error {
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the engine %s needs loop devices for capped disks: modprobe loop, or run on the host if this is a container", name)
	}
	if _, err := findMkfs(); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the engine %s can't make capped disks", name)
	}
	return nil
}

// findMkfs finds the program that makes disks.
func findMkfs() (string, error) {
	for _, path := range []string{"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4", "/usr/bin/mkfs.ext4"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fault.New(fault.ErrUnavailable, "there is no mkfs.ext4: install the package e2fsprogs")
}
