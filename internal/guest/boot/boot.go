package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// deviceWait bounds the wait for what the kernel finds on its own.
const deviceWait = 30 * time.Second

// Run becomes the agent. It returns on errors only, after which the program has to end, and
// the machine with it.
func Run() error {
	runtime.LockOSThread() // rights belong to a thread, and this one becomes the agent
	m, err := read()
	if err != nil {
		return err
	}
	for _, fs := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}} {
		if err := errors.Join(mkdir(fs.at), unix.Mount(fs.kind, fs.at, fs.kind, 0, "")); err != nil {
			return fmt.Errorf("mount %s: %w", fs.at, err)
		}
	}
	for _, name := range m.Modules {
		if err := load(filepath.Join(ModuleDir, name)); err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
	}
	if m.Network {
		if err := joinNetwork(); err != nil {
			return err
		}
	}
	channel, err := openPort()
	if err != nil {
		return err
	}
	if err := m.layOut(); err != nil {
		return err
	}
	if err := errors.Join(m.settings(), unix.Sethostname([]byte(m.Hostname))); err != nil {
		return err
	}
	if err := enter(); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	if err := errors.Join(unix.Dup3(channel, 0, 0), unix.Dup3(channel, 1, 0)); err != nil {
		return err
	}
	if err := m.confine(); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", m.Init[0], unix.Exec(m.Init[0], m.Init, m.Env))
}

func read() (Machine, error) {
	var m Machine
	data, err := os.ReadFile(MachineFile)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err == nil && len(m.Init) == 0 {
		err = errors.New("it names no agent")
	}
	if err != nil {
		return m, fmt.Errorf("what this machine is: %w", err)
	}
	return m, nil
}

func mkdir(path string) error {
	return os.MkdirAll(path, 0o755) //nolint:gosec // the sandbox's users pass through
}

// load inserts a module; one that is part of the kernel, or there already, is fine.
func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// await asks until found says yes.
func await(what string, found func() (bool, error)) error {
	for deadline := time.Now().Add(deviceWait); ; {
		ok, err := found()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("there is no %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// openPort opens the channel, and waits until the host has its end: a port without is at
// its end for who reads it.
//
// It blocks, because it becomes the agent's stdin and stdout: what does not, Go polls before
// the agent's main runs, and a port bears one poll only (guest.takePort).
func openPort() (int, error) {
	var path string
	err := await("port "+Port, func() (bool, error) {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		for _, name := range names {
			if data, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(data)) == Port {
				path = filepath.Join("/dev", filepath.Base(filepath.Dir(name)))
				_, err := os.Stat(path)
				return err == nil, nil
			}
		}
		return false, err
	})
	if err != nil {
		return 0, err
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", path, err)
	}
	return fd, await("host at the other end of "+path, func() (bool, error) {
		at := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if _, err := unix.Poll(at, 0); err != nil && !errors.Is(err, unix.EINTR) {
			return false, err
		}
		return at[0].Revents&unix.POLLHUP == 0, nil
	})
}

// device is the path of the block device with a serial.
func device(serial string) (path string, err error) {
	err = await("device "+serial, func() (bool, error) {
		found, err := filepath.Glob("/sys/block/*/serial")
		for _, name := range found {
			if data, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(data)) == serial {
				path = filepath.Join("/dev", filepath.Base(filepath.Dir(name)))
				_, err := os.Stat(path)
				return err == nil, nil
			}
		}
		return false, err
	})
	return path, err
}
