package e2e

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// localUpstream is the configuration of an installation whose registry is a
// server of the test's own.
func localUpstream(t *testing.T, l *liar.Server, name string) string {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, l.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	port := strings.TrimPrefix(l.Host(name), name+":")
	return fmt.Sprintf("upstreams:\n  - ecosystem: python\n    index: https://%s/simple/\n    address: 127.0.0.1:%s\n    ca_file: %s\nprobe_projects: [big]\n", name, port, ca)
}

// TestABigFileFromASlowUpstream: pip waits for a file that takes a while, and
// the memory of the gateway stays out of proportion to it.
func TestABigFileFromASlowUpstream(t *testing.T) {
	t.Parallel()
	size, rate := int64(24<<20), int64(12<<20) // bytes, bytes a second
	if os.Getenv("COFFERDAM_LONG") != "" {
		size, rate = 1<<30, 10<<20
	}
	const host = "index.example"
	wheel, digest := bigWheel(t, size)
	l := liar.New(t, host)
	page := fmt.Sprintf(`<!DOCTYPE html><html><body><a href="/files/big-1.0-py3-none-any.whl#sha256=%s">big-1.0-py3-none-any.whl</a></body></html>`, digest)
	l.Script(host+"/simple/big/", liar.Body("text/html", []byte(page)))
	l.Script(host+"/files/big-1.0-py3-none-any.whl", paced(wheel, rate))

	in := start(t, localUpstream(t, l, host))
	env := in.create("debian", "name: big\nallowed_packages: { python: [ { name: big } ] }\ndefaults: { max_disk_mb: 8192, max_memory_mb: 2048 }\n")
	got := in.run(env, "python3", "-m", "pip", "install", "--no-cache-dir", "big")
	if got.Exit.Code != 0 || !strings.Contains(got.Stdout, "Successfully installed big-1.0") {
		t.Fatalf("pip ended with %+v\n%s\n%s", got.Exit, got.Stdout, got.Stderr)
	}
	sum := in.run(env, "python3", "-c", "import hashlib, big, pathlib; print((pathlib.Path(big.__file__).parent / 'blob').stat().st_size)")
	if strings.TrimSpace(sum.Stdout) != fmt.Sprint(size) {
		t.Errorf("the installed blob has %s bytes (%s), want %d", strings.TrimSpace(sum.Stdout), sum.Stderr, size)
	}
	if n := l.Count(host + "/files/big-1.0-py3-none-any.whl"); n != 1 {
		t.Errorf("the upstream was asked %d times for the file, want once", n)
	}
}

// bigWheel writes a wheel with one file of size bytes.
func bigWheel(t *testing.T, size int64) (path, digest string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "big.whl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := sha256.New()
	z := zip.NewWriter(io.MultiWriter(f, sum))
	record := ""
	add := func(name string, body func() io.Reader) {
		crc, sum := crc32.NewIEEE(), sha256.New()
		n, err := io.Copy(io.MultiWriter(crc, sum), body())
		if err != nil {
			t.Fatal(err)
		}
		// Stored files must say at their beginning how long they are.
		head := &zip.FileHeader{Name: name, CRC32: crc.Sum32(), CompressedSize64: uint64(n), UncompressedSize64: uint64(n)}
		w, err := z.CreateRaw(head)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(w, body()); err != nil {
			t.Fatal(err)
		}
		record += fmt.Sprintf("%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), n)
	}
	text := func(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }
	add("big/__init__.py", text("\n"))
	add("big/blob", func() io.Reader { return io.LimitReader(zeros{}, size) })
	add("big-1.0.dist-info/METADATA", text("Metadata-Version: 2.1\nName: big\nVersion: 1.0\n"))
	add("big-1.0.dist-info/WHEEL", text("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"))
	add("big-1.0.dist-info/RECORD", text(record+"big-1.0.dist-info/RECORD,,\n"))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path, hex.EncodeToString(sum.Sum(nil))
}

// zeros are bytes without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// paced sends a file at a rate, in bytes a second.
func paced(path string, rate int64) liar.Reply {
	return func(_ *liar.Server, w http.ResponseWriter, r *http.Request) {
		f, err := os.Open(path)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer f.Close()
		info, _ := f.Stat()
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", fmt.Sprint(info.Size()))
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			if _, err := io.CopyN(w, f, rate/10); err != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
		}
	}
}
