package audit

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
)

// life is what a log was told to do before a crash, and what it acknowledged.
type life struct {
	acknowledged []Record
	erasing      map[uint64]bool // asked for, whether or not it was acknowledged
	erased       bool
	sealed       bool   // something was
	rotated      string // the new public key, if that was acknowledged
	kept         []byte // the last checkpoint that was seen
}

// live has a log do everything once: it ends at the first error.
func live(t *testing.T, l *FileLog) *life {
	t.Helper()
	f := &life{erasing: map[uint64]bool{}}
	append1 := func(i int) bool {
		asked := Record{Kind: KindPackage, Size: int64(i + 1), Run: fmt.Sprint("run-", i%2), User: "alice", Token: "token"}
		if i%4 < 2 { // the others share whose run it is
			asked.Task = fmt.Sprint("task ", i)
		}
		r, err := l.Append(t.Context(), asked)
		if err == nil {
			f.acknowledged = append(f.acknowledged, r)
		}
		_, f.kept = l.Checkpoint()
		return err == nil
	}
	for i := range 4 {
		if !append1(i) {
			return f
		}
	}
	public, err := l.RotateKey("alice", "")
	if err != nil {
		return f
	}
	f.rotated = public
	for _, r := range f.acknowledged {
		f.erasing[r.Seq] = r.Run == "run-1"
	}
	if _, err := l.Erase(t.Context(), EraseAsk{Run: "run-1", By: "alice"}); err != nil {
		return f
	}
	f.erased = true
	report, err := l.Seal(t.Context(), SealBefore{Record: 4}, "alice")
	if f.sealed = len(report.Segments) > 0; err != nil {
		return f
	}
	for i := range 2 {
		if !append1(10 + i) {
			return f
		}
	}
	return f
}

// judge opens what is left of a log and compares it with what was acknowledged.
func (f *life) judge(t *testing.T, dir string) {
	t.Helper()
	l, err := Open(dir, Options{SegmentBytes: 700})
	if err != nil {
		t.Fatalf("it does not open: %v", err)
	}
	got := map[uint64]Record{}
	for _, r := range collect(t, l, Filter{}) {
		got[r.Seq] = r
	}
	for _, want := range f.acknowledged {
		have := got[want.Seq]
		if f.erasing[want.Seq] && have.Erased || f.erased && f.erasing[want.Seq] {
			want.User, want.Token, want.Task, want.Erased = "", "", "", true
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("record %d differs (-acknowledged +read):\n%s", want.Seq, diff)
		}
	}
	if keys := l.PublicKeys(); f.rotated != "" && keys[len(keys)-1] != f.rotated {
		t.Errorf("the key is not the one that it was replaced with")
	}
	add(t, l, Record{Kind: KindDaemon, User: "bob"})
	must(t, l.Close())
	if notes, err := os.ReadFile(filepath.Join(dir, checkpointsName)); err != nil || !bytes.Contains(notes, f.kept) {
		t.Errorf("a checkpoint that was seen is not among those that were kept (%v)", err)
	}
	v := verify(t, dir, VerifyOptions{Kept: f.kept})
	if !v.Sound || v.Covered != v.Records {
		t.Errorf("it does not verify: %+v", v)
	}
}

// TestACrashAtEveryCall lets the power fail at each call in turn (at every third in
// ordinary runs), and looks at each of the ways in which a disk may be found then.
func TestACrashAtEveryCall(t *testing.T) {
	disks := map[string]func(d *crashDisk) (map[string]*inode, func(*inode) []byte){
		"all was written": func(d *crashDisk) (map[string]*inode, func(*inode) []byte) {
			return d.inodes, func(n *inode) []byte { return n.now }
		},
		"only what was synced": func(d *crashDisk) (map[string]*inode, func(*inode) []byte) {
			return d.durable, func(n *inode) []byte { return n.durable }
		},
		"names before contents": func(d *crashDisk) (map[string]*inode, func(*inode) []byte) {
			return d.inodes, func(n *inode) []byte { return n.durable }
		},
		"contents in part": func(d *crashDisk) (map[string]*inode, func(*inode) []byte) { return d.durable, halfWritten },
	}
	sealed := false
	for at, more := 1, true; more; at += crashStride {
		d := newCrashDisk(at)
		dir := t.TempDir()
		f := &life{}
		if l, err := Open(dir, Options{SegmentBytes: 700, CheckpointEvery: time.Nanosecond, disk: d}); err == nil {
			f = live(t, l)
			_ = l.Close() // the power has failed
		}
		for _, way := range slices.Sorted(maps.Keys(disks)) {
			t.Run(fmt.Sprintf("%d/%s", at, way), func(t *testing.T) {
				names, content := disks[way](d)
				after := t.TempDir()
				must(t, d.left(after, names, content))
				f.judge(t, after)
			})
		}
		more, sealed = d.calls >= at && at < 2_000 && !t.Failed(), sealed || f.sealed
		must(t, os.RemoveAll(dir))
	}
	if !sealed && !t.Failed() {
		t.Error("nothing was ever sealed, so no crash on the way was looked at")
	}
}

// TestAFaultAtEveryCall lets a call fail, of any file, and the log go on: what it
// did not acknowledge may be asked for again, and nothing is lost.
func TestAFaultAtEveryCall(t *testing.T) {
	for i, fail := range []failure{{err: unix.ENOSPC}, {err: unix.EIO}, {half: true, err: unix.ENOSPC}, {err: unix.EINTR}} {
		name := fmt.Sprint(fail.err)
		if fail.half {
			name = "short, then " + name
		}
		struck := true
		for at := 1 + i%faultStride; struck && at < 1_000 && !t.Failed(); at += faultStride {
			t.Run(fmt.Sprintf("%s/%d", name, at), func(t *testing.T) { struck = goOn(t, at, fail) })
		}
	}
}

func goOn(t *testing.T, at int, fail failure) (struck bool) {
	t.Helper()
	dir := t.TempDir()
	d := &failingDisk{files: []string{""}}
	d.arm("", at, 1, fail)
	l, err := Open(dir, Options{SegmentBytes: 700, CheckpointEvery: time.Nanosecond, disk: d})
	if err != nil { // once: the next start works
		if l, err = Open(dir, Options{SegmentBytes: 700, CheckpointEvery: time.Nanosecond, disk: d}); err != nil {
			t.Fatalf("the second Open failed, too: %v", err)
		}
	}
	f := live(t, l)
	refused := 0
	for i := range 3 {
		r, err := l.Append(t.Context(), Record{Kind: KindPackage, User: "carol", Size: int64(100 + i)})
		if err == nil {
			f.acknowledged = append(f.acknowledged, r)
		} else if refused++; refused > 1 {
			t.Errorf("the log did not recover by itself: %v", err)
		}
	}
	_ = l.Close() // where the last call fails, the next Open makes up for it
	f.judge(t, dir)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls >= at
}

// TestAFullDisk: the log refuses, says so, and goes on when there is room.
func TestAFullDisk(t *testing.T) {
	for _, files := range [][]string{{plainSuffix}, {personalSuffix}, {treeName}, {checkpointsName}, {""}} {
		t.Run(fmt.Sprint(files), func(t *testing.T) {
			dir := t.TempDir()
			d := &failingDisk{}
			l, err := Open(dir, Options{disk: d, CheckpointEvery: time.Nanosecond})
			must(t, err)
			f := &life{acknowledged: []Record{add(t, l, Record{User: "a"})}}
			d.mu.Lock()
			d.files = files
			d.mu.Unlock()
			d.arm("write", 1, 1<<30, failure{err: unix.ENOSPC})
			for range 3 {
				r, err := l.Append(t.Context(), Record{User: "b"})
				journal := files[0] != treeName && files[0] != checkpointsName
				if (err != nil) != journal {
					t.Errorf("with no room for %q Append gave %v", files, err)
				}
				if err == nil {
					f.acknowledged = append(f.acknowledged, r)
				}
			}
			d.arm("", 0, 0, failure{})
			f.acknowledged = append(f.acknowledged, add(t, l, Record{User: "c"}))
			must(t, l.Close())
			f.judge(t, dir)
		})
	}
}

func TestAWrongClockIsRecordedOnce(t *testing.T) {
	began := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	var ahead atomic.Int64 // nanoseconds; the log's own goroutines read the clock, too
	turn := func(by time.Duration) { ahead.Add(int64(by)) }
	dir := t.TempDir()
	l, err := Open(dir, Options{Clock: clock.Plain(func() time.Time { return began.Add(time.Duration(ahead.Load())) })})
	must(t, err)
	first := add(t, l, Record{})
	turn(-time.Hour)
	for range 3 {
		if r := add(t, l, Record{}); !r.Time.Equal(first.Time) {
			t.Errorf("a record has the time %v, after one of %v", r.Time, first.Time)
		} else if !r.Clock.Equal(first.Time.Add(-time.Hour)) {
			t.Errorf("beside it the clock says %v", r.Clock)
		}
	}
	turn(2 * time.Hour)
	add(t, l, Record{})
	turn(-30 * time.Minute)
	add(t, l, Record{})
	var said []string
	last := time.Time{}
	for _, r := range collect(t, l, Filter{}) {
		if r.Time.Before(last) {
			t.Errorf("record %d is older than the one before it", r.Seq)
		}
		last = r.Time
		if r.Detail["event"] == "clock_back" {
			said = append(said, r.Detail["seconds"])
		}
	}
	if !slices.Equal(said, []string{"3600", "1800"}) {
		t.Errorf("the clock went back twice, and the records say %q", said)
	}
	must(t, l.Close())
	if v := verify(t, dir, VerifyOptions{}); !v.Sound {
		t.Errorf("%+v", v)
	}
	if _, err := os.Stat(filepath.Join(dir, treeName)); err != nil {
		t.Error(err)
	}
}
