//go:build linux

// Command init is what the guest's kernel starts first: it loads the modules by which the
// kernel finds its disks, mounts the one that is the root, and becomes the system's own
// init there. It lies in the first file system with the modules, in the order in which
// they are loaded.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// rootSerial is how the disk of the root is known: the order in which disks are found says
// nothing.
const rootSerial = "root"

func main() {
	fmt.Fprintln(os.Stderr, "init:", run()) // and the kernel panics, which ends the machine
}

func run() error {
	for _, m := range [][2]string{{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}} {
		if err := errors.Join(os.MkdirAll(m[1], 0o755), unix.Mount(m[0], m[1], m[0], 0, "")); err != nil {
			return fmt.Errorf("mount %s: %w", m[1], err)
		}
	}
	modules, err := filepath.Glob("/modules/*.ko") // sorted
	if err != nil {
		return err
	}
	for _, path := range modules {
		if err := load(path); err != nil {
			return fmt.Errorf("load %s: %w", path, err)
		}
	}
	disk, err := find()
	if err != nil {
		return err
	}
	return enter(disk)
}

func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.FinitModule(int(f.Fd()), "", 0)
}

// find waits for the disk of the root: a device is there some time after its driver.
func find() (string, error) {
	for range 30_000 {
		serials, err := filepath.Glob("/sys/block/*/serial")
		if err != nil {
			return "", err
		}
		for _, path := range serials {
			if serial, err := os.ReadFile(path); err == nil && string(bytes.TrimSpace(serial)) == rootSerial {
				return "/dev/" + filepath.Base(filepath.Dir(path)), nil
			}
		}
		time.Sleep(time.Millisecond)
	}
	return "", errors.New("there is no disk with the serial number " + rootSerial)
}

// enter makes a disk the root, and this process its init.
func enter(disk string) error {
	if err := errors.Join(os.MkdirAll("/system", 0o755), unix.Mount(disk, "/system", "ext4", 0, "")); err != nil {
		return fmt.Errorf("mount %s: %w", disk, err)
	}
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		if err := unix.Mount(dir, "/system"+dir, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", dir, err)
		}
	}
	if err := errors.Join(unix.Chdir("/system"), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), unix.Chdir("/")); err != nil {
		return fmt.Errorf("enter %s: %w", disk, err)
	}
	return unix.Exec("/sbin/init", []string{"/sbin/init"}, []string{"HOME=/", "TERM=linux", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"})
}
