package enginetest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// testControls tests each control that is declared; of the others it wants a
// reason.
func testControls(t *testing.T, s *Subject) {
	t.Helper()
	caps, err := s.Engine.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Run("wall", func(t *testing.T) { testWall(t, s, caps) })
	for _, c := range []struct {
		control engine.Control
		test    func(*testing.T, *Subject)
	}{
		{engine.ControlNoNetwork, testNoNetwork},
		{engine.ControlReadOnlyRoot, testReadOnlyRoot},
		{engine.ControlDiskCap, testDiskCap},
		{engine.ControlMemory, testMemory},
		{engine.ControlCPU, testCPU},
		{engine.ControlPids, testPids},
		{engine.ControlNProc, testNProc},
		{engine.ControlOwnKernel, testOwnKernel},
		{engine.ControlUserMapping, testUserMapping},
		{engine.ControlNonRootUser, testNonRootUser},
		{engine.ControlFreeze, testFreeze},
		{engine.ControlSnapshot, testSnapshot},
		{engine.ControlSnapshotFiles, testFilesSnapshot},
	} {
		t.Run(string(c.control), func(t *testing.T) {
			if slices.Contains(caps.Enforces, c.control) {
				c.test(t, s)
			} else if caps.Missing[c.control] == "" {
				t.Errorf("%s is neither enforced nor explained", c.control)
			}
		})
	}
	keepProof(t, s, caps, t.Failed())
}

// testNoNetwork: only the loopback interface, and no route to a listener that
// the weak sandbox reaches.
func testNoNetwork(t *testing.T, s *Subject) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("reached\n"))
			_ = conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dial := func(host, port string) string {
		return "bash -c 'read -t 2 line <>/dev/tcp/" + host + "/" + port + " && echo $line' 2>&1; true"
	}
	probe := dial("127.0.0.1", port)
	b := s.createBox(t, nil)
	if got := b.runScript("ls /sys/class/net 2>/dev/null; cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '"); strings.Trim(got, "lo\n") != "" {
		t.Errorf("interfaces: %q", got)
	}
	if got := b.runScript(probe); strings.Contains(got, "reached") {
		t.Errorf("the host's loopback answered: %q", got)
	}
	for _, address := range []string{"169.254.169.254", "192.0.2.1", hostAddress(t)} {
		if got := b.runScript(dial(address, port)); !strings.Contains(got, "unreachable") {
			t.Errorf("there seems to be a route to %s: %q", address, got)
		}
	}
	if s.NoWeak {
		return
	}
	if s.WeakHost != "" {
		probe = dial(s.WeakHost, port)
	}
	weak := s.createBox(t, func(spec *engine.Spec) { spec.Weak = true; spec.ID += "-weak" })
	if got := weak.runScript(probe); !strings.Contains(got, "reached") {
		t.Errorf("the probe does not find the listener in the weak sandbox either: %q", got)
	}
}

// hostAddress is an address of the host other than the loopback's, or a
// documentation address if it has none.
func hostAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	return "198.51.100.1"
}

// testReadOnlyRoot: what is written inside is not in the template, nor in a
// second sandbox of it.
func testReadOnlyRoot(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	spec := s.Spec(b.id)
	before, err := os.Stat(spec.Root.Path)
	if err != nil {
		t.Fatal(err)
	}
	if r := b.execAs("", "/bin/sh", "-c", "echo mine > /home/agent/mark && cat /home/agent/mark"); r.out != "mine\n" {
		t.Fatalf("the home is not writable: %+v", r)
	}
	second := s.createBox(t, func(spec *engine.Spec) { spec.ID += "-2" })
	if got := second.runScript("ls /home/agent"); strings.Contains(got, "mark") {
		t.Errorf("a second sandbox sees %q", got)
	}
	after, err := os.Stat(spec.Root.Path)
	if err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the template changed (%v)", err)
	}
	if found, err := filepath.Glob(filepath.Join(spec.Root.Path, "home/agent/mark")); err != nil || len(found) > 0 {
		t.Errorf("the template has %v (%v)", found, err)
	}
}

// testDiskCap: a full disk is ENOSPC, and the sandbox lives on; so is a full
// /tmp, far beyond the memory limit.
func testDiskCap(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, func(spec *engine.Spec) {
		spec.Limits.DiskBytes = 48 << 20
		spec.Limits.MemoryBytes = 192 << 20 // of which /dev/shm is half
		spec.Mounts = append(spec.Mounts, engine.Mount{Destination: "/tmp", SizeBytes: 300 << 20, Mode: 0o1777})
	})
	for file, megabytes := range map[string]int{"/home/agent/big": 48, "/tmp/big": 300, "/dev/shm/big": 96} {
		r := b.execAs("", "/bin/sh", "-c", fmt.Sprintf("dd if=/dev/zero of=%s bs=1M count=%d", file, megabytes+100))
		if r.exit.Code == 0 || !strings.Contains(r.err, "No space left") {
			t.Errorf("%s took more than %d MiB: %+v", file, megabytes, r)
		}
		b.runScript("rm " + file)
	}
	if got := b.runScript("dd if=/dev/zero of=/dev/shm/big bs=1M count=95 2>/dev/null && rm /dev/shm/big && echo there is room"); got != "there is room" {
		t.Errorf("/dev/shm is less than half of the memory: %q", got)
	}
	if got := b.runScript("echo alive > /home/agent/small && cat /home/agent/small"); got != "alive" {
		t.Errorf("after the full disk: %q", got)
	}
}

// testMemory: past the limit the sandbox is killed and says why, or the command alone,
// which is counted; below it the same command succeeds.
func testMemory(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, func(spec *engine.Spec) { spec.Limits.MemoryBytes = 128 << 20 })
	b.runScript("head -c 10000000 /dev/zero | tail >/dev/null")
	r := b.execAs("", "/bin/sh", "-c", "head -c 1000000000 /dev/zero | tail >/dev/null")
	stats, counted := b.inst.Stats(t.Context())
	if counted == nil && stats.MemoryKills > 0 && b.answersAtLast() {
		if r.exit.Code != 128+int(unix.SIGKILL) {
			t.Errorf("a command that was killed for memory ended with %+v", r.exit)
		}
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	exit, err := b.inst.Wait(ctx)
	if err != nil || !exit.OOM || exit.Reason != "out of memory" {
		t.Errorf("wait: %+v, %v; the command %+v, stats %+v, %v", exit, err, r, stats, counted)
	}
}

// testCPU: a busy loop gets its share of a CPU and no more.
func testCPU(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, func(spec *engine.Spec) { spec.Limits.CPU = 0.2 })
	before, err := b.inst.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.runScript("timeout 2 sh -c 'while :; do :; done'; true")
	after, err := b.inst.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Of two seconds, 0.2 CPUs is 0.4 seconds; unlimited it would be 2.
	if used := after.CPUNanos - before.CPUNanos; used > 1_200_000_000 {
		t.Errorf("used %d ns of CPU in two seconds at a fifth of one", used)
	}
}

// forkBomb starts far more processes than any limit here, and says how many it
// could.
const forkBomb = `n=0; while [ $n -lt 600 ]; do sleep 100 & n=$((n+1)); done; echo started $n`

// testPids: the host's count of the sandbox's tasks stays below the limit even
// with RLIMIT_NPROC out of the way of root, and the host is not affected.
func testPids(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, func(spec *engine.Spec) { spec.Limits.Pids = 64 })
	b.execAs("", "/bin/sh", "-c", forkBomb)
	stats, err := b.inst.Stats(t.Context())
	if err != nil || stats.Pids > 512+4*64 {
		t.Errorf("host tasks %d (%v)", stats.Pids, err)
	}
}

// testNProc: a fork bomb is refused forks, and neither the agent nor the next
// command suffers from what it leaves, whoever's processes they are.
func testNProc(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, func(spec *engine.Spec) { spec.Limits.Pids = 64 })
	if got := b.runScript("grep ^Cap /proc/self/status | cut -f2 | sort -u"); strings.Trim(got, "0") != "" || got == "" {
		t.Errorf("a command has capabilities, with which it may exceed the limit: %q", got)
	}
	if r := b.execAs("", "/bin/sh", "-c", forkBomb+"; wait"); strings.Contains(r.out, "started 600") || r.exit.Code == 0 {
		t.Errorf("600 processes under a limit of 64: %+v", r)
	}
	for range 10 { // The bomb's processes live on: that the shell has ended freed one place only.
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if got := b.execAs("", "/bin/echo", "alive"); got.out != "alive\n" {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					exit, err := b.inst.Wait(ctx) // if it has ended, how
					t.Errorf("after the fork bomb: %+v; the sandbox: %+v (%v)", got, exit, err)
				}
			})
		}
		group.Wait()
	}
}

// testOwnKernel: the kernel that answers is not the host's.
func testOwnKernel(t *testing.T, s *Subject) {
	t.Helper()
	const limit = 768 << 20
	b := s.createBox(t, func(spec *engine.Spec) { spec.Limits.MemoryBytes = limit })
	var host unix.Utsname
	if err := unix.Uname(&host); err != nil {
		t.Fatal(err)
	}
	if got, own := b.runScript("uname -rv"), unix.ByteSliceToString(host.Release[:]); strings.Contains(got, own) {
		t.Errorf("uname says %q, as the host does", got)
	}
	for _, device := range []string{"/dev/mem", "/dev/kvm", "/dev/sda", "/dev/net/tun", "/dev/vhost-net"} {
		if r := b.execAs("root", "/bin/cat", device); r.exit.Code == 0 {
			t.Errorf("%s could be read", device)
		}
	}
	var kib int64
	if got := b.runScript("grep MemTotal: /proc/meminfo"); !scanned(got, "MemTotal: %d kB", &kib) || kib<<10 > limit || kib<<10 < limit/2 {
		t.Errorf("of %d bytes of memory the sandbox is told %q", limit, got)
	}
}

func scanned(text, form string, into ...any) bool {
	n, err := fmt.Sscanf(text, form, into...)
	return err == nil && n == len(into)
}

// testUserMapping: on a read-write mount, files keep the host user's ownership
// both ways; a read-only mount stays as it is.
func testUserMapping(t *testing.T, s *Subject) {
	t.Helper()
	t.Run("root", func(t *testing.T) { testRootsMapping(t, s) })
	owner := s.Spec("t-owner").Owner
	shared, fixed := t.TempDir(), t.TempDir()
	for _, dir := range []string{shared, fixed} {
		if err := os.WriteFile(filepath.Join(dir, "theirs"), []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{dir, filepath.Join(dir, "theirs")} {
			if err := os.Chown(path, owner.HostUID, owner.HostGID); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := s.createBox(t, func(spec *engine.Spec) {
		spec.Mounts = append(
			spec.Mounts,
			engine.Mount{Source: shared, Destination: "/workspace"},
			engine.Mount{Source: fixed, Destination: "/data", ReadOnly: true},
			engine.Mount{Source: filepath.Join(fixed, "theirs"), Destination: "/workspace/guarded", ReadOnly: true},
		)
	})
	if got := b.runScript("stat -c %u:%g /workspace/theirs /data/theirs; cat /workspace/theirs"); got != "1000:1000\n1000:1000\nbefore" {
		t.Errorf("the user's file inside: %q", got)
	}
	b.runScript("echo after > /workspace/theirs && mkdir /workspace/dir && echo new > /workspace/dir/ours")
	for name, want := range map[string]string{"theirs": "after\n", "dir/ours": "new\n", "dir": ""} {
		var st unix.Stat_t
		path := filepath.Join(shared, name)
		if err := unix.Stat(path, &st); err != nil || int(st.Uid) != owner.HostUID || int(st.Gid) != owner.HostGID {
			t.Errorf("%s belongs to %d:%d on the host (%v)", name, st.Uid, st.Gid, err)
		}
		if data, err := os.ReadFile(path); want != "" && (err != nil || string(data) != want) {
			t.Errorf("%s is %q (%v)", name, data, err)
		}
	}
	for _, write := range []string{"echo x > /data/theirs", "echo x > /data/new", "rm /data/theirs", "chmod 777 /data/theirs", "echo x > /workspace/guarded", "rm /workspace/guarded"} {
		if r := b.execAs("", "/bin/sh", "-c", write); r.exit.Code == 0 {
			t.Errorf("%q succeeded on a read-only mount", write)
		}
	}
	if data, err := os.ReadFile(filepath.Join(fixed, "theirs")); err != nil || string(data) != "before" {
		t.Errorf("the read-only file is %q (%v)", data, err)
	}
}

// testNonRootUser: commands are the agent user's, without capabilities and
// without a way to any.
func testNonRootUser(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	if got := b.runScript("id -u; id -g"); got != "1000\n1000" {
		t.Errorf("ids %q", got)
	}
	for _, user := range []string{"", "root"} {
		r := b.execAs(user, "/bin/grep", "-E", "^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs)", "/proc/self/status")
		for line := range strings.Lines(r.out) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			value = strings.TrimSpace(value)
			if strings.HasPrefix(name, "Cap") && strings.Trim(value, "0") != "" {
				t.Errorf("user %q has %s %s", user, name, value)
			}
			if name == "NoNewPrivs" && value != "1" {
				t.Errorf("user %q may gain privileges", user)
			}
		}
		if r.exit.Code != 0 {
			t.Errorf("the status could not be read: %+v", r)
		}
	}
	for _, forbidden := range []string{"mknod /tmp/d c 1 1", "mount -t tmpfs x /tmp", "chroot / true", "echo 1 > /proc/sys/kernel/hostname"} {
		if r := b.execAs("root", "/bin/sh", "-c", forbidden); r.exit.Code == 0 {
			t.Errorf("%q succeeded", forbidden)
		}
	}
}
