package layer_test

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/layer"
)

// owners map the sandbox's ids from one of the host's on.
func owners(first uint32) layer.Owners {
	m := []specs.LinuxIDMapping{{ContainerID: 0, HostID: first, Size: 65536}}
	return layer.Owners{UIDs: m, GIDs: m}
}

func rootAt(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestARoundTrip: all that a sandbox may have written comes out as it was, for other ids of
// the host, and a file that is mostly a hole costs what is in it.
func TestARoundTrip(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("owners and whiteouts take root")
	}
	from, to := t.TempDir(), t.TempDir()
	in := func(name string) string { return filepath.Join(from, name) }
	then := time.Unix(1_500_000_000, 123_456_789)
	odd := "line\nbreak \xff =\\"
	must(t,
		os.Mkdir(in("d"), 0o700), os.WriteFile(in("d/f"), []byte("content"), 0o640), os.WriteFile(in(odd), nil, 0o600),
		os.Symlink("/etc/shadow", in("d/away")), os.Link(in("d/f"), in("d/same")), unix.Mkfifo(in("pipe"), 0), os.Chmod(in("pipe"), 0o666),
		unix.Mknod(in("d/deleted"), unix.S_IFCHR, 0), os.Mkdir(in("hides"), 0o755),
		unix.Lsetxattr(in("hides"), "trusted.overlay.opaque", []byte("y"), 0), unix.Lsetxattr(in("d/f"), "user.a=b", []byte("\x00v"), 0),
		unix.Lsetxattr(in("d/f"), "trusted.overlay.origin", []byte("x"), 0),
		unix.Lsetxattr(in("d/f"), "system.posix_acl_access", acl(5_001_234), 0),
		os.Lchown(in("d/f"), 5_001_000, 5_001_001), os.Lchown(in("d/away"), 5_001_000, 5_001_000), os.Lchown(in(odd), 77, 5_000_000),
		os.Chmod(in("d/f"), 0o640|os.ModeSetuid), os.Chtimes(in("d/f"), then, then),
		os.WriteFile(in("sparse"), []byte("begin"), 0o600),
	)
	sparse, err := os.OpenFile(in("sparse"), os.O_WRONLY, 0)
	must(t, err)
	_, err = sparse.WriteAt([]byte("end"), 1<<40)
	must(t, err, sparse.Close(), os.Chtimes(in("d"), then, then))
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err, unix.Bind(socket, &unix.SockaddrUnix{Name: in("socket")}), unix.Close(socket))

	var stream bytes.Buffer
	must(t, layer.Write(&stream, rootAt(t, from), owners(5_000_000)))
	if stream.Len() > 1<<20 {
		t.Errorf("a file of one terabyte with two blocks in it takes %d bytes", stream.Len())
	}
	must(t, layer.Read(&stream, rootAt(t, to), owners(9_000_000)))

	out := func(name string) string { return filepath.Join(to, name) }
	want := map[string]string{
		"d": "drwx------ 9000000 0 2017", "d/f": "urw-r----- 9001000 9001001 2017", "d/away": "Lrwxrwxrwx 9001000 9001000", "d/same": "urw-r----- 9001000 9001001 2017",
		odd: "-rw------- 9000000 9000000", "pipe": "prw-rw-rw- 9000000 9000000", "hides": "drwxr-xr-x 9000000 9000000", "d/deleted": "Dc--------- 0 0", "sparse": "-rw------- 9000000 9000000",
	}
	delete(want, "d") // its group was this test's, whatever that is
	for name, want := range want {
		info, err := os.Lstat(out(name))
		must(t, err)
		st := info.Sys().(*syscall.Stat_t) //nolint:forcetypeassert // it is Linux
		if got := fmt.Sprintf("%s %d %d %d", info.Mode(), st.Uid, st.Gid, info.ModTime().UTC().Year()); !strings.HasPrefix(got, want) {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
	if data, err := os.ReadFile(out("d/same")); err != nil || string(data) != "content" {
		t.Errorf("the file is %q (%v)", data, err)
	}
	if first, second := inode(t, out("d/f")), inode(t, out("d/same")); first != second {
		t.Errorf("one file has become two: %d and %d", first, second)
	}
	if info, err := os.Lstat(out("d")); err != nil || !info.ModTime().Equal(then) {
		t.Errorf("the directory is of %v (%v)", info.ModTime(), err)
	}
	if to, err := os.Readlink(out("d/away")); err != nil || to != "/etc/shadow" {
		t.Errorf("the link leads to %q (%v)", to, err)
	}
	if _, err := os.Lstat(out("socket")); !os.IsNotExist(err) {
		t.Errorf("a socket came along: %v", err)
	}
	for name, want := range map[string]string{"user.a=b": "\x00v", "system.posix_acl_access": string(acl(9_001_234)), "trusted.overlay.origin": ""} {
		value := make([]byte, 100)
		if n, err := unix.Lgetxattr(out("d/f"), name, value); string(value[:max(n, 0)]) != want {
			t.Errorf("%s is %q (%v), want %q", name, value[:max(n, 0)], err, want)
		}
	}
	value := make([]byte, 10)
	if n, err := unix.Lgetxattr(out("hides"), "trusted.overlay.opaque", value); err != nil || string(value[:n]) != "y" {
		t.Errorf("the opaque directory is not: %q (%v)", value, err)
	}
	wantSparse(t, out("sparse"))
}

// acl is an access list that names a user.
func acl(uid uint32) []byte {
	data := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, rights uint16
		id          uint32
	}{{1, 6, 1<<32 - 1}, {2, 4, uid}, {4, 4, 1<<32 - 1}, {16, 4, 1<<32 - 1}, {32, 0, 1<<32 - 1}} {
		data = binary.LittleEndian.AppendUint16(data, e.tag)
		data = binary.LittleEndian.AppendUint16(data, e.rights)
		data = binary.LittleEndian.AppendUint32(data, e.id)
	}
	return data
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	return st.Ino
}

func wantSparse(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	end, begin := make([]byte, 10), make([]byte, 5)
	n, _ := f.ReadAt(end, 1<<40)
	if _, err := f.ReadAt(begin, 0); err != nil || string(begin) != "begin" || string(end[:n]) != "end" {
		t.Errorf("the sparse file begins with %q and ends with %q (%v)", begin, end[:n], err)
	}
	var st unix.Stat_t
	if must(t, unix.Stat(path, &st)); st.Blocks > 100 {
		t.Errorf("the sparse file takes %d blocks", st.Blocks)
	}
}

// TestWhatIsNoLayer: a stream that leads out, or lies of sizes, or has devices, is refused,
// and nothing is outside.
func TestWhatIsNoLayer(t *testing.T) {
	for name, all := range map[string][]tar.Header{
		"a way out":            {{Typeflag: tar.TypeDir, Name: "../out"}},
		"an absolute name":     {{Typeflag: tar.TypeDir, Name: "/out"}},
		"a link, and below it": {{Typeflag: tar.TypeSymlink, Name: "l", Linkname: ".."}, {Typeflag: tar.TypeDir, Name: "l/out"}},
		"a file outside":       {{Typeflag: tar.TypeLink, Name: "l", Linkname: "../secret"}},
		"a device":             {{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}},
		"a disk":               {{Typeflag: tar.TypeBlock, Name: "sda", Devmajor: 8}},
		"no size":              {{Typeflag: tar.TypeReg, Name: "f"}},
		"a size below nothing": {{Typeflag: tar.TypeReg, Name: "f", PAXRecords: map[string]string{"COFFERDAM.size": "-1"}}},
		"a redirect":           {{Typeflag: tar.TypeDir, Name: "d", PAXRecords: map[string]string{"COFFERDAM.attributes": `{"trusted.overlay.redirect":"L2V0Yw=="}`}}},
		"a host's right":       {{Typeflag: tar.TypeDir, Name: "d", PAXRecords: map[string]string{"COFFERDAM.attributes": `{"security.capability":"AAAA"}`}}},
	} {
		place := t.TempDir()
		inner := filepath.Join(place, "root")
		must(t, os.Mkdir(inner, 0o700), os.WriteFile(filepath.Join(place, "secret"), nil, 0o600))
		if err := layer.Read(stream(t, all, nil), rootAt(t, inner), layer.Owners{}); err == nil {
			t.Errorf("%s was taken", name)
		}
		if left, err := os.ReadDir(place); err != nil || len(left) != 2 {
			t.Errorf("%s made %v (%v)", name, left, err)
		}
	}
	for name, piece := range map[string][2]int64{"before the begin": {-1, 1}, "beyond the end": {1 << 40, 1}, "longer than the file": {5, 6}, "a length that wraps": {5, -1}} {
		body := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(piece[0])), uint64(piece[1]))
		all := []tar.Header{{Typeflag: tar.TypeReg, Name: "f", PAXRecords: map[string]string{"COFFERDAM.size": strconv.Itoa(10)}}}
		if err := layer.Read(stream(t, all, append(body, "sixbytes"...)), rootAt(t, t.TempDir()), layer.Owners{}); err == nil {
			t.Errorf("a piece %s was taken", name)
		}
	}
}

func stream(t *testing.T, all []tar.Header, body []byte) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range all {
		h.Mode, h.Uid, h.Gid, h.Size, h.Format = 0o755, os.Geteuid(), os.Getegid(), int64(len(body)), tar.FormatPAX
		must(t, w.WriteHeader(&h))
		_, err := w.Write(body)
		must(t, err)
	}
	must(t, w.Close())
	return &out
}

// TestAPathBeyondAll: what has no copy is an error that says so.
func TestAPathBeyondAll(t *testing.T) {
	dir := t.TempDir()
	at, err := os.Open(dir)
	must(t, err)
	name := strings.Repeat("n", 200)
	for range 25 { // each by the one before, since no call takes the whole
		must(t, unix.Mkdirat(int(at.Fd()), name, 0o700))
		fd, err := unix.Openat(int(at.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err, at.Close())
		at = os.NewFile(uintptr(fd), name)
	}
	must(t, at.Close())
	if err := layer.Write(&bytes.Buffer{}, rootAt(t, dir), layer.Owners{}); err == nil || !strings.Contains(err.Error(), "which no copy holds") {
		t.Errorf("a path of 5000 bytes: %v", err)
	}
}
