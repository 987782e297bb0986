package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	m, err := readMachine()
	if err != nil {
		return err
	}
	for _, fs := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}} {
		if err := errors.Join(makeDir(fs.at), unix.Mount(fs.kind, fs.at, fs.kind, 0, "")); err != nil {
			return fmt.Errorf("mount %s: %w", fs.at, err)
		}
	}
	for _, name := range m.Modules {
		if err := loadModule(filepath.Join(ModuleDir, name)); err != nil {
			return fmt.Errorf("load %s: %w", name, err)
		}
	}
	if m.Network {
		if err := joinNetwork(); err != nil {
			return err
		}
	}
	channel, err := m.openChannel()
	if err != nil {
		return err
	}
	if err := m.layOut(); err != nil {
		return err
	}
	if err := errors.Join(m.settings(), unix.Sethostname([]byte(m.Hostname))); err != nil {
		return err
	}
	if err := enterRoot(); err != nil {
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

func readMachine() (Machine, error) {
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

func makeDir(path string) error {
	return os.MkdirAll(path, 0o755) //nolint:gosec // the sandbox's users pass through
}

// loadModule inserts a module; one that is part of the kernel, or there already, is fine.
func loadModule(path string) error {
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

// awaitFound asks until found says yes. An error of looking is not yet one of what is looked for:
// it may be about to appear. A caller that waited in vain is told the last.
func awaitFound(what string, found func() (bool, error)) error {
	for deadline := time.Now().Add(deviceWait); ; {
		ok, err := found()
		if ok {
			return nil
		}
		if time.Now().After(deadline) {
			if err != nil {
				return fmt.Errorf("there is no %s after %s: %w", what, deviceWait, err)
			}
			return fmt.Errorf("there is no %s after %s", what, deviceWait)
		}
		time.Sleep(time.Millisecond)
	}
}

// openChannel opens what becomes the agent's stdin and stdout: the port that is the channel, or
// the socket on which the agent waits for it.
func (m Machine) openChannel() (int, error) {
	if m.Vsock == 0 {
		return openPort()
	}
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("make the channel's socket: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: m.Vsock})
	if err == nil {
		err = unix.Listen(fd, 1)
	}
	if err != nil {
		return 0, fmt.Errorf("wait for the channel on the port %d: %w", m.Vsock, err)
	}
	return fd, nil
}

// openPort opens the channel, and waits until the host has its end: a port without is at
// its end for who reads it.
//
// It blocks, because it becomes the agent's stdin and stdout: what does not, Go polls before
// the agent's main runs, and a port bears one poll only (guest.takePort).
func openPort() (int, error) {
	path, err := appears("port "+Port, "/sys/class/virtio-ports/*/name", Port)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", path, err)
	}
	return fd, awaitFound("host at the other end of "+path, func() (bool, error) {
		at := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if _, err := unix.Poll(at, 0); err != nil {
			return false, err
		}
		return at[0].Revents&unix.POLLHUP == 0, nil
	})
}

// device is the path of the block device with a serial.
func (m Machine) device(serial string) (path string, err error) {
	if len(m.Devices) > 0 {
		at := slices.Index(m.Devices, serial)
		if at < 0 || at >= 26 {
			return "", fmt.Errorf("there is no device %s", serial)
		}
		path = "/dev/vd" + string(rune('a'+at))
		return path, awaitFound("device "+path, func() (bool, error) {
			_, err := os.Stat(path)
			return err == nil, err
		})
	}
	return appears("device "+serial, "/sys/block/*/serial", serial)
}

// appears waits for the device of which one of the files says the name.
func appears(what, files, name string) (path string, err error) {
	err = awaitFound(what, func() (bool, error) {
		path, err = deviceNamed(files, name)
		return path != "" && err == nil, err
	})
	return path, err
}

// deviceNamed is the path of the device of which one of the files says the name; "": none says it.
func deviceNamed(files, name string) (string, error) {
	found, err := filepath.Glob(files)
	for _, file := range found {
		data, failed := os.ReadFile(file)
		if failed == nil && strings.TrimSpace(string(data)) == name {
			path := filepath.Join("/dev", filepath.Base(filepath.Dir(file)))
			_, err := os.Stat(path)
			return path, err
		}
		err = errors.Join(err, failed)
	}
	return "", err
}
