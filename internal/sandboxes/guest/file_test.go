package guest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// file does an operation that is one reply.
func (h *host) file(f channel.File) (channel.FileInfo, error) {
	h.t.Helper()
	stream, reply := h.call(channel.Call{Kind: channel.CallFile, File: &f})
	_ = stream.Close()
	if err := reply.Err(); err != nil {
		return channel.FileInfo{}, err
	}
	return reply.FileInfo()
}

// openFile begins an operation that has a stream.
func (h *host) openFile(f channel.File) (*channel.Conn, channel.FileInfo, error) {
	h.t.Helper()
	stream, reply := h.call(channel.Call{Kind: channel.CallFile, File: &f})
	err := reply.Err()
	if err != nil {
		_ = stream.Close()
		return nil, channel.FileInfo{}, err
	}
	info, err := reply.FileInfo()
	return stream, info, err
}

func (h *host) writeFile(f channel.File, from io.Reader) (channel.FileInfo, error) {
	h.t.Helper()
	f.Op = channel.FileWrite
	stream, _, err := h.openFile(f)
	if err != nil {
		return channel.FileInfo{}, err
	}
	defer stream.Close()
	return channel.WriteFile(stream, from, nil)
}

func (h *host) readFile(f channel.File) (string, error) {
	h.t.Helper()
	f.Op = channel.FileRead
	stream, info, err := h.openFile(f)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var content bytes.Buffer
	_, err = channel.NewFileReader(stream, info.Size).WriteTo(&content)
	return content.String(), err
}

func (h *host) list(f channel.File) ([]channel.FileInfo, error) {
	h.t.Helper()
	f.Op = channel.FileList
	stream, _, err := h.openFile(f)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var all []channel.FileInfo
	err = channel.ReadList(stream, func(part []channel.FileInfo) error {
		all = append(all, part...)
		return nil
	})
	return all, err
}

// must1 gives a function that fails the test on an error.
func must1[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// noTemporaries fails the test if a write has left something behind.
func noTemporaries(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if temporary, _ := isTemporary(d.Name()); temporary {
			t.Errorf("%s was left behind", p)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Names come back as they were given, whatever is in them (C-FA-01, C-FA-09).
func TestFileNames(t *testing.T) {
	a := startAgent(t, nil)
	names := []string{
		"plain", "with space", "-rf", "*?[a]{b}", "~", "~root", "new\nline", "\x1b[31mred\x07", "\u202eright to left", "日本語",
		"%2e%2e", "..\\x", "...", "'\"$(id)`", strings.Repeat("n", 255), "\x7f", " ",
	}
	for _, name := range names {
		full := "/data/" + name
		info, err := a.writeFile(channel.File{Path: full}, strings.NewReader(name))
		if err != nil || info.Path != full || info.Kind != channel.KindFile || info.Size != int64(len(name)) || info.Mode != 0o644 {
			t.Errorf("write %q: %+v, %v", name, info, err)
			continue
		}
		if got, err := os.ReadFile(a.root + full); err != nil || string(got) != name {
			t.Errorf("on the disk %q: %q, %v", name, got, err)
		}
		if got, err := a.readFile(channel.File{Path: full}); err != nil || got != name {
			t.Errorf("read %q: %q, %v", name, got, err)
		}
	}
	listed := must1[[]channel.FileInfo](t)(a.list(channel.File{Path: "/data"}))
	var got []string
	for _, info := range listed {
		got = append(got, path.Base(info.Path))
		if _, err := a.file(channel.File{Op: channel.FileRemove, Path: info.Path}); err != nil {
			t.Errorf("remove %q: %v", info.Path, err)
		}
	}
	slices.Sort(names)
	if d := cmp.Diff(names, got); d != "" {
		t.Error(d)
	}
	if left := must1[[]os.DirEntry](t)(os.ReadDir(a.root + "/data")); len(left) != 0 {
		t.Errorf("%d files were not removed", len(left))
	}
}

// A text that can't be a path is refused in every operation (C-FA-01).
func TestFilePathsRefused(t *testing.T) {
	a := startAgent(t, nil)
	if err := os.WriteFile(a.root+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"empty": "", "zero byte": "/a\x00b", "too long": "/" + strings.Repeat("a/", 2048), "component": "/" + strings.Repeat("c", 300),
		"below a file": "/file/x", "circle": "/circle",
	} {
		if name == "circle" {
			if err := os.Symlink("circle", a.root+"/circle"); err != nil {
				t.Fatal(err)
			}
		}
		for _, op := range []channel.FileOp{channel.FileStat, channel.FileList, channel.FileMkdir, channel.FileMove, channel.FileRemove, channel.FileRead, channel.FileWrite, channel.FileWatch} {
			if name == "circle" && (op == channel.FileStat || op == channel.FileMkdir || op == channel.FileMove || op == channel.FileRemove) {
				continue // they are about the link itself
			}
			_, err := a.file(channel.File{Op: op, Path: path, To: "/elsewhere"})
			if !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("%s of %s: %v", op, name, err)
			}
		}
	}
	for _, f := range []channel.File{
		{Op: "chmod", Path: "/file"},
		{Op: channel.FileStat, Path: "/file", User: "nobody"},
		{Op: channel.FileList, Path: "/", Depth: channel.MaxListDepth + 1},
		{Op: channel.FileRemove, Path: "/"},
		{Op: channel.FileRemove, Path: "/file/../.."},
		{Op: channel.FileMove, Path: "/file"},
	} {
		if _, err := a.file(f); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if _, err := os.Stat(a.root + "/file"); err != nil {
		t.Error(err)
	}
	if _, reply := a.call(channel.Call{Kind: channel.CallFile}); reply.OK {
		t.Error("a call without a body was answered")
	}
}

// Paths mean what they mean inside; no link leads out (C-FA-01, C-FA-02). The inside here is the
// agent's Root; that it is the sandbox's root is the engine's.
func TestFilesStayInside(t *testing.T) {
	a := startAgent(t, nil)
	outside := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(outside, []byte("host"), 0o600); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"absolute": outside, "relative": strings.Repeat("../", 30) + outside[1:], "dir": filepath.Dir(outside), "up": ".."}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(a.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	// The control: the kernel follows the same link to the canary.
	if got, err := os.ReadFile(a.root + "/absolute"); err != nil || string(got) != "host" {
		t.Fatalf("the link leads nowhere: %q, %v", got, err)
	}
	paths := []string{"/absolute", "/relative", "/dir/canary", "/up/up/up/" + outside[1:], strings.Repeat("../", 40) + outside[1:], outside}
	for _, path := range paths {
		if got, err := a.readFile(channel.File{Path: path}); !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("read %s: %q, %v", path, got, err)
		}
	}
	for _, path := range paths {
		if _, err := a.writeFile(channel.File{Path: path}, strings.NewReader("guest")); err != nil {
			t.Errorf("write %s: %v", path, err) // inside, with new parents
		}
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "host" {
		t.Errorf("the canary is now %q, %v", got, err)
	}
	if got, err := os.ReadFile(a.root + outside); err != nil || string(got) != "guest" {
		t.Errorf("inside is %q, %v", got, err)
	}
	if _, err := a.file(channel.File{Op: channel.FileRemove, Path: "/dir"}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a link was followed by remove: %v", err)
	}
}

// A thing that is no regular file is neither read nor written, and a file that never ends
// has an end; other calls go on meanwhile (C-FA-04).
func TestOnlyRegularFiles(t *testing.T) {
	a := startAgent(t, nil)
	if err := errors.Join(unix.Mkfifo(a.root+"/fifo", 0o666), os.Mkdir(a.root+"/dir", 0o755), unix.Mknod(a.root+"/zero", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5)))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/fifo", "/zero", "/dir", "/s"} { // /s is the agent's own socket
		if got, err := a.readFile(channel.File{Path: path}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("read %s: %q, %v", path, got, err)
		}
		if _, err := a.writeFile(channel.File{Path: path}, strings.NewReader("x")); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("write %s: %v", path, err)
		}
		info, err := a.file(channel.File{Op: channel.FileStat, Path: path})
		want := channel.KindOther
		if path == "/dir" {
			want = channel.KindDir
		}
		if err != nil || info.Kind != want {
			t.Errorf("stat %s: %+v, %v", path, info, err)
		}
	}
	a.mustCall(channel.Call{Kind: channel.CallPing})
}

// A file that grows is read as far as it went; one that shrinks is an error.
func TestFilesThatChange(t *testing.T) {
	a := startAgent(t, nil)
	const size = 8 << 20 // more than a stream holds, so that the agent is in the middle
	for name, change := range map[string]func(*os.File) error{
		"growing":   func(f *os.File) error { _, err := f.Write(make([]byte, size)); return err },
		"shrinking": func(f *os.File) error { return f.Truncate(1) },
	} {
		f := must1[*os.File](t)(os.Create(filepath.Join(a.root, name)))
		if _, err := f.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		stream, info, err := a.openFile(channel.File{Op: channel.FileRead, Path: "/" + name})
		if err != nil || info.Size != size {
			t.Fatalf("%+v, %v", info, err)
		}
		if err := change(f); err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, channel.NewFileReader(stream, info.Size))
		if name == "growing" && (n != size || err != nil) {
			t.Errorf("a growing file: %d bytes, %v", n, err)
		}
		if name == "shrinking" && !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("a shrinking file: %d bytes, %v", n, err)
		}
		_ = stream.Close()
		_ = f.Close()
	}
}

// TestASmallFileIsReadWhileItIsWrittenAnew: programs do that to files of state, and a reader is told no size that it then
// does not get.
func TestASmallFileIsReadWhileItIsWrittenAnew(t *testing.T) {
	a := startAgent(t, nil)
	name := filepath.Join(a.root, "count")
	if err := os.WriteFile(name, []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var writer errgroup.Group
	writer.Go(func() error {
		for i := 0; ctx.Err() == nil; i++ {
			if err := os.WriteFile(name, fmt.Appendln(nil, i), 0o600); err != nil { // emptied, then written
				return err
			}
		}
		return nil
	})
	for range 2_000 {
		if _, err := a.readFile(channel.File{Path: "/count"}); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	if err := writer.Wait(); err != nil {
		t.Error(err)
	}
}

// Sizes that are off by one somewhere (C-FA-09).
func TestFileSizes(t *testing.T) {
	a := startAgent(t, nil)
	for _, size := range []int64{0, 1, channel.MaxPayload, channel.MaxPayload + 1, 100<<20 + 1} {
		sent, got := sha256.New(), sha256.New()
		info, err := a.writeFile(channel.File{Path: "big"}, io.TeeReader(io.LimitReader(&noise{}, size), sent))
		if err != nil || info.Size != size {
			t.Fatalf("write %d: %+v, %v", size, info, err)
		}
		stream, info, err := a.openFile(channel.File{Op: channel.FileRead, Path: "big"})
		if err != nil || info.Size != size {
			t.Fatalf("read %d: %+v, %v", size, info, err)
		}
		n, err := io.Copy(got, channel.NewFileReader(stream, info.Size))
		if n != size || err != nil || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
			t.Errorf("read %d: %d bytes, %v; or they differ", size, n, err)
		}
		_ = stream.Close()
	}
}

// noise is bytes that are not all the same.
type noise struct{ at byte }

func (n *noise) Read(p []byte) (int, error) {
	for i := range p {
		n.at = n.at*31 + 7
		p[i] = n.at ^ byte(i>>8)
	}
	return len(p), nil
}

// A reader sees, while many write, one of the contents, whole (C-FA-08).
func TestWritesAreWhole(t *testing.T) {
	a := startAgent(t, nil)
	const writers, size = 50, 200_000
	content := func(i int) string { return strings.Repeat(string(rune('A'+i%26)), size+i) }
	if _, err := a.writeFile(channel.File{Path: "/shared"}, strings.NewReader(content(0))); err != nil {
		t.Fatal(err)
	}
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		reading.Go(func() {
			for {
				got, err := a.readFile(channel.File{Path: "/shared"})
				if err != nil || len(got) < size || got != strings.Repeat(got[:1], len(got)) || got != content(len(got)-size) {
					t.Errorf("read %d mixed bytes, %v", len(got), err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range writers {
		writing.Go(func() {
			if _, err := a.writeFile(channel.File{Path: "/shared"}, strings.NewReader(content(i))); err != nil {
				t.Error(err)
			}
		})
		writing.Go(func() { // others move and remove beside it
			other := fmt.Sprintf("/other%d", i)
			if _, err := a.writeFile(channel.File{Path: other}, strings.NewReader(content(i))); err != nil {
				t.Error(err)
			}
			if _, err := a.file(channel.File{Op: channel.FileMove, Path: other, To: "/shared"}); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	noTemporaries(t, a.root)
}

// A write that does not come to its end changes nothing.
func TestBrokenWrites(t *testing.T) {
	a := startAgent(t, nil)
	if _, err := a.writeFile(channel.File{Path: "/kept"}, strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the source is gone")
	_, err := a.writeFile(channel.File{Path: "/kept"}, io.MultiReader(strings.NewReader(strings.Repeat("new", 100_000)), &failing{broken}))
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	stream, _, err := a.openFile(channel.File{Op: channel.FileWrite, Path: "/kept"})
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.WriteFrame(channel.FrameStdout, []byte("not for a write")); err != nil {
		t.Fatal(err)
	}
	var reply channel.Reply
	if err := stream.ReadJSON(channel.FrameReply, &reply); err != nil || reply.OK {
		t.Errorf("%+v, %v", reply, err)
	}
	stream.Drain()
	got, err := a.readFile(channel.File{Path: "/kept"})
	if err != nil || got != "old" {
		t.Errorf("%.20q, %v", got, err)
	}
	for { // the agent hears of the first stream's end in its own time
		entries := must1[[]os.DirEntry](t)(os.ReadDir(a.root))
		left := false
		for _, e := range entries {
			temporary, _ := isTemporary(e.Name())
			left = left || temporary
		}
		if !left {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("a temporary file was left behind")
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// The home, parents, modes, links and metadata.
func TestFileOperations(t *testing.T) {
	a := startAgent(t, nil)
	home := a.agent.identity.user.Home
	info, err := a.writeFile(channel.File{Path: "~/bin/tool", Mode: 0o755}, strings.NewReader("#!/bin/sh\n"))
	if err != nil || info.Path != home+"/bin/tool" || info.Mode != 0o755 || info.Owner != "agent" {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := a.writeFile(channel.File{Path: "bin/tool"}, strings.NewReader("changed")); err != nil || info.Mode != 0o755 {
		t.Errorf("a file that is replaced keeps its mode: %+v, %v", info, err)
	}
	if err := os.Symlink("bin/tool", a.root+home+"/link"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.writeFile(channel.File{Path: "link"}, strings.NewReader("through")); err != nil {
		t.Error(err)
	}
	if info, err := a.file(channel.File{Op: channel.FileStat, Path: "link"}); err != nil || info.Kind != channel.KindSymlink || info.Target != "bin/tool" ||
		info.Resolved != home+"/bin/tool" || info.Leads != channel.KindFile {
		t.Errorf("%+v, %v", info, err)
	}
	if err := errors.Join(os.Symlink("/nowhere/at/all", a.root+home+"/gone"), os.Symlink(home+"/link", a.root+home+"/hop"),
		os.Symlink(".", a.root+home+"/dir")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"gone": "", "dir/hop": home + "/bin/tool", "dir/dir": home} {
		if info, err := a.file(channel.File{Op: channel.FileStat, Path: name}); err != nil || info.Kind != channel.KindSymlink || info.Resolved != want {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
	for _, link := range []string{"gone", "hop", "dir"} {
		if _, err := a.file(channel.File{Op: channel.FileRemove, Path: link}); err != nil {
			t.Error(err)
		}
	}
	if got, err := a.readFile(channel.File{Path: "~/bin/../bin/tool"}); err != nil || got != "through" {
		t.Errorf("%q, %v", got, err)
	}
	if info, err := a.file(channel.File{Op: channel.FileMkdir, Path: "/x/y/z", Mode: 0o700}); err != nil || info.Mode != 0o700 || info.Kind != channel.KindDir {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := a.file(channel.File{Op: channel.FileMkdir, Path: "/x/y/z"}); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("a directory that is there: %v", err)
	}
	for _, op := range []channel.FileOp{channel.FileStat, channel.FileRead, channel.FileList, channel.FileRemove, channel.FileMove, channel.FileWatch} {
		if _, err := a.file(channel.File{Op: op, Path: "/none", To: "/n"}); !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("%s of nothing: %v", op, err)
		}
	}
	if info, err := a.file(channel.File{Op: channel.FileMove, Path: "bin/tool", To: "/x/new/tool"}); err != nil || info.Path != "/x/new/tool" || info.Size != 7 {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := a.file(channel.File{Op: channel.FileMove, Path: "/x", To: "/x/y/inside"}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a directory into itself: %v", err)
	}
}

// A time that no message can carry is told as the nearest that one can.
func TestModified(t *testing.T) {
	for seconds, year := range map[int64]int{0: 1970, 1 << 62: 9999, -1 << 62: 1, -1: 1969, 1_700_000_000: 2023} {
		got := modified(unix.Timespec{Sec: seconds, Nsec: 5})
		if _, err := got.MarshalJSON(); err != nil || got.Year() != year {
			t.Errorf("%d: %v, %v", seconds, got, err)
		}
	}
}

func TestMetadata(t *testing.T) {
	a := startAgent(t, nil)
	want := map[string]string{"e2b.author": "somebody", "quoted": "\"\n\x00é"}
	info, err := a.writeFile(channel.File{Path: "/m", Metadata: want}, strings.NewReader("x"))
	probe := unix.Setxattr(a.root, "user.probe", []byte("x"), 0)
	if probe != nil {
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("a file system without metadata: %v", err)
		}
		return
	}
	if d := cmp.Diff(want, info.Metadata); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	if info, err := a.writeFile(channel.File{Path: "/m"}, strings.NewReader("y")); err != nil || len(info.Metadata) != 0 {
		t.Errorf("a new file has the old one's metadata: %+v, %v", info, err)
	}
	many := map[string]string{}
	for i := range channel.MaxMetadata + 1 {
		many[fmt.Sprint(i)] = "x"
	}
	for _, bad := range []map[string]string{many, {"": "x"}, {"a\x00": "x"}, {strings.Repeat("n", 300): "x"}, {"v": strings.Repeat("x", 5000)}} {
		if _, err := a.writeFile(channel.File{Path: "/m", Metadata: bad}, strings.NewReader("z")); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%d metadata: %v", len(bad), err)
		}
	}
}

func TestLists(t *testing.T) {
	a := startAgent(t, nil)
	for _, dir := range []string{"/l/b/deep/deeper", "/l/a", "/l/c"} {
		if err := os.MkdirAll(a.root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(a.root+"/l/b/file", []byte("123"), 0o600), os.Symlink("/l", a.root+"/l/a/circle")); err != nil {
		t.Fatal(err)
	}
	for depth, want := range map[int]string{
		0: "a b c", 1: "a b c", 2: "a a/circle b b/deep b/file c", 3: "a a/circle b b/deep b/deep/deeper b/file c", 50: "a a/circle b b/deep b/deep/deeper b/file c",
	} {
		var got []string
		for _, info := range must1[[]channel.FileInfo](t)(a.list(channel.File{Path: "/l", Depth: depth})) {
			got = append(got, strings.TrimPrefix(info.Path, "/l/"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("depth %d: %q", depth, got)
		}
	}
	if _, err := a.list(channel.File{Path: "/l/b/file"}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("list of a file: %v", err)
	}
}

// A list that is too long ends with an error, after what fits.
func TestLongList(t *testing.T) {
	s := configured(t, nil, nil)
	s.sh(fmt.Sprintf("for i in 0 1; do mkdir -p ~/many/$i && cd ~/many/$i && seq %d | xargs touch || exit 1; done", channel.MaxListEntries/2-1))
	all, err := s.list(channel.File{Path: "many", Depth: 2})
	if err != nil || len(all) != channel.MaxListEntries {
		t.Errorf("%d entries, %v", len(all), err)
	}
	s.sh("touch ~/many/1/more")
	all, err = s.list(channel.File{Path: "many", Depth: 2})
	if !errors.Is(err, fault.ErrInvalid) || len(all) != channel.MaxListEntries/2+1 {
		t.Errorf("%d entries, %v", len(all), err)
	}
}

// A tree deeper than a path can be long or descriptors many is removed.
func TestRemoveTree(t *testing.T) {
	a := startAgent(t, nil)
	if err := os.MkdirAll(a.root+"/tree/side", 0o755); err != nil {
		t.Fatal(err)
	}
	at := must1[int](t)(openDir(unix.AT_FDCWD, a.root+"/tree"))
	for range 3000 {
		if err := unix.Mkdirat(at, "d", 0o755); err != nil {
			t.Fatal(err)
		}
		next := must1[int](t)(openDir(at, "d"))
		_ = unix.Close(at)
		at = next
	}
	_ = unix.Close(at)
	if err := errors.Join(os.WriteFile(a.root+"/kept", nil, 0o600), os.Symlink(a.root+"/kept", a.root+"/tree/side/link"), os.Symlink(a.root, a.root+"/tree/side/dir")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.file(channel.File{Op: channel.FileRemove, Path: "/tree"}); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(a.root + "/tree"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
	if _, err := os.Stat(a.root + "/kept"); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
}
