package containment

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
)

// testInformation: nothing of what the invoker, the host, the daemon or the
// gateway keep to themselves can be read, and no path of the host either.
func testInformation(t *testing.T, s *stage) {
	t.Helper()
	b := s.open(t, nil)
	for _, m := range manners() {
		got := b.probe(t, m, "information")
		for _, where := range s.leaked(got.text) {
			t.Errorf("ESCAPED as %s: the sandbox reads %s", m.name, where)
		}
		// The host's kernel says in the table of mounts where what is shown lies.
		if at := strings.Index(got.text, s.dir); at >= 0 && !shared() {
			t.Errorf("ESCAPED as %s: a path of the host: %q", m.name, got.text[max(0, at-200):min(len(got.text), at+100)])
		}
		if !strings.Contains(got.text, "/proc/self/environ") && !strings.Contains(got.text, "/etc/passwd") {
			t.Errorf("INCONCLUSIVE as %s: the probe did not look: %.400s", m.name, got.text)
		}
	}
	s.goldenPath(t, b)
	used := slices.ContainsFunc(s.registry.Requests(), func(r liar.Request) bool { return r.Header.Get("Authorization") != "" })
	if !used {
		t.Error("INCONCLUSIVE: the gateway does not use the planted credential, so nothing is said by its absence")
	}
	t.Run("controls", func(t *testing.T) {
		found := s.leaked(s.weak.open(t).probe(t, "information").text)
		for token, where := range s.secrets {
			if !slices.Contains(found, where) {
				t.Errorf("INCONCLUSIVE: %s (%s) is not found in the weak sandbox either", where, token)
			}
		}
		if out := s.outside(t, func(cmd *exec.Cmd) { cmd.Env = []string{"HOME=" + s.dir} }, "information", s.dir); !strings.Contains(out.text, s.dir) {
			t.Error("INCONCLUSIVE: no path of the host is found outside either")
		}
	})
}

// testSockets: no socket of the host can be connected to, not even one that
// lies in a directory that was asked to be shown.
func testSockets(t *testing.T, s *stage) {
	t.Helper()
	shown := filepath.Join(s.dir, "mnt")
	show := func(req *api.CreateSandbox) {
		req.Mounts = append(req.Mounts, api.Mount{Source: shown, Destination: "/workspace", ReadWrite: !byMachine()}) // a machine has a copy
	}
	if shared() {
		req := api.CreateSandbox{Engine: os.Getenv(engineVariable), Template: "host", Policy: api.Policy{Document: []byte(policyDocument)}}
		show(&req)
		if _, err := s.client.CreateSandbox(t.Context(), req); err == nil || !strings.Contains(err.Error(), "docker.sock is a socket") {
			t.Errorf("ESCAPED: a folder with a socket of the host is shown, or the refusal does not say so: %v", err)
		}
		show = func(*api.CreateSandbox) {}
	}
	b := s.open(t, show)
	all := []attempt{
		{name: "every socket of the file system", args: []string{"sockets", "TOKEN"}},
		{name: "a socket in a directory that is shown", args: []string{"unix", "/workspace/docker.sock", "TOKEN"}},
		{name: "an abstract socket", control: outside, args: []string{"unix", "@" + s.world.token + "-abstract", "TOKEN"}},
	}
	s.attack(t, b, all, manners())
	s.goldenPath(t, b)
	s.controls(t, all[2:])
	// The walk would disturb every service of the real host, so the control
	// walks a root of its own with the canary in it.
	jail := filepath.Join(s.dir, "jail")
	s.write(t, "jail/probe", readFile(t, filepath.Join(probeDir(), "probe")), 0o755)
	if err := os.Link(filepath.Join(shown, "docker.sock"), filepath.Join(jail, "docker.sock")); err != nil {
		t.Fatal(err)
	}
	mark, token := s.seen.mark(), s.newToken()
	s.outside(t, func(cmd *exec.Cmd) { cmd.Path, cmd.SysProcAttr.Chroot = "/probe", jail }, "sockets", token)
	if !slices.ContainsFunc(s.escapes(t, mark, len(s.registry.Requests())), func(e sighting) bool { return strings.Contains(e.text, token) }) {
		t.Error("INCONCLUSIVE: the walk does not find the canary outside either")
	}
}

// testDevices: no device can be made, on the sandbox's own files or on a mount,
// and none that leads to the host can be opened.
func testDevices(t *testing.T, s *stage) {
	t.Helper()
	shared := filepath.Join(s.dir, "shared")
	if err := os.Mkdir(shared, 0o777); err != nil { // the sandbox is to write there
		t.Fatal(err)
	}
	dirs := []string{"/tmp"}
	b := s.open(t, func(req *api.CreateSandbox) {
		if !byMachine() { // nothing of the host can be written there
			dirs = append(dirs, "/workspace")
			req.Mounts = append(req.Mounts, api.Mount{Source: shared, Destination: "/workspace", ReadWrite: true})
		}
	})
	for _, user := range []string{"", "root"} {
		for _, dir := range dirs {
			text, _ := b.command(t, api.StartCommand{Argv: []string{"/probe/probe", "devices"}, User: user, Env: map[string]string{"TMPDIR": dir}})
			// These two are the sandbox's own kernel's: without a capability there
			// is nothing that can be done with them, and no device of the host
			// behind them, as is seen below.
			for _, own := range []string{"/dev/fuse", "/dev/net/tun"} {
				text = strings.ReplaceAll(text, "opened "+own+"\n", "")
			}
			if strings.Contains(text, "made ") || strings.Contains(text, "opened ") {
				t.Errorf("ESCAPED as %q in %s: %s", user, dir, text)
			}
		}
	}
	if made := deviceNodes(t, shared); len(made) > 0 {
		t.Errorf("ESCAPED: the host has %v", made)
	}
	for _, pid := range s.processes(t, b.id) {
		for _, d := range openDevices(t, pid) {
			t.Errorf("the host process %d of the sandbox holds %s", pid, d)
		}
	}
	s.goldenPath(t, b)
	got := s.outside(t, func(cmd *exec.Cmd) { cmd.Env = []string{"TMPDIR=" + shared} }, "devices")
	if made := deviceNodes(t, shared); len(made) == 0 || !strings.Contains(got.text, "opened ") {
		t.Errorf("INCONCLUSIVE: outside no device can be made or opened either: %s", got.text)
	}
}

func deviceNodes(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, e := range entries {
		if e.Type()&fs.ModeDevice != 0 {
			made = append(made, e.Name())
		}
	}
	return made
}

// openDevices lists the devices that a host process holds, beyond the harmless
// and the platform's own.
func openDevices(t *testing.T, pid int) []string {
	t.Helper()
	found, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(found) == 0 {
		t.Fatalf("the descriptors of %d can't be read (%v)", pid, err)
	}
	var devices []string
	for _, path := range found {
		var st unix.Stat_t
		link, err := os.Readlink(path)
		if err != nil || unix.Stat(path, &st) != nil {
			continue // closed meanwhile
		}
		// By their numbers: in a mount namespace of its own a file has no name that is true here.
		kind := st.Mode & unix.S_IFMT
		if kind == unix.S_IFBLK || kind == unix.S_IFCHR && !slices.Contains(harmlessDevices(), st.Rdev) {
			devices = append(devices, link)
		}
	}
	return devices
}

// harmlessDevices are /dev/null, /dev/zero, /dev/random and /dev/urandom.
func harmlessDevices() []uint64 {
	return []uint64{unix.Mkdev(1, 3), unix.Mkdev(1, 5), unix.Mkdev(1, 8), unix.Mkdev(1, 9)}
}

// testKernelFiles: writes to the kernel's files change nothing on the host. Of
// these, the sandbox's kernel permits the scores by which it would choose what
// to kill, to no effect; the host's scores of its processes are watched too.
func testKernelFiles(t *testing.T, s *stage) {
	t.Helper()
	const own = "/proc/sys/net/ipv4/ip_default_ttl" // of the stage's network: the control may change it
	watched := []string{own, "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname", "/proc/sys/vm/overcommit_memory", "/proc/sys/net/ipv4/ip_forward", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/self/oom_score_adj"}
	args := append([]string{"write", "1"}, watched...)
	args = append(args, "/proc/sysrq-trigger", "/proc/sys/kernel/sysrq", "/proc/sys/vm/drop_caches", "/proc/self/attr/current", "/proc/self/attr/exec", "/proc/self/uid_map",
		"/sys/power/state", "/sys/fs/cgroup/release_agent", "/proc/1/oom_score_adj", "/proc/kcore", "/proc/1/mem")
	b := s.open(t, nil)
	for _, pid := range s.processes(t, b.id) {
		if shared() {
			break // they are the sandbox's own, whose scores it may raise
		}
		watched = append(watched, fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	}
	before := contents(watched)
	for _, m := range manners() {
		got := b.probe(t, m, args...)
		for path, text := range contents(watched) {
			if text != before[path] {
				t.Errorf("ESCAPED as %s: %s of the host is %q, was %q", m.name, path, text, before[path])
			}
		}
		for line := range strings.Lines(got.text) {
			path, wrote := strings.CutPrefix(strings.TrimSpace(line), "wrote ")
			if wrote && filepath.Base(path) != "oom_score_adj" {
				t.Errorf("the sandbox's kernel let %s write %s", m.name, path)
			}
		}
	}
	s.goldenPath(t, b)
	s.outside(t, nil, "write", "1", own)
	if after := contents([]string{own}); after[own] == before[own] {
		t.Error("INCONCLUSIVE: outside the file does not change either")
	}
	if err := os.WriteFile(own, []byte(before[own]), 0o644); err != nil { // as it was
		t.Fatal(err)
	}
}

func contents(paths []string) map[string]string {
	all := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		all[path] = fmt.Sprint(string(text), err != nil)
		if err == nil {
			all[path] = string(text)
		}
	}
	return all
}

// testControlGroups: the limits, as read on the host, stay as they are, and the
// sandbox's processes stay in their group.
func testControlGroups(t *testing.T, s *stage) {
	t.Helper()
	b := s.open(t, nil)
	name := s.group(t, b.id)
	files := limits(t, name)
	if len(files) == 0 {
		t.Fatal("INCONCLUSIVE: the sandbox has no control group on this host")
	}
	before := contents(files)
	for _, m := range manners() {
		b.probe(t, m, "cgroup")
		for path, text := range contents(files) {
			if text != before[path] {
				t.Errorf("ESCAPED as %s: %s is %q, was %q", m.name, path, text, before[path])
			}
		}
	}
	for _, pid := range s.processes(t, b.id) {
		if own := readFile(t, fmt.Sprintf("/proc/%d/cgroup", pid)); !strings.Contains(own, name) {
			t.Errorf("ESCAPED: the process %d left its group: %s", pid, own)
		}
	}
	s.goldenPath(t, b)
	groups := cgroup.New(cgroup.Config{Parent: fmt.Sprintf("cofferdam-control-%d", os.Getpid())})
	group, err := groups.Create("", "control", cgroup.Limits{Pids: 64, MemoryBytes: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Remove(t.Context()); err != nil {
			t.Log(err)
		}
	})
	files = limits(t, fmt.Sprintf("cofferdam-control-%d/*/control", os.Getpid()))
	before = contents(files)
	script := `for f in ` + strings.Join(group.Joins(), " ") + `; do echo $$ > $f; done; exec ` + filepath.Join(probeDir(), "probe") + ` cgroup own`
	got := s.outside(t, func(cmd *exec.Cmd) { cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", script} })
	after := contents(files)
	if !slices.ContainsFunc(files, func(f string) bool { return after[f] != before[f] }) {
		t.Errorf("INCONCLUSIVE: outside no limit can be changed either: %s", got.text)
	}
}

// limits are the files of a group's limits on the host, of either version.
func limits(t *testing.T, group string) []string {
	t.Helper()
	var all []string
	for _, name := range []string{"pids.max", "memory.max", "memory.limit_in_bytes", "cpu.max", "cpu.cfs_quota_us", "memory.memsw.limit_in_bytes", "devices.list"} {
		for _, above := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/", "/sys/fs/cgroup/*/*/", "/sys/fs/cgroup/*/*/*/"} {
			found, err := filepath.Glob(above + group + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, found...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// testMounts: what is mounted stays so, as another command sees it and as the
// host sees it of the sandbox's processes.
func testMounts(t *testing.T, s *stage) {
	t.Helper()
	b := s.open(t, nil)
	look := func() []string {
		inside, _ := b.command(t, api.StartCommand{Argv: []string{"cat", "/proc/self/mountinfo"}, User: "root"})
		all := []string{inside, readFile(t, "/proc/self/mountinfo")}
		for _, pid := range s.processes(t, b.id) {
			all = append(all, readFile(t, fmt.Sprintf("/proc/%d/mountinfo", pid)))
		}
		return all
	}
	before := look()
	for _, m := range manners() {
		got := b.probe(t, m, "mounts", "/mnt")
		if strings.Contains(got.text, "mounted ") {
			t.Errorf("as %s: %s", m.name, got.text)
		}
		if after := look(); !slices.Equal(before, after) {
			t.Errorf("ESCAPED as %s: mounts were\n%q\nare\n%q", m.name, before, after)
		}
	}
	s.goldenPath(t, b)
	script := filepath.Join(probeDir(), "probe") + " mounts /mnt own; cat /proc/self/mountinfo"
	if got := s.outside(t, func(cmd *exec.Cmd) { cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", script} }); !strings.Contains(got.text, " planted ") {
		t.Errorf("INCONCLUSIVE: outside nothing can be mounted either: %s", got.text)
	}
}

// testDescriptors: no descriptor and no link of /proc leads to a file of the
// host, and no more descriptors are inherited than the three.
func testDescriptors(t *testing.T, s *stage) {
	t.Helper()
	b := s.open(t, nil)
	for _, m := range manners() {
		got := b.probe(t, m, "descriptors", s.hostSecret())
		for _, where := range s.leaked(got.text) {
			t.Errorf("ESCAPED as %s: it reads %s: %s", m.name, where, got.text)
		}
		// Beside the three: the listing's own, and two of the Go runtime's.
		if n := strings.Count(got.text, "descriptor "); n < 3 || n > 6 {
			t.Errorf("as %s the probe has %d descriptors: %s", m.name, n, got.text)
		}
	}
	list, exit := b.command(t, api.StartCommand{Argv: []string{"sh", "-c", "echo /proc/self/fd/*"}, User: "root"})
	for fd := range strings.FieldsSeq(list) {
		if n := filepath.Base(fd); len(n) > 1 || n > "3" && n != "*" { // 3 is the listing's
			t.Errorf("a shell inherits %s (%+v)", list, exit)
		}
	}
	s.goldenPath(t, b)
	dir, err := os.Open(filepath.Dir(s.hostSecret()))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	got := s.outside(t, func(cmd *exec.Cmd) {
		cmd.ExtraFiles = []*os.File{dir}
	}, "descriptors", s.hostSecret())
	if len(s.leaked(got.text)) == 0 {
		t.Errorf("INCONCLUSIVE: outside, with the directory inherited, the file is not read either: %s", got.text)
	}
}

// testReadOnly: what is shown read-only has the same bytes afterwards. Only the
// test's own files are tried: should this fail, it must cost nobody a host.
func testReadOnly(t *testing.T, s *stage) {
	t.Helper()
	shown := []string{filepath.Join(probeDir(), "probe"), filepath.Join(s.dir, "state/agent/cofferdam-guest")}
	before := digests(t, shown)
	b := s.open(t, nil)
	for _, m := range manners() {
		b.probe(t, m, "write", "spoilt", "/probe/probe", "/.cofferdam/bin/cofferdam-guest", "/proc/self/exe", "/proc/1/exe")
		b.command(t, api.StartCommand{Argv: []string{"sh", "-c", "rm -f /probe/* ; mv /probe/probe /probe/x; chmod 777 /probe/probe; ln /probe/probe /tmp/l"}, User: m.user})
		if after := digests(t, shown); !slices.Equal(before, after) {
			t.Fatalf("ESCAPED as %s: %v of the host changed: %q, was %q", m.name, shown, after, before)
		}
	}
	s.goldenPath(t, b)
	planted := filepath.Join(s.dir, "elsewhere", "written")
	s.write(t, "elsewhere/written", "as it was", 0o666)
	t.Run("controls", func(t *testing.T) { s.weak.open(t).probe(t, "write", "spoilt", "/elsewhere/written") })
	if readFile(t, planted) == "as it was" {
		t.Error("INCONCLUSIVE: the weak sandbox does not change a file that is shown to it writable")
	}
}

func digests(t *testing.T, paths []string) []string {
	t.Helper()
	var all []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s %x", path, info.Mode(), sha256.Sum256([]byte(readFile(t, path)))))
	}
	return all
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
