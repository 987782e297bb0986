package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of what information prints.
const (
	maxText  = 64 << 10 // of one file
	maxFiles = 20_000
)

// secretNames are where people and programs keep what nobody else may see.
func secretNames() []string {
	return []string{
		".netrc", ".npmrc", ".pypirc", ".gitconfig", ".git-credentials", ".bash_history", ".python_history", ".profile",
		".aws/credentials", ".ssh/id_rsa", ".ssh/id_ed25519", ".ssh/authorized_keys", ".docker/config.json", ".kube/config",
		".config/gh/hosts.yml", ".cargo/credentials.toml",
	}
}

// information [ROOT]: print every environment, every secret file of every home, what
// the kernel tells, and the text of all small files outside of the programs.
func information(args []string) error {
	root := "/"
	if len(args) > 0 {
		root = args[0]
	}
	fmt.Println(os.Environ())
	homes := []string{os.Getenv("HOME"), "/root"}
	for _, pattern := range []string{"/home/*", "/Users/*"} {
		found, _ := filepath.Glob(pattern) // the pattern is well-formed
		homes = append(homes, found...)
	}
	for _, home := range homes {
		for _, name := range secretNames() {
			show(filepath.Join(home, name))
		}
	}
	for _, pattern := range []string{
		"/proc/*/environ", "/proc/*/cmdline", "/proc/*/mountinfo", "/proc/cmdline", "/proc/version", "/proc/net/unix",
		"/proc/mounts", "/proc/partitions", "/proc/keys", "/proc/kallsyms", "/sys/firmware/*", "/sys/class/dmi/id/*",
		"/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id", "/etc/machine-id", "/var/run/secrets/*/*/*",
	} {
		found, _ := filepath.Glob(pattern) // the pattern is well-formed
		for _, path := range found {
			show(path)
		}
	}
	count := 0
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what can't be listed is passed over
		case d.IsDir() && (path == "/proc" || path == "/sys" || path == "/usr" || path == "/dev" || path == "/opt" || path == "/probe"):
			return fs.SkipDir
		case d.Type().IsRegular() && count < maxFiles:
			count++
			show(path)
		}
		return nil
	})
}

func show(path string) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer file.Close()
	text, _ := io.ReadAll(io.LimitReader(file, maxText)) // what was read is shown
	if len(text) > 0 && !bytes.HasPrefix(text, []byte("\x7fELF")) {
		fmt.Printf("%s: %q\n", path, text)
	}
}

// write TEXT PATH...: write to files; any success is a success.
func write(args []string) error {
	var failed []error
	for _, path := range args[1:] {
		file, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			_, err = file.WriteString(args[0])
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Println("wrote", path)
	}
	if len(failed) == len(args)-1 {
		return errors.Join(failed...)
	}
	return nil
}

// mounts DIRECTORY [own]: change what is mounted, in every way there is; of its
// own, only in ways that reach no other namespace.
func mounts(args []string) error {
	dir := args[0]
	own := len(args) > 1
	var all []error
	try := func(what string, err error) {
		if err == nil {
			fmt.Println("mounted", what)
			return
		}
		all = append(all, fmt.Errorf("%s: %w", what, err))
	}
	try("tmpfs", unix.Mount("planted", dir, "tmpfs", 0, ""))
	if own {
		return errors.Join(all...)
	}
	for _, kind := range []string{"proc", "sysfs", "cgroup", "cgroup2", "overlay", "9p", "nfs", "fuse", "devpts", "mqueue", "debugfs", "ext4"} {
		data := ""
		if kind == "overlay" {
			data = "lowerdir=/usr,upperdir=" + dir + ",workdir=" + dir
		}
		try(kind, unix.Mount("planted", dir, kind, 0, data))
	}
	try("bind over /proc", unix.Mount(dir, "/proc", "", unix.MS_BIND, ""))
	try("remount of /usr", unix.Mount("", "/usr", "", unix.MS_REMOUNT|unix.MS_BIND, ""))
	try("remount of /", unix.Mount("", "/", "", unix.MS_REMOUNT, ""))
	for _, mask := range []string{"/proc/kcore", "/proc/keys", "/sys/firmware", "/proc/sys", "/usr", "/probe"} {
		try("unmount of "+mask, unix.Unmount(mask, unix.MNT_DETACH))
	}
	try("pivot_root", unix.PivotRoot(dir, dir))
	if fd, err := unix.Fsopen("tmpfs", 0); err == nil {
		try("fsopen", nil)
		_ = unix.Close(fd)
	} else {
		try("fsopen", err)
	}
	return errors.Join(all...)
}

// controlGroup [own]: raise the limits of the own control group and leave it;
// without "own" also those of every other group in reach.
func controlGroup(args []string) error {
	var files []string
	own, _ := os.ReadFile("/proc/self/cgroup") // without it the walk below is all there is
	for line := range strings.Lines(string(own)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, base := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/" + parts[1], "/sys/fs/cgroup/unified"} {
			files = append(files, filepath.Join(base, parts[2]))
		}
	}
	values := map[string]string{"pids.max": "32000", "memory.max": "max", "memory.limit_in_bytes": "-1", "cpu.max": "max", "cpu.cfs_quota_us": "-1"}
	if len(args) == 0 {
		found, _ := filepath.Glob("/sys/fs/cgroup/*") // the pattern is well-formed
		files = append(files, append(found, "/sys/fs/cgroup")...)
		values["devices.allow"], values["release_agent"] = "a", "/planted"
	}
	var failed []error
	for _, dir := range files {
		for name, value := range values {
			if err := write([]string{value, filepath.Join(dir, name)}); err != nil {
				failed = append(failed, err)
			}
		}
		for _, up := range []string{"cgroup.procs", "tasks"} {
			if err := write([]string{strconv.Itoa(os.Getpid()), filepath.Join(dir, "..", up)}); err != nil {
				failed = append(failed, err)
			}
		}
	}
	if len(args) > 0 {
		return errors.Join(failed...)
	}
	for _, kind := range []string{"cgroup", "cgroup2"} {
		if err := unix.Mount("planted", "/mnt", kind, 0, ""); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// descriptors PATH: read a file of the host through inherited descriptors and
// the links of /proc.
func descriptors(args []string) error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		fmt.Println("no /proc/self/fd:", err)
	}
	for _, entry := range open {
		link, _ := os.Readlink("/proc/self/fd/" + entry.Name()) // it may be the directory's own, closed by now
		fmt.Println("descriptor", entry.Name(), link)
	}
	relative := strings.TrimPrefix(args[0], "/")
	up := strings.Repeat("../", 16)
	var found []string
	for _, base := range []string{"/proc/1/root/", "/proc/1/cwd/", "/proc/self/root/", "/proc/self/cwd/" + up, "/proc/self/exe/../" + up, up} {
		found = append(found, base+relative)
	}
	for fd := 3; fd <= 64; fd++ {
		found = append(found, fmt.Sprintf("/proc/self/fd/%d/%s", fd, relative), fmt.Sprintf("/proc/self/fd/%d/%s%s", fd, up, relative))
		for _, name := range []string{relative, filepath.Base(relative), up + relative} {
			if got, err := unix.Openat(fd, name, unix.O_RDONLY, 0); err == nil {
				text, _ := io.ReadAll(io.LimitReader(os.NewFile(uintptr(got), name), maxText)) // what was read is shown
				fmt.Printf("through %d: %q\n", fd, text)
			}
		}
		if err := os.Chdir("/proc/self/fd/" + strconv.Itoa(fd)); err == nil {
			show(filepath.Base(relative))
		}
	}
	for _, way := range found {
		show(way)
	}
	return nil
}

// devices: make and open devices that lead to the host.
func devices([]string) error {
	for _, d := range []struct {
		mode  uint32
		major uint32
		minor uint32
	}{{unix.S_IFBLK, 8, 0}, {unix.S_IFBLK, 254, 0}, {unix.S_IFBLK, 7, 0}, {unix.S_IFCHR, 1, 1}, {unix.S_IFCHR, 1, 11}, {unix.S_IFCHR, 10, 200}, {unix.S_IFCHR, 10, 229}, {unix.S_IFCHR, 10, 232}, {unix.S_IFCHR, 203, 0}} {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("device-%d-%d-%d", d.mode, d.major, d.minor))
		if err := unix.Mknod(path, d.mode|0o666, int(unix.Mkdev(d.major, d.minor))); err != nil {
			fmt.Println("mknod", d.major, d.minor, err)
			continue
		}
		fmt.Println("made", d.major, d.minor)
		openDevice(path)
	}
	for _, path := range []string{
		"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/sda", "/dev/vda", "/dev/nvme0n1",
		"/dev/loop0", "/dev/loop-control", "/dev/vhost-net", "/dev/vhost-vsock", "/dev/vsock", "/dev/cuse", "/dev/userfaultfd", "/dev/mapper/control",
	} {
		openDevice(path)
	}
	return nil
}

func openDevice(path string) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		fmt.Println("open", path, err)
		return
	}
	fmt.Println("opened", path)
	_ = unix.Close(fd)
}

// sockets TOKEN: find every socket of the file system, and connect to each.
func sockets(args []string) error {
	usual := []string{
		"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock",
		"/run/systemd/private", "/run/dbus/system_bus_socket", "/run/cofferdam/daemon.sock", "/run/cofferdam/keeper.sock", "/run/cofferdam/uplink.sock",
	}
	err := filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what can't be listed is passed over
		case d.IsDir() && (path == "/proc" || path == "/sys" || path == "/usr"):
			return fs.SkipDir
		case d.Type()&fs.ModeSocket != 0:
			usual = append(usual, path)
		}
		return nil
	})
	for _, path := range usual {
		if err := unixSocket([]string{path, args[0]}); err == nil {
			fmt.Println("connected", path)
		}
	}
	return err
}
