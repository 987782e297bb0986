package mountpolicy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk/treewalktest"
)

// writeIn writes a file, and whatever directory it needs.
func writeIn(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestLayEnds: a directory is as an agent made it that had it read-write. The next caller that
// mounts it is told what is too much, and what to do, and what looks through it ends with the
// request.
func TestLayEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		fill func(dir string)
		says string
	}{
		"it is looked through for what is hidden": {
			func(dir string) { writeIn(t, dir, IgnoreFile, "secret.env\n") },
			"%s has an ignore file in it or above it, and the directory has more than 200 directories in each other in \"a\"; mount a smaller directory, or remove what is too much",
		},
		"it is looked through for second names": {
			func(dir string) {
				writeIn(t, dir, "p.yaml", "name: x\n")
				if err := os.Link(filepath.Join(dir, "p.yaml"), filepath.Join(t.TempDir(), "again")); err != nil {
					t.Fatal(err)
				}
			},
			"%[1]s/p.yaml has more than one name, and to look for them the read-write mount %[1]s is too large: it has more than 200 directories in each other in \"a\"; remove the file's other names, or mount a smaller directory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for depth, refused := range map[int]bool{100: false, 3_000: true} {
				dir := t.TempDir()
				tc.fill(dir)
				treewalktest.Deepen(t, dir, depth)
				asked, deciding := []Mount{{Source: dir, Destination: "/w", ReadWrite: true}}, []string{filepath.Join(dir, "p.yaml")}
				if strings.Contains(tc.says, "ignore file") {
					deciding = nil
				}
				_, err := Rules{EmptyFile: "/empty"}.Lay(t.Context(), asked, deciding)
				if refused && (!errors.Is(err, fault.ErrInvalid) || err.Error() != fmt.Sprintf(tc.says, dir)) || !refused && err != nil {
					t.Errorf("%d directories in each other: %v", depth, err)
				}
				gone, leave := context.WithCancel(t.Context())
				leave()
				if _, err := (Rules{EmptyFile: "/empty"}).Lay(gone, asked, deciding); !errors.Is(err, context.Canceled) {
					t.Errorf("the client has gone: %v", err)
				}
			}
		})
	}
}

// TestLayWaitsForNoPipe: directories are exchanged with named pipes while they're looked through.
func TestLayWaitsForNoPipe(t *testing.T) {
	dir := t.TempDir()
	writeIn(t, dir, IgnoreFile, "secret.env\n")
	stop := treewalktest.Exchange(t, dir)
	for range 200 {
		_, _ = Rules{EmptyFile: "/empty"}.Lay(t.Context(), []Mount{{Source: dir, Destination: "/w", ReadWrite: true}}, nil) // refused or not
	}
	stop()
}

// TestIgnoreFileBounds: an agent may have written an ignore file. Each bound has a sentence that says which file, and from what line on.
func TestIgnoreFileBounds(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("# said\n\na\n", n) }
	for name, tc := range map[string]struct{ text, says string }{
		"patterns":         {lines(ignoreMaxPatterns), ""},
		"too many":         {lines(ignoreMaxPatterns + 1), "has more than 1000 patterns, from line 3003 on; ignore directories rather than files"},
		"bytes":            {strings.Repeat("#\n", ignoreMaxBytes/2), ""},
		"too many bytes":   {strings.Repeat("#\n", ignoreMaxBytes/2+1), "65536"},
		"a line":           {strings.Repeat("a", ignoreMaxLine), ""},
		"too long a line":  {"a\n" + strings.Repeat("a", ignoreMaxLine+1), "line 2 of the ignore file "},
		"no such class":    {"a\n\n[z-a]\n", "line 3 of the ignore file "},
		"half an escape":   {`a\`, `is no pattern: it ends with a backslash; mend it, or nobody knows what it hides`},
		"another encoding": {"caf\xe9\n", "is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeIn(t, dir, IgnoreFile, tc.text)
			writeIn(t, dir, "b", "")
			_, err := Rules{EmptyFile: "/empty"}.Lay(t.Context(), []Mount{{Source: dir, Destination: "/w"}}, nil)
			if tc.says == "" && err != nil || tc.says != "" && (!errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), filepath.Join(dir, IgnoreFile))) {
				t.Errorf("%v, want %q", err, tc.says)
			}
		})
	}
}

// TestPatternsHoldLittle: whatever an ignore file of the largest size says, little is held of it.
func TestPatternsHoldLittle(t *testing.T) {
	full := func(line string) string {
		return strings.Repeat(line+"\n", min(ignoreMaxPatterns, ignoreMaxBytes/(len(line)+1)))
	}
	for _, line := range []string{
		"a", "a/**/b*c", strings.Repeat("a{1000}", 100), strings.Repeat(`\pL`, 300), strings.Repeat("((a{9}){9}){9}", 70), strings.Repeat("(?i)ſ", 100),
		strings.Repeat("**/", 340), strings.Repeat("[^a]", 250), strings.Repeat("[[:alpha:]]", 90), strings.Repeat("*a", 500), strings.Repeat("?", 1000),
	} {
		text := []byte(full(line))
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		p, err := parsePatterns("file", text)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		held := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		if t.Logf("%.20s: %d patterns, %d KiB are held", line, len(p.all), held>>10); held > 32<<20 {
			t.Errorf("%.20s: %d MiB are held", line, held>>20)
		}
		runtime.KeepAlive(p)
	}
}

// TestLayComparesSoMuch: long paths with many patterns are refused, and not compared for hours, wherever the paths are: in what is mounted,
// in all that one request mounts, and on the way to it from the ignore file.
func TestLayComparesSoMuch(t *testing.T) {
	const file, patterns = 250, 60 * 1000
	for name, c := range map[string]struct {
		shown []string // below the ignore file's directory
		cost  int64
	}{
		"in it":                   {[]string{"."}, file*patterns + int64(len(IgnoreFile))*patterns},
		"on the way":              {[]string{"a/b"}, openCost*2 + 2*patterns*int64(len("a")+len("a/b"))},
		"on the way and in it":    {[]string{"c"}, openCost + 2*patterns*int64(len("c")) + patterns*int64(len("c/f"))},
		"two mounts of a request": {[]string{"a/b", "a/b"}, 2 * (openCost*2 + 2*patterns*int64(len("a")+len("a/b")))},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeIn(t, dir, IgnoreFile, strings.Repeat(strings.Repeat("*z", 500)+"\n", 60))
			if name == "in it" {
				writeIn(t, dir, strings.Repeat("d", file), "")
			} else if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o755), os.Mkdir(filepath.Join(dir, "c"), 0o755)); err != nil {
				t.Fatal(err)
			}
			if c.shown[0] == "c" {
				writeIn(t, dir, "c/f", "")
			}
			for left, refused := range map[int64]bool{c.cost: false, c.cost - 1: true} {
				may, err := &Comparing{left}, error(nil)
				for _, shown := range c.shown {
					m, files := opened(t, Mount{Source: filepath.Join(dir, shown), Destination: "/w"})[0], []*ignoreFile(nil)
					if files, err = (Rules{}).ignoreFiles(t.Context(), m.path, may); err == nil {
						_, err = Rules{}.hideWith(t.Context(), m, files, 1, may)
					}
				}
				const says = "takes too long; ignore less there, or mount a smaller directory"
				if refused && (!errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), says)) || !refused && (err != nil || may.left != 0) {
					t.Errorf("with %d of %d: %v, %d left", left, c.cost, err, may.left)
				}
			}
		})
	}
}

// TestLayEndsOnTheWay: a deep way and many patterns, on which a client's leaving used to be noticed after most of a minute, and where nothing
// bounded it.
func TestLayEndsOnTheWay(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, strings.Repeat("a/", 500))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	writeIn(t, dir, IgnoreFile, strings.Repeat(strings.Repeat("**/", 330)+"z\n", 64))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := Rules{EmptyFile: "/empty"}.Lay(ctx, []Mount{{Source: deep, Destination: "/w"}}, nil)
	if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second {
		t.Errorf("it took %v: %v", took, err)
	}
	short := &Comparing{1 << 28}
	if _, err := (Rules{}).ignoreFiles(t.Context(), opened(t, Mount{Source: deep, Destination: "/w"})[0].path, short); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("it was compared to its end: %v", err)
	}
}

// TestLayTakesSoManyPatterns: of all ignore files that hold.
func TestLayTakesSoManyPatterns(t *testing.T) {
	for line, most := range map[string]int{"a": ignoreMaxAll / ignoreMaxPatterns, strings.Repeat("a", ignoreMaxLine-1): ignoreMaxAllBytes / ignoreMaxBytes} {
		dir := t.TempDir()
		for n := 1; n <= most+1; n++ {
			writeIn(t, dir, IgnoreFile, strings.Repeat(line+"\n", min(ignoreMaxPatterns, ignoreMaxBytes/(len(line)+1))))
			dir = filepath.Join(dir, "d")
			writeIn(t, dir, "b", "")
			_, err := Rules{}.Lay(t.Context(), []Mount{{Source: dir, Destination: "/w"}}, nil)
			if over := n > most; over != errors.Is(err, fault.ErrInvalid) || over != (err != nil) {
				t.Errorf("%d files with %.5s: %v", n, line, err)
			}
		}
	}
}
