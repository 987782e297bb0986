package mounts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath/treewalk"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath/treewalk/treewalktest"
)

// writeIn writes a file, and whatever directory it needs.
func writeIn(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestLayEnds: a directory is as an agent made it that had it read-write. Whoever mounts it next is told what is too much, and what to do, and
// what looks through it ends with the request.
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

// TestLayComparesSoMuch: long paths with many patterns are refused, and not compared for hours.
func TestLayComparesSoMuch(t *testing.T) {
	dir := t.TempDir()
	writeIn(t, dir, IgnoreFile, strings.Repeat(strings.Repeat("*a", 500)+"\n", 60))
	writeIn(t, dir, strings.Repeat("d", 250), "")
	c := opened(t, Mount{Source: dir, Destination: "/w"})[0]
	files, err := (Rules{}).ignoreFiles(c.path)
	if err != nil {
		t.Fatal(err)
	}
	h := hider{mount: c, files: files, most: 1, left: ignoreMaxMatched}
	walk := func() error { return treewalk.Walk(t.Context(), c.path, ".", lookedThrough(), h.look) }
	if err := walk(); err != nil { // the control
		t.Error(err)
	}
	h.left = 250*60*1000 - 1
	if err := walk(); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "takes too long; ignore less there, or mount a smaller directory") {
		t.Error(err)
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
