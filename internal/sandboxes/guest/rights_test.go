package guest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Files are read and written with the rights of the user, root's being those of
// root without capabilities, exactly as a command's (C-FA-02).
func TestRightsToFiles(t *testing.T) {
	s := configured(t, nil, nil)
	s.sh("umask 077; echo mine > ~/private; mkdir ~/closed; echo x > ~/closed/file")
	prepare := s.run(channel.Exec{Argv: []string{"sh", "-c", "umask 077; echo root > /opt/private; echo all > /opt/public; chmod 644 /opt/public"}, User: "root"})
	if prepare.exit.Code != 0 {
		t.Fatalf("%+v %s", prepare.exit, &prepare.stderr)
	}
	tests := []struct {
		op         channel.FileOp
		path, user string
		want       error
	}{
		{channel.FileRead, "~/private", "", nil},
		{channel.FileRead, "/home/agent/private", "agent", nil},
		{channel.FileRead, "/home/agent/private", "root", fault.ErrForbidden},
		{channel.FileRead, "/home/agent/closed/file", "root", fault.ErrForbidden},
		{channel.FileStat, "/home/agent/closed/file", "root", fault.ErrForbidden},
		{channel.FileList, "/home/agent/closed", "root", fault.ErrForbidden},
		{channel.FileWatch, "/home/agent/closed", "root", fault.ErrForbidden},
		{channel.FileRemove, "/home/agent/closed", "root", fault.ErrForbidden},
		{channel.FileRead, "/opt/private", "", fault.ErrForbidden},
		{channel.FileRead, "/opt/private", "root", nil},
		{channel.FileRead, "/opt/public", "", nil},
		{channel.FileWrite, "/opt/public", "", fault.ErrForbidden},
		{channel.FileWrite, "/opt/new", "", fault.ErrForbidden},
		{channel.FileWrite, "/opt/new", "root", nil},
		{channel.FileMkdir, "/opt/dir", "", fault.ErrForbidden},
		{channel.FileMove, "/opt/public", "", fault.ErrForbidden},
		{channel.FileRemove, "/opt/public", "", fault.ErrForbidden},
		{channel.FileRead, "/run/cofferdam/tls/ca.pem", "", nil},
		{channel.FileWrite, "/run/cofferdam/tls/ca.pem", "", fault.ErrForbidden},
	}
	for _, tt := range tests {
		f := channel.File{Op: tt.op, Path: tt.path, User: tt.user, To: "~/stolen"}
		var err error
		if tt.op == channel.FileWrite {
			_, err = s.writeFile(f, strings.NewReader("x"))
		} else {
			_, err = s.file(f)
		}
		if !errors.Is(err, tt.want) {
			t.Errorf("%s of %s as %q: %v, want %v", tt.op, tt.path, tt.user, err, tt.want)
		}
	}
	for user, owner := range map[string]string{"": "agent agent", "root": "root root"} {
		path := "/tmp/made-by-" + owner[:4]
		defer s.file(channel.File{Op: channel.FileRemove, Path: path, User: user})
		info, err := s.writeFile(channel.File{Path: path, User: user}, strings.NewReader("x"))
		if err != nil || info.Owner+" "+info.Group != owner {
			t.Errorf("%+v, %v", info, err)
		}
	}
	s.threadsAreRoots()
}

// threadsAreRoots looks whether every thread of the agent has come back.
func (s *sandboxed) threadsAreRoots() {
	s.t.Helper()
	e := s.run(channel.Exec{Argv: []string{"sh", "-c", "cat /proc/1/task/*/status | grep -E '^(Uid|Gid|CapEff)' | sort -u"}, User: "root"})
	got := strings.Fields(e.stdout.String())
	if len(got) != 2+5+5 || strings.Join(got[3:7], "") != "0000" || strings.Join(got[8:12], "") != "0000" || strings.Trim(got[1], "0") == "" {
		s.t.Errorf("the agent's threads are %q", got)
	}
}

// No path leads to what the agent itself has open, is, or knows: the kernel would
// let it look (C-FA-02).
func TestNoWayThroughTheProcessTable(t *testing.T) {
	s := configured(t, nil, nil)
	s.sh("ln -s /proc/1/root/etc/hostname ~/hop; ln -s /proc/self ~/self; ln -s /etc/hostname ~/control; ln -s /proc /home/agent/proc")
	if got, err := s.readFile(channel.File{Path: "~/control"}); err != nil || got != "box\n" {
		t.Fatalf("a link that leads elsewhere is not followed: %q, %v", got, err)
	}
	for _, path := range []string{
		"/proc/self/environ", "/proc/1/environ", "/proc/1/mem", "/proc/self/fd/0", "/proc/thread-self/environ", "/proc/self/root/etc/hostname",
		"/dev/fd/3", "/proc/net/dev", "/proc/mounts", "/home/agent/proc/cpuinfo", "/proc/sys/../1/environ", "/home/agent/hop", "/home/agent/self/environ", "/home/agent/proc/1/cmdline", "/home/agent/self/cwd/etc/hostname",
	} {
		for _, user := range []string{"", "root"} {
			if got, err := s.readFile(channel.File{Path: path, User: user}); !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("read %s as %q: %.40q, %v", path, user, got, err)
			}
			if _, err := s.writeFile(channel.File{Path: path, User: user}, strings.NewReader("x")); !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("write %s as %q: %v", path, user, err)
			}
		}
	}
	for _, path := range []string{"/proc", "/proc/self/fd", "~/proc", "~/self/task"} {
		if got, err := s.list(channel.File{Path: path}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("list %s: %+v, %v", path, got, err)
		}
	}
	// The rest of it, about the system, is no process's, and is read, but not written.
	for _, path := range []string{"/proc/meminfo", "/proc/sys/kernel/hostname"} {
		if got, err := s.readFile(channel.File{Path: path}); err != nil || got == "" || got != s.sh("cat "+path) && path != "/proc/meminfo" {
			t.Errorf("read %s: %q, %v", path, got, err)
		}
		if info, err := s.file(channel.File{Op: channel.FileStat, Path: path}); err != nil || info.Kind != channel.KindFile {
			t.Errorf("stat %s: %+v, %v", path, info, err)
		}
		if _, err := s.writeFile(channel.File{Path: path, User: "root"}, strings.NewReader("x")); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("write %s: %v", path, err)
		}
	}
	if _, err := s.file(channel.File{Op: channel.FileStat, Path: "/proc/1"}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("stat of a process: %v", err)
	}
	all, err := s.list(channel.File{Path: "/", Depth: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range all {
		if strings.HasPrefix(info.Path, "/proc/") {
			t.Errorf("listed %s", info.Path)
		}
	}
}

// A disk that is full leaves the old file, and says so; then there is room again.
func TestNoSpace(t *testing.T) {
	s := configured(t, nil, nil)
	const path = "/media/file"
	if _, err := s.writeFile(channel.File{Path: path}, strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	_, err := s.writeFile(channel.File{Path: path}, strings.NewReader(strings.Repeat("x", 8<<20)))
	if !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("got %v", err)
	}
	if got, err := s.readFile(channel.File{Path: path}); err != nil || got != "old" {
		t.Errorf("%.20q, %v", got, err)
	}
	if _, err := s.writeFile(channel.File{Path: path}, strings.NewReader(strings.Repeat("y", 700<<10))); err != nil {
		t.Errorf("the failed write has left something: %v", err)
	}
	// From one file system to another, over what is there.
	if info, err := s.file(channel.File{Op: channel.FileMove, Path: path, To: "~/moved"}); err != nil || info.Size != 700<<10 {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := s.file(channel.File{Op: channel.FileStat, Path: path}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("the source is still there: %v", err)
	}
	if _, err := s.file(channel.File{Op: channel.FileMkdir, Path: "/media/dir"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.file(channel.File{Op: channel.FileMove, Path: "/media/dir", To: "~/dir"}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a directory to another file system: %v", err)
	}
}

// Many users of files at once, among commands of both users: none gets another's
// rights, and the agent keeps its own.
func TestRightsUnderLoad(t *testing.T) {
	s := configured(t, nil, nil)
	var all sync.WaitGroup
	for i := range 40 {
		user, home := "", "/home/agent"
		if i%2 == 1 {
			user, home = "root", "/opt"
		}
		all.Go(func() {
			path := fmt.Sprintf("%s/f%d", home, i)
			info, err := s.writeFile(channel.File{Path: path, User: user, Mode: 0o600}, strings.NewReader(path))
			want := "agent"
			if user == "root" {
				want = "root"
			}
			if err != nil || info.Owner != want {
				t.Errorf("%+v, %v", info, err)
			}
		})
		all.Go(func() {
			e := s.run(channel.Exec{ID: fmt.Sprint("c", i), Argv: []string{"id", "-u"}, User: user})
			if got := strings.TrimSpace(e.stdout.String()); got != map[string]string{"": "1000", "root": "0"}[user] {
				t.Errorf("a command of %q ran as %s", user, got)
			}
		})
	}
	all.Wait()
	s.threadsAreRoots()
}

// A command runs in the directory that was named, or not at all (C-FA-10).
func TestWorkingDirectories(t *testing.T) {
	s := configured(t, nil, nil)
	s.sh("mkdir -p ~/real/inner ~/gone && ln -s real ~/link && ln -s /proc/self/fd ~/fds && echo x > ~/file && mkfifo ~/fifo && rmdir ~/gone && ln -s gone ~/dangling && ln -s circle ~/circle")
	prepare := s.run(channel.Exec{Argv: []string{"sh", "-c", "mkdir -m 700 /opt/closed && mkdir /opt/closed/below"}, User: "root"})
	if prepare.exit.Code != 0 {
		t.Fatalf("%+v %s", prepare.exit, &prepare.stderr)
	}
	for dir, want := range map[string]string{"": "/home/agent\n", "/home/agent/link/inner": "/home/agent/real/inner\n", "/home/agent/real/../link": "/home/agent/real\n", "/": "/\n"} {
		e := s.run(channel.Exec{Argv: []string{"pwd", "-P"}, Dir: dir})
		if e.exit.Code != 0 || e.stdout.String() != want {
			t.Errorf("%q: %q, %+v", dir, &e.stdout, e.exit)
		}
	}
	for _, dir := range []string{
		"/home/agent/gone", "/home/agent/dangling", "/home/agent/circle", "/home/agent/file", "/home/agent/fifo", "/opt/closed", "/opt/closed/below",
		"/home/agent/fds", "/proc/self/fd/9", "/proc/1/cwd", "/dev/fd/9", "relative", "/home/agent\x00/real", "/" + strings.Repeat("d/", 3000),
	} {
		e := s.run(channel.Exec{Argv: []string{"touch", "/home/agent/ran"}, Dir: dir})
		if e.exit.Code != codeNotExecutable || e.exit.Error == "" {
			t.Errorf("%.60q: %+v", dir, e.exit)
		}
	}
	if _, err := s.file(channel.File{Op: channel.FileStat, Path: "ran"}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a command ran all the same: %v", err)
	}
}

// A file that root writes for the user is the user's, where only root may write; nothing that
// is another's is replaced, and no link of the user's leads there.
func TestGiven(t *testing.T) {
	s := configured(t, nil, nil)
	s.sh("ln -s /etc ~/out") // the stage has an /etc and an /opt of its own
	write := func(path string, give bool) (channel.FileInfo, error) {
		user := ""
		if give {
			user = "root"
		}
		info, err := s.writeFile(channel.File{Path: path, User: user, Give: give}, strings.NewReader("x"))
		return info, err
	}
	const path = "/opt/top/of/it/file"
	if _, err := write(path, false); !errors.Is(err, fault.ErrForbidden) {
		t.Fatalf("the user may write there: %v", err)
	}
	for _, path := range []string{path, "/opt/file", "/opt/file"} { // the second time it is there, and the user's own
		if info, err := write(path, true); err != nil || info.Owner != "agent" || info.Mode != 0o644 {
			t.Errorf("%s: %+v, %v", path, info, err)
		}
	}
	if info, err := write(path, false); err != nil || info.Owner != "agent" {
		t.Errorf("its user may not write it: %+v, %v", info, err)
	}
	if info, err := s.file(channel.File{Op: channel.FileMkdir, Path: "/opt/other/dir", User: "root", Give: true}); err != nil || info.Owner != "agent" || info.Kind != channel.KindDir {
		t.Errorf("%+v, %v", info, err)
	}
	if got := s.sh("cd /opt && stat -c %u top top/of top/of/it top/of/it/file other other/dir | sort -u; touch top/of/mine && echo ok"); got != "1000\nok\n" {
		t.Errorf("got %q", got)
	}
	for _, path := range []string{"/etc/hostname", "/home/agent/out/new", "/proc/sys/kernel/hostname"} {
		if info, err := write(path, true); err == nil {
			t.Errorf("%s: %+v", path, info)
		}
	}
	if got := s.sh("cat /etc/hostname; ls /etc/new 2>&1 | grep -c 'No such'"); got != "box\n1\n" {
		t.Errorf("got %q", got)
	}
	if _, err := s.writeFile(channel.File{Path: "/opt/top/b", Give: true}, strings.NewReader("x")); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("the user gives: %v", err)
	}
}
