package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func open(t *testing.T, dir string, options Options) *FileLog {
	t.Helper()
	l, err := Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func collect(t *testing.T, l Log, f Filter) []Record {
	t.Helper()
	var all []Record
	for r, err := range l.Records(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func add(t *testing.T, l Log, r Record) Record {
	t.Helper()
	got, err := l.Append(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAppendedRecordsComeBackAfterReopening(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l := open(t, dir, Options{SegmentBytes: 600})
	exit := 3
	var want []Record
	for i := range 20 {
		want = append(want, add(t, l, Record{
			Kind: KindPackage, Outcome: Served, Run: "r1", Sandbox: fmt.Sprintf("s%d", i%2), Package: "requests",
			Size: int64(i), Exit: &exit, Command: []string{"pip", "a\x1b[31m\u202eb"}, Detail: map[string]string{"b": "2", "a": "<&>\u009b"},
			Withheld: []WithheldRange{{Rule: "r", From: "1", To: "2", Versions: 2, Files: 3}},
		}))
	}
	if diff := cmp.Diff(want, collect(t, l, Filter{})); diff != "" {
		t.Errorf("records differ (-appended +read):\n%s", diff)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, Options{SegmentBytes: 600})
	want = append(want, add(t, l, Record{Kind: KindDaemon, Outcome: Started}))
	if diff := cmp.Diff(want, collect(t, l, Filter{})); diff != "" {
		t.Errorf("after reopening, records differ (-appended +read):\n%s", diff)
	}
	if n := len(collect(t, l, Filter{Sandbox: "s1", FromSeq: 10})); n != 5 {
		t.Errorf("the filter selected %d records, want 5", n)
	}
	if n := len(collect(t, l, Filter{Kinds: []Kind{KindDaemon}, Outcomes: []Outcome{Started}})); n != 1 {
		t.Errorf("the filter selected %d records, want 1", n)
	}
	checkFiles(t, dir, want)
}

// checkFiles checks modes, and that lines are contiguous, canonical and show no
// control characters.
func checkFiles(t *testing.T, dir string, want []Record) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("want several segments, have %v (%v)", paths, err)
	}
	seq := 0
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, error %v; want 0600", path, info.Mode(), err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) != segmentName(uint64(seq)) {
			t.Errorf("segment %s begins with record %d", path, seq)
		}
		for text := range bytes.Lines(content) {
			if i := bytes.IndexFunc(bytes.TrimSuffix(text, []byte("\n")), func(r rune) bool { return r < ' ' || unprintable(r) }); i >= 0 {
				t.Errorf("record %d has a raw control character at byte %d: %q", seq, i, text)
			}
			r, err := decodeLine(text, uint64(seq))
			if err != nil {
				t.Fatal(err)
			}
			rest, err := encodeBody(r)
			if err != nil || !bytes.Equal(appendStamped(nil, r.Seq, stampTime{r.Time, r.Clock}, rest), text) {
				t.Errorf("record %d is not canonical (%v): %q", seq, err, text)
			}
			seq++
		}
	}
	if seq != len(want) {
		t.Errorf("the segments hold %d records, want %d", seq, len(want))
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory's mode is %v, error %v; want 0700", info.Mode(), err)
	}
}

func TestASecondAppenderIsRefused(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, fault.ErrConflict) {
		t.Fatalf("a second Open gave %v, want a conflict", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), Record{}); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("Append after Close gave %v, want unavailable", err)
	}
	open(t, dir, Options{})
}

func TestTimesNeverGoBack(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("x", 3600))
	var readings atomic.Int64 // the log's own goroutines read the clock, too
	l := open(t, t.TempDir(), Options{Clock: clock.Plain(func() time.Time { return began.Add(-time.Duration(readings.Add(1)) * time.Minute) })})
	a, b := add(t, l, Record{}), add(t, l, Record{})
	if b.Time.Before(a.Time) || a.Time.Location() != time.UTC {
		t.Errorf("times %v, %v: want UTC and not going back", a.Time, b.Time)
	}
}

func TestOversizedAndCancelledAppendsLeaveNothing(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	if _, err := l.Append(t.Context(), Record{Reason: strings.Repeat("x", MaxRecord)}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("an oversized record gave %v, want invalid", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(ctx, Record{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled Append gave %v", err)
	}
	add(t, l, Record{Reason: strings.Repeat("x", MaxRecord-200)})
	if n := len(collect(t, l, Filter{})); n != 1 {
		t.Errorf("the log has %d records, want 1", n)
	}
}

func TestManyWritersAndReadersAtOnce(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{SegmentBytes: 20_000})
	const writers, each = 32, 30
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, err := l.Append(t.Context(), Record{Run: fmt.Sprint(w), Size: int64(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 4 {
		wg.Go(func() {
			for range 20 {
				next := uint64(0)
				for r, err := range l.Records(t.Context(), Filter{}) {
					if err != nil || r.Seq != next {
						t.Errorf("record %d, error %v; want record %d", r.Seq, err, next)
						return
					}
					next++
				}
			}
		})
	}
	wg.Wait()
	perRun := map[string]int64{}
	for _, r := range collect(t, l, Filter{}) {
		if r.Size != perRun[r.Run] {
			t.Fatalf("run %s: record %d came where %d was due", r.Run, r.Size, perRun[r.Run])
		}
		perRun[r.Run]++
	}
	if len(perRun) != writers {
		t.Errorf("%d runs in the log, want %d", len(perRun), writers)
	}
}

func TestEveryDiskFaultLeavesExactlyTheAcknowledged(t *testing.T) {
	failures := map[string]failure{
		"EIO": {err: unix.EIO}, "ENOSPC": {err: unix.ENOSPC}, "EINTR": {err: unix.EINTR},
		"short": {half: true}, "short, then ENOSPC": {half: true, err: unix.ENOSPC}, "short, EINTR": {half: true, err: unix.EINTR},
	}
	for name, fail := range failures {
		for _, times := range []int{1, 2} {
			// Truncations work: where they don't, see the next test.
			for _, only := range []string{"write", "sync", "open", "syncdir"} {
				for at, struck := 1, true; struck && at < 100; at++ {
					t.Run(fmt.Sprintf("%s/%s/%dx/%d", name, only, times, at), func(t *testing.T) { struck = survive(t, only, at, times, fail) })
				}
			}
		}
	}
}

// survive appends to a log whose disk fails from call number at on, and reports
// whether it came to that.
func survive(t *testing.T, only string, at, times int, fail failure) (struck bool) {
	t.Helper()
	dir := t.TempDir()
	d := &failingDisk{}
	if only != "syncdir" { // Open makes the key and the tree, and does without neither
		d.arm(only, at, times, fail)
	}
	l, err := Open(dir, Options{SegmentBytes: 300, disk: d})
	if err != nil {
		t.Fatal(err)
	}
	if only == "syncdir" {
		d.arm(only, at, times, fail)
	}
	var acknowledged []Record
	refused := 0
	for i := range 7 {
		r, err := l.Append(t.Context(), Record{Kind: KindPackage, Size: int64(i + 1)})
		if err == nil {
			acknowledged = append(acknowledged, r)
		} else if refused++; !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("append %d: %v is not the unavailable category", i, err)
		}
	}
	if refused > times {
		t.Errorf("%d appends were refused for %d faults: the log did not recover by itself", refused, times)
	}
	if diff := cmp.Diff(acknowledged, collect(t, l, Filter{})); diff != "" {
		t.Errorf("the open log differs (-acknowledged +read):\n%s", diff)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(acknowledged, collect(t, open(t, dir, Options{}), Filter{})); diff != "" {
		t.Errorf("the reopened log differs (-acknowledged +read):\n%s", diff)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls >= at
}

func TestAWriteThatCannotBeTakenBackBreaksTheLogUntilReopened(t *testing.T) {
	dir := t.TempDir()
	d := &failingDisk{}
	l, err := Open(dir, Options{disk: d})
	if err != nil {
		t.Fatal(err)
	}
	first := add(t, l, Record{Reason: "first"})
	d.arm("", 1, 2, failure{half: true, err: unix.EIO}) // half a write, then the truncation
	for range 3 {
		if _, err := l.Append(t.Context(), Record{Reason: "lost"}); !errors.Is(err, unix.EIO) {
			t.Fatalf("Append gave %v, want the disk's error", err)
		}
	}
	if diff := cmp.Diff([]Record{first}, collect(t, l, Filter{})); diff != "" {
		t.Errorf("the broken log differs:\n%s", diff)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, Options{})
	got := collect(t, l, Filter{})
	if len(got) != 2 || got[0].Reason != "first" || got[1].Detail["event"] != "torn_tail" || got[1].Kind != KindDaemon {
		t.Errorf("the reopened log is %+v, want the first record and the repair", got)
	}
	add(t, l, Record{})
}

func TestTornTails(t *testing.T) {
	whole := `{"seq":2,"timestamp":"2026-01-01T00:00:00Z","kind":"package","outcome":"served"}` + "\n"
	for name, tail := range map[string]string{
		"half a line": whole[:40], "no newline": strings.TrimSuffix(whole, "\n"), "zeros": strings.Repeat("\x00", 5000),
		"wrong number": strings.Replace(whole, "2", "7", 1), "garbage, then a line": "garbage\n" + whole,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir, Options{})
			want := []Record{add(t, l, Record{Run: "a"}), add(t, l, Record{Run: "b"})}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			appendBytes(t, filepath.Join(dir, segmentName(0)), tail)
			l = open(t, dir, Options{})
			got := collect(t, l, Filter{})
			if diff := cmp.Diff(want, got[:2]); diff != "" {
				t.Errorf("whole records differ:\n%s", diff)
			}
			if len(got) != 3 {
				t.Fatalf("%d records, want the two and the repair", len(got))
			}
			side, err := os.ReadFile(filepath.Join(dir, got[2].Detail["side_file"]))
			if err != nil || string(side) != tail {
				t.Errorf("the side file holds %q (%v), want the torn bytes", side, err)
			}
		})
	}
}

func appendBytes(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDamageThatNoCrashMakesIsRefused(t *testing.T) {
	damage := map[string]func(dir string, segments []string) error{
		"a segment is missing": func(_ string, s []string) error { return os.Remove(s[1]) },
		"the first is missing": func(_ string, s []string) error { return os.Remove(s[0]) },
		"an old one is cut":    func(_ string, s []string) error { return os.Truncate(s[1], 50) },
		"much garbage":         func(_ string, s []string) error { return os.Truncate(s[len(s)-1], 2<<20) },
		"a foreign file": func(dir string, _ []string) error {
			return os.WriteFile(filepath.Join(dir, "1.jsonl"), nil, 0o600)
		},
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir, Options{SegmentBytes: 300})
			for range 12 {
				add(t, l, Record{Kind: KindPackage})
			}
			must(t, l.Close())
			segments, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
			must(t, err)
			must(t, do(dir, segments))
			if l, err := Open(dir, Options{}); !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("Open gave %v, %v; want it refused", l, err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestADamagedMiddleEndsReadingWithAnError(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, Options{SegmentBytes: 300})
	must(t, err)
	defer l.Close() // it may find the damage, too
	for range 12 {
		add(t, l, Record{Kind: KindPackage, Run: "r"})
	}
	path := filepath.Join(dir, segmentName(0))
	content, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, bytes.Replace(content, []byte(`{"seq":1,`), []byte(`{"seq":9,`), 1), 0o600))
	var last error
	for _, err := range l.Records(t.Context(), Filter{}) {
		last = err
	}
	if !errors.Is(last, fault.ErrInvalid) {
		t.Errorf("reading a damaged log ended with %v, want an error", last)
	}
}

func TestEncodingIsCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Record{
			Kind: Kind(rapid.String().Draw(t, "kind")), Reason: rapid.String().Draw(t, "reason"),
			Command: []string{string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))},
			Detail:  rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "detail"),
		}
		rest, err := encodeBody(encodedRecord{Record: r})
		if err != nil {
			t.Fatal(err)
		}
		text := appendStamped(nil, 7, stampTime{time: time.Unix(1, 5).UTC()}, rest)
		back, err := decodeLine(text, 7)
		if err != nil {
			t.Fatal(err)
		}
		again, err := encodeBody(back)
		if err != nil || !bytes.Equal(appendStamped(nil, back.Seq, stampTime{back.Time, back.Clock}, again), text) {
			t.Fatalf("not canonical (%v): %q", err, text)
		}
		if back.Reason != r.Reason {
			t.Fatalf("%q came back as %q", r.Reason, back.Reason)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"seq":0,"timestamp":"2026-01-01T00:00:00Z","kind":"package","outcome":"served"}`))
	f.Add([]byte(`{"seq":0,`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := decodeLine(line, 0)
		if err == nil && r.Seq != 0 {
			t.Fatalf("record %d passed for record 0: %q", r.Seq, line)
		}
	})
}

func TestARepairOnAFullDiskIsRecordedLater(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	add(t, l, Record{Run: "a"})
	must(t, l.Close())
	appendBytes(t, filepath.Join(dir, segmentName(0)), "torn")
	d := &failingDisk{}
	d.arm("write", 1, 2, failure{err: unix.ENOSPC})
	l = open(t, dir, Options{disk: d})
	if _, err := l.Append(t.Context(), Record{Run: "b"}); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("on a full disk Append gave %v", err)
	}
	add(t, l, Record{Run: "c"})
	got := collect(t, l, Filter{})
	if len(got) != 3 || got[1].Detail["event"] != "torn_tail" || got[2].Run != "c" {
		t.Errorf("the log is %+v, want a, the repair and c", got)
	}
}

// TestACopyOfTheLockKeepsNobodyOut: while a program is being started, it has all files
// that its parent has open.
func TestACopyOfTheLockKeepsNobodyOut(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(copyOf(t, filepath.Join(dir, "lock")))
	if _, err := Open(dir, Options{}); !errors.Is(err, fault.ErrConflict) {
		t.Fatalf("the control, a second appender: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// copyOf is a copy of this process's descriptor of a file.
func copyOf(t *testing.T, path string) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if at, err := os.Readlink("/proc/self/fd/" + fd.Name()); err != nil || at != path {
			continue
		}
		number, err := strconv.Atoi(fd.Name())
		if err != nil {
			t.Fatal(err)
		}
		copied, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return copied
	}
	t.Fatalf("nobody has %s open", path)
	return -1
}
