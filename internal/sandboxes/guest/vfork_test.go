package guest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// waysToStart are how a child can come about.
func waysToStart() map[string]func(*child) (int, *os.File, error) {
	return map[string]func(*child) (int, *os.File, error){
		"shared": func(c *child) (int, *os.File, error) {
			if !acquireSharedStart() {
				return 0, nil, errors.New("INCONCLUSIVE: too many starts are held up already")
			}
			return c.beginShared()
		},
		"apart": (*child).beginApart,
	}
}

// startBy starts the program in one way and returns what it printed, how it ended, and its
// number.
func startBy(way func(*child) (int, *os.File, error), p program) (text string, status unix.WaitStatus, pid int, err error) {
	out, in, err := os.Pipe()
	if err != nil {
		return "", 0, 0, err
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return "", 0, 0, err
	}
	defer null.Close()
	c, err := p.layChild()
	if err != nil {
		return "", 0, 0, err
	}
	c.fds = [3]int{int(null.Fd()), int(in.Fd()), int(in.Fd())}
	pid, told, err := way(c)
	if err := errors.Join(err, in.Close()); err != nil {
		return "", 0, pid, err
	}
	refused := awaitBegun(told, time.Minute)
	_ = told.Close() // it may be nil
	data, err := io.ReadAll(out)
	status, gone := awaitChild(pid)
	return string(data), status, pid, errors.Join(refused, err, gone)
}

// TestBothWaysStartAlike: a program cannot tell in which way it was started, and nothing of the
// agent but what it was given has come along.
func TestBothWaysStartAlike(t *testing.T) {
	leaked, err := os.Open("/") // close-on-exec, as all that the agent has
	if err != nil {
		t.Fatal(err)
	}
	defer leaked.Close()
	// As TakeChannel does with what an agent is started with.
	if err := unix.CloseRange(3, ^uint(0)>>33, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CANARY", "of the agent")
	own, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, ignored, _ := strings.Cut(string(own), "\nSigIgn:") // what a test is started with, such as by nohup
	ignored, _, _ = strings.Cut(ignored, "\n")
	// Without a shell, which blocks signals and has descriptors of its own now and then.
	for file, looks := range map[string]struct{ args, want []string }{
		"/bin/grep": {
			[]string{"-h", "-E", "^(Sig(Blk|Ign)|TracerPid|[UG]id|Groups|NoNewPrivs|Max processes)", "/proc/self/status", "/proc/self/limits"},
			[]string{"SigBlk:\t0000000000000000\n", "SigIgn:" + ignored + "\n", "TracerPid:\t0\n", "Uid:\t1000\t1000\t1000\t1000\n", " 4321 "},
		},
		"/bin/ls":      {[]string{"/proc/self/fd"}, []string{"0\n1\n2\n3\n"}}, // the last is its own
		"/usr/bin/env": {nil, []string{"PATH=/bin:/usr/bin\nONLY=this\n"}},
		"/bin/pwd":     {nil, []string{"/usr\n"}},
	} {
		said := map[string]string{}
		for name, way := range waysToStart() {
			p := childOf(1000)
			p.file, p.argv = file, append([]string{file}, looks.args...)
			text, status, _, err := startBy(way, p)
			if err != nil || status != 0 {
				t.Errorf("%s, %s ended with %#x (%v)", name, file, status, err)
			}
			for _, want := range looks.want {
				if !strings.Contains(text, want) || len(looks.want) == 1 && text != want {
					t.Errorf("%s, %s sees %q, not %q", name, file, text, want)
				}
			}
			said[name] = text
		}
		if said["shared"] != said["apart"] {
			t.Errorf("%s sees %q, or %q", file, said["shared"], said["apart"])
		}
	}
}

// TestACommandStartsWithoutItsNumber: a kernel that does not let the limits be set which carry a command's number
// keeps no command from starting. The control is that they are set where it does.
func TestACommandStartsWithoutItsNumber(t *testing.T) {
	for name, way := range waysToStart() {
		for refused, limit := range map[bool]*unix.Rlimit{
			false: {Cur: growing + 7, Max: growing + 7},
			true:  {Cur: growing + 7, Max: growing + 6}, // which no kernel sets
		} {
			p := childOf(os.Getuid())
			p.file, p.argv = "/bin/cat", []string{"cat", "/proc/self/limits"}
			text, status, _, err := startBy(func(c *child) (int, *os.File, error) {
				c.grown, c.fallen = limit, &unix.Rlimit{Cur: falling - 7, Max: falling - 7}
				return way(c)
			}, p)
			if err != nil || status != 0 {
				t.Errorf("%s, refused %v: it ended with %#x (%v)", name, refused, status, err)
			}
			if numbered := parseLineage([]byte(text)).certain(); numbered == refused {
				t.Errorf("%s, refused %v: it has its number: %v, by %q", name, refused, numbered, text)
			}
		}
	}
}

// childOf is a program of a user, with all that one can be given.
func childOf(uid int) program {
	return program{env: []string{"PATH=/bin:/usr/bin", "ONLY=this"}, dir: "/usr", uid: uid, gid: uid, groups: isRoot(), processes: 4321}
}

// TestBothWaysEndAlike: the number is that of the program, which leads a session, and its status
// is how it ended.
func TestBothWaysEndAlike(t *testing.T) {
	for name, way := range waysToStart() {
		for end, want := range map[string]unix.WaitStatus{
			"exit 0": 0, "exit 7": 7 << 8, "kill -KILL $$": unix.WaitStatus(unix.SIGKILL), "kill -TERM $$": unix.WaitStatus(unix.SIGTERM),
		} {
			p := childOf(1000)
			p.file, p.argv = "/bin/sh", []string{"sh", "-c", "cut -d' ' -f1,5,6 /proc/$$/stat; " + end}
			text, status, pid, err := startBy(way, p)
			if number := strconv.Itoa(pid); err != nil || status != want || text != strings.Join([]string{number, number, number}, " ")+"\n" {
				t.Errorf("%s, %q: %d ended with %#x, not %#x, and was %q (%v)", name, end, pid, status, want, text, err)
			}
		}
	}
}

// TestBothWaysAreRefusedAlike: the kernel's refusal is told, and no child is left.
func TestBothWaysAreRefusedAlike(t *testing.T) {
	for name, way := range waysToStart() {
		for p, want := range map[*program]error{
			{file: "/nowhere", dir: "/"}:              unix.ENOENT,
			{file: "/bin/true", dir: "/nowhere"}:      unix.ENOENT,
			{file: "/", dir: "/"}:                     unix.EACCES,
			{file: "/etc/passwd", dir: "/"}:           unix.EACCES,
			{file: "/bin/true", dir: "/etc/passwd"}:   unix.ENOTDIR,
			{file: "/bin/true", dir: "/", gid: -1}:    unix.EINVAL,
			{file: "/bin/true", dir: "/", gid: 12345}: nil, // the control
		} {
			p.argv, p.uid = []string{"x"}, os.Getuid()
			before := children(t)
			_, _, _, err := startBy(way, *p)
			if !errors.Is(err, want) {
				t.Errorf("%s, %+v: %v, not %v", name, *p, err, want)
			}
			for pid := range children(t) {
				if !before[pid] {
					t.Errorf("%s, %+v: the child %d is left", name, *p, pid)
				}
			}
		}
	}
	if n := sharing.Load(); n != 0 {
		t.Errorf("%d starts have not been given back", n)
	}
}

// children are those of this process, dead or alive.
func children(t *testing.T) map[int]bool {
	t.Helper()
	table, err := process.Table()
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]bool{}
	for pid, p := range table {
		found[pid] = p.Parent == os.Getpid()
	}
	maps.DeleteFunc(found, func(_ int, own bool) bool { return !own })
	return found
}

// leasedProgram is a program whose starts the kernel holds up until release.
func leasedProgram(t *testing.T, text []byte) (file string, release func()) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "own")
	if err := os.WriteFile(file, text, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK) // a child that is held up has the file, too
		_ = f.Close()                                               // nothing was written
	})
	t.Cleanup(release)
	return file, release
}

// nothing is a program that does nothing.
func nothing(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// heldStart is one that was begun and is held up.
type heldStart struct {
	pid  int
	told *os.File
}

func beginHeld(t *testing.T, file string) heldStart {
	t.Helper()
	p := program{file: file, argv: []string{"own"}, dir: "/", files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, uid: os.Getuid(), gid: os.Getgid()}
	pid, told, err := p.beginChild()
	if err != nil {
		t.Fatal(err)
	}
	if err := awaitBegun(told, time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("INCONCLUSIVE: nothing held %d up: %v", pid, err)
	}
	return heldStart{pid, told}
}

// ends waits for it once it has been let go.
func (h heldStart) ends(t *testing.T) {
	t.Helper()
	refused := awaitBegun(h.told, time.Minute)
	status, err := awaitChild(h.pid)
	if err := errors.Join(refused, err, h.told.Close()); err != nil || status != 0 {
		t.Errorf("%d ended with %d (%v)", h.pid, status, err)
	}
}

// TestAHeldUpStartStopsNoWorld: the thread that stands still for it has no right to run Go code,
// so that the others get theirs, and memory is collected.
func TestAHeldUpStartStopsNoWorld(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	file, release := leasedProgram(t, nothing(t))
	held := beginHeld(t, file)
	if sharing.Load() != 1 {
		t.Error("INCONCLUSIVE: it does not share this process's memory")
	}
	for range 3 {
		runtime.GC()
	}
	release()
	held.ends(t)
}

// TestAHeldUpStartIsRefusedInTheEnd: the kernel's refusal is told of one that was held up, too.
func TestAHeldUpStartIsRefusedInTheEnd(t *testing.T) {
	file, release := leasedProgram(t, []byte("no program"))
	held := beginHeld(t, file)
	defer held.told.Close()
	release()
	if err := awaitBegun(held.told, time.Minute); !errors.Is(err, unix.ENOEXEC) {
		t.Errorf("it was told %v", err)
	}
	if status, err := awaitChild(held.pid); err != nil || status.ExitStatus() != codeNotBegun {
		t.Errorf("it ended with %#x (%v)", status, err)
	}
}

// TestFewHeldUpStartsShareMemory: of starts that are held up only so many take a thread, and one
// that is not begins beside them all.
func TestFewHeldUpStartsShareMemory(t *testing.T) {
	file, release := leasedProgram(t, nothing(t))
	var all []heldStart
	for range sharedStarts + 4 {
		all = append(all, beginHeld(t, file))
		text, status, err := runProgram(program{file: "/bin/echo", argv: []string{"echo", "begun"}, uid: os.Getuid(), gid: os.Getgid()})
		if text != "begun" || status != 0 || err != nil {
			t.Errorf("beside %d that are held up: %q, %d (%v)", len(all), text, status, err)
		}
		if n := int(sharing.Load()); n != min(len(all), sharedStarts) {
			t.Errorf("%d of %d share this process's memory", n, len(all))
		}
	}
	release()
	for _, held := range all {
		held.ends(t)
	}
	if n := sharing.Load(); n != 0 {
		t.Errorf("%d starts have not been given back", n)
	}
}

// TestAThousandStartsAtOnce: each ends as itself, and nothing is lost between them.
func TestAThousandStartsAtOnce(t *testing.T) {
	r := newReaper()
	go r.collectChildren(t.Context())
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var starts sync.WaitGroup
	for i := range 1000 {
		starts.Go(func() {
			p := program{
				file: "/bin/sh", argv: []string{"sh", "-c", fmt.Sprintf("exit %d", i%200)}, dir: "/",
				files: [3]*os.File{null, null, null}, uid: os.Getuid(), gid: os.Getgid(),
			}
			var told *os.File
			var root process.ID
			done, err := r.startChild(func() (process.ID, error) {
				pid, reading, err := p.beginChild()
				if err != nil {
					return process.ID{}, err
				}
				told = reading
				root, err = process.Of(pid)
				return root, err
			})
			if err != nil {
				t.Errorf("start %d: %v", i, err)
				return
			}
			if err := r.awaitChild(root, told, newClock(), time.Minute); err != nil {
				t.Errorf("start %d: %v", i, err)
			}
			_ = told.Close() // it may be nil
			if status := <-done; status.ExitStatus() != i%200 {
				t.Errorf("start %d ended with %d", i, status)
			}
		})
	}
	starts.Wait()
}

// TestNobodySeesIntoAHeldUpStart: as long as a child has the agent's memory, processes of its
// user can neither trace it nor read or write what it has, whatever user that is.
func TestNobodySeesIntoAHeldUpStart(t *testing.T) {
	for _, user := range []string{"agent", "root"} {
		t.Run(user, func(t *testing.T) {
			s := configured(t, nil, nil)
			const hold = `cp /bin/true /media/own && exec perl -e '
				$| = 1; $SIG{IO} = sub { print "waited for\n" }; $SIG{USR1} = sub { exit };
				open my $f, "<", "/media/own" or die $!; fcntl($f, 1024, 1) or die "F_SETLEASE: $!"; print "ready\n"; sleep 1 while 1'`
			owner := s.start(channel.Exec{ID: "owner", Argv: []string{"sh", "-c", hold}, User: user})
			owner.until("ready")
			held := s.start(channel.Exec{ID: "held", Argv: []string{"/media/own"}, User: user})
			owner.until("waited for")
			s.sharesMemory()
			const attack = `
				sub seen { my $p = shift; my $n = 0;
					for my $f ("mem", "environ", "maps", "auxv") { open(my $h, "<", "/proc/$p/$f") and $n++ }
					open(my $h, "+<", "/proc/$p/mem") and $n++;
					readlink("/proc/$p/exe") and $n++;
					if (syscall(101, 16, $p, 0, 0) == 0) { $n++; waitpid($p, 0x40000000); syscall(101, 17, $p, 0, 0) } # ptrace: attach, detach
					return $n }
				my $own = fork // die; if (!$own) { sleep 1000; exit }
				my $control = seen($own); kill 9, $own;
				my ($found, $there) = (0, 0);
				for my $d (glob "/proc/[0-9]*") { my ($p) = $d =~ /(\d+)/; next if $p == 1;
					open(my $c, "<", "$d/comm") or next; next unless <$c> =~ /^cofferdam-gues/; $there++; $found += seen($p) }
				print "$control seen of its own, $there there, $found seen\n"`
			e := s.run(channel.Exec{ID: "attacker", Argv: []string{"perl", "-e", attack}, User: user})
			if got := e.stdout.String(); got != "7 seen of its own, 1 there, 0 seen\n" {
				t.Errorf("got %q %s", got, e.stderr.String())
			}
			owner.sendJSON(channel.FrameSignal, channel.Signal{Name: "USR1"})
			if exit := held.wait(); exit.Code != 0 {
				t.Errorf("once it is let go: %+v", exit)
			}
			owner.wait()
		})
	}
}

// TestAStartLeavesTheAgentHidden: a change of ids may allow a core of the memory that the child
// shares. It is forbidden again before the child can be signalled. The change is made by hand
// here: what the kernel makes of it is a setting of the whole machine.
func TestAStartLeavesTheAgentHidden(t *testing.T) {
	dumpable := func() int {
		value, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	set := func(value uintptr) {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, value, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { set(1) })
	for before, want := range map[uintptr]int{0: 0, 1: 1} { // 1 is the control: it was never hidden
		set(before)
		changed := func(c *child) (int, *os.File, error) {
			set(1)
			return waysToStart()["shared"](c)
		}
		p := program{file: "/bin/true", argv: []string{"true"}, dir: "/", uid: os.Getuid(), gid: os.Getgid()}
		_, status, _, err := startBy(changed, p)
		if got := dumpable(); err != nil || status != 0 || got != want {
			t.Errorf("dumpable is %d after a start, not %d (%#x, %v)", got, want, status, err)
		}
	}
}

// sharesMemory fails the test unless a process of the sandbox has the agent's memory.
func (s *sandboxed) sharesMemory() {
	s.t.Helper()
	const kcmpVM = 1
	table, err := process.Table()
	if err != nil {
		s.t.Fatal(err)
	}
	for pid, p := range table {
		if p.Parent != s.process.Pid || p.Dead {
			continue
		}
		same, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(s.process.Pid), uintptr(pid), kcmpVM, 0, 0, 0)
		if errno != 0 {
			s.t.Fatalf("INCONCLUSIVE: whose memory %d has: %v", pid, errno)
		}
		if same == 0 {
			return
		}
	}
	s.t.Fatal("INCONCLUSIVE: no process of the sandbox shares the agent's memory")
}

// TestHidesWhatChangedUsers: memory is not shared where the kernel lets everybody look into a
// process that has changed its user, nor where it does not say.
func TestHidesWhatChangedUsers(t *testing.T) {
	dir := t.TempDir()
	for value, want := range map[string]bool{"0\n": true, "1\n": false, "2\n": true} {
		setting := filepath.Join(dir, "setting")
		if err := os.WriteFile(setting, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := hidesWhatChangedUsers(setting); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	if !hidesWhatChangedUsers(filepath.Join(dir, "absent")) || hidesWhatChangedUsers(dir) {
		t.Error("a kernel without the setting, or one that can't be read")
	}
}

// TestNothingWaitsForAllThreads: a system call on all threads stops the world until the thread
// of a start that is held up comes back. The agent makes such calls before its first start only.
func TestNothingWaitsForAllThreads(t *testing.T) {
	calls := regexp.MustCompile(`\b(everyThread|AllThreadsSyscall6?|(syscall|unix)\.Set(re|res|fs)?[ug]id|(syscall|unix)\.Setgroups)\(`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") && calls.Match(text) {
			found[file] = true
		}
	}
	if len(found) != 1 || !found["harden.go"] { // which is the control
		t.Errorf("calls on all threads are made in %v", found)
	}
}
