package mounts

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// loopTries bounds how often another may take the device that we were told is free.
const loopTries = 64

// Loop mounts a file by a loop device, which the kernel gives back by itself when the
// last mount of it is gone. It returns the device.
func Loop(file, at, kind string, flags uintptr) (name string, err error) {
	access := os.O_RDWR
	if flags&unix.MS_RDONLY != 0 {
		access = os.O_RDONLY
	}
	behind, err := os.OpenFile(file, access, 0)
	if err != nil {
		return "", err
	}
	defer behind.Close()
	device, err := attach(behind, flags&unix.MS_RDONLY != 0)
	if err != nil {
		return "", fmt.Errorf("a loop device for %s: %w", file, err)
	}
	defer device.Close() // before it no one can take the device away
	if err := unix.Mount(device.Name(), at, kind, flags, ""); err != nil {
		return "", fmt.Errorf("mount %s: %w", file, err)
	}
	return device.Name(), nil
}

// attach puts a file behind a free loop device.
func attach(behind *os.File, readOnly bool) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(behind.Fd()), Size: 4096}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
	access := os.O_RDWR
	if readOnly {
		config.Info.Flags |= unix.LO_FLAGS_READ_ONLY
		access = os.O_RDONLY
	}
	for range loopTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		device, err := os.OpenFile("/dev/loop"+strconv.Itoa(n), access, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == nil {
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
	return nil, errors.New("all that were free were taken")
}
